//! The report as a self-contained HTML page. It loads nothing from the network, and its tables work
//! without scripts.
//!
//! `maud` escapes the text in the markup. The script displays values from the JSON report inside
//! the page, and only as text nodes.

mod charts;
mod column;
mod devices;
mod page;
mod rows;

use maud::{Markup, PreEscaped, html};

pub use page::page;

use crate::series::saturating_sum;
use crate::units::{self, printable};
use crate::{Process, Series, Snapshot, notes};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

impl Snapshot {
    /// Returns the report as one self-contained HTML page. Scripts sort and filter its rows and
    /// draw charts for each. Without scripts, it is a table.
    pub fn to_html(&self) -> String {
        render(self)
    }
}

fn render(snapshot: &Snapshot) -> String {
    let data = charts::json(snapshot);
    let snapshot = &*snapshot.with_unique_names();
    let process = &snapshot.process;
    let body = html! {
        (head(process))
        (tiles(snapshot))
        (warnings(snapshot))
        (devices::panel(snapshot))
        (rows::table(snapshot))
        @let notes = notes::facts(snapshot);
        @if !notes.is_empty() {
            h2 { "Notes" }
            ul.notes { @for note in notes { li { (printable(note.trim_start())) } } }
        }
        footer { "gpu-time " (printable(&process.version)) }
        script type="application/json" id="report" { (PreEscaped(inert(&data))) }
    };
    page(&printable(&process.name), STYLE, Some(SCRIPT), &body)
}

/// Escapes JSON so that it cannot close the element that contains it, and has no control
/// characters. Both can only occur in strings, where escaping is possible.
fn inert(json: &str) -> String {
    let mut inert = String::with_capacity(json.len());
    for c in json.chars() {
        if c == '<' || c.is_control() {
            inert += &format!("\\u{:04x}", u32::from(c));
        } else {
            inert.push(c);
        }
    }
    inert
}

/// Returns a description of the process, or the number of merged reports.
fn source(process: &Process) -> String {
    match process.merged.len() {
        0 => format!("process {}", process.pid),
        1 => "1 report".to_owned(),
        count => format!("{count} reports merged"),
    }
}

fn head(process: &Process) -> Markup {
    let started = process.started.replace('T', " ").replace('Z', " UTC");
    html! {
        div.top {
            div {
                h1 { (printable(&process.name)) }
                p {
                    (source(process)) " · " (printable(&started)) " · "
                    (units::time(process.wall_ns as f64))
                }
            }
            button.theme type="button" hidden title="light or dark" aria-label="light or dark" { "◐" }
        }
    }
}

/// Renders the headline figures.
fn tiles(snapshot: &Snapshot) -> Markup {
    let sites = &snapshot.sites;
    let functions = || snapshot.all_series().filter(|s| s.launch.is_none() || s.graph);
    // Host clock samples count as fed in the report, but they are not GPU time.
    let on_gpu = || functions().filter(|series| series.is_gpu_time());
    let on_host = functions().filter(|series| !series.is_gpu_time());
    let fed = saturating_sum(on_gpu().map(|series| series.fed));
    let gpu_samples = saturating_sum(on_gpu().map(|series| series.measured));
    let host_samples = saturating_sum(on_host.map(|series| series.measured));
    let lost = saturating_sum(functions().map(|series| series.lost.total()));
    let opened = saturating_sum(functions().map(Series::opened));
    let own = on_gpu().filter(|series| !series.graph).filter_map(Series::own_total);
    let gpu_ns = own.fold(0.0, |sum, ns| sum + ns);
    let called = sites.iter().filter(|site| site.calls > 0).count();
    let tile = |name: &str, value: Markup| html! { div.tile { dt { (name) } dd { (value) } } };
    html! {
        dl.tiles {
            (tile("GPU time measured", html! { (units::time(gpu_ns)) }))
            (tile("functions called", html! { (called) small { " of " (sites.len()) } }))
            (tile("calls", html! { (units::count(saturating_sum(sites.iter().map(|site| site.calls)))) }))
            (tile("GPU samples", html! { (units::count(gpu_samples)) }))
            @if opened > 0 { (tile("opened calls", html! { (units::count(opened)) })) }
            @if host_samples > 0 { (tile("host samples", html! { (units::count(host_samples)) })) }
            (tile("fed", html! {
                @if gpu_samples == 0 { "–" } @else { (units::share(fed as f64, gpu_samples as f64)) }
            }))
            (tile("lost", html! { span.bad[lost > 0] { (units::count(lost)) } }))
        }
    }
}

fn warnings(snapshot: &Snapshot) -> Markup {
    let off = snapshot.process.off().map(|why| format!("nothing was timed on a GPU: {why}"));
    let warnings: Vec<String> = off.into_iter().chain(notes::warnings(snapshot)).collect();
    html! {
        @if !warnings.is_empty() {
            ul.warnings { @for warning in warnings { li { (printable(&warning)) } } }
        }
    }
}

#[cfg(test)]
mod tests;
