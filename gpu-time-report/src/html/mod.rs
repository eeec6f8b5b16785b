//! The report as a self-contained HTML page. It loads nothing from the network, and its tables work
//! without scripts.
//!
//! `maud` escapes the text in the markup. The script displays values from the JSON report inside
//! the page, and only as text nodes.

mod charts;
mod colours;
mod column;
mod device_time;
mod devices;
mod digits;
mod function_shares;
mod icicle;
mod kernels;
mod lead;
mod page;
mod prose;
mod rows;
mod run_kernels;

use std::ops::Add;

use maud::{Markup, PreEscaped, html};

pub use page::page;

use crate::analysis::Analysis;
use crate::column::Sheet;
use crate::figure::Figure;
use crate::groups;
use crate::marks::Printed;
use crate::notes::{self, Note, Severity};
use crate::series::saturating_sum;
use crate::units::{self, printable};
use crate::{Process, Series, Snapshot};

/// The number of digits shown for most times.
const DIGITS: u8 = 3;

const STYLE: &str = include_str!("page.css");
/// The page's script. Its parts share one scope, in this order.
const SCRIPT: &str = concat!(
    "\"use strict\";\n(() => {\n",
    include_str!("script/elements.js"),
    include_str!("script/charts.js"),
    include_str!("script/details.js"),
    include_str!("script/table.js"),
    include_str!("script/tree.js"),
    include_str!("script/names.js"),
    include_str!("script/page.js"),
    "})();\n",
);

impl Snapshot {
    /// Returns the report as one self-contained HTML page. Scripts sort and filter its rows and
    /// draw charts for each. Without scripts, it is a table.
    pub fn to_html(&self) -> String {
        self.analyzed(|analysis| analysis.html())
    }
}

impl Analysis<'_> {
    /// Returns the report as one self-contained HTML page.
    pub fn html(&self) -> String {
        let analysis = self;
        let Analysis { snapshot, lead, .. } = analysis;
        let mut groups = groups::of(analysis);
        let left_out = rows::leave_out(&mut groups);
        let has_rows = |at: usize| groups.iter().any(|group| group.at == at);
        let sites = (0..snapshot.sites.len()).filter(|at| left_out == 0 || has_rows(*at));
        let sites: Vec<usize> = sites.collect();
        let data = charts::json(snapshot, &sites);
        let process = &snapshot.process;
        let printed = Printed::default();
        let notes = notes::of(analysis);
        let body = html! {
            (head(process))
            (lead::lead(lead, lead.first.as_ref().is_some_and(|first| has_rows(first.site))))
            (devices::panel(analysis, &printed))
            (tiles(analysis, &printed))
            (warnings(process, lines(&notes, Severity::Warning)))
            (icicle::tree(analysis, &printed))
            (rows::table(&groups, left_out, &sites, &Sheet::of(analysis, &printed, DIGITS)))
            (run_kernels::table(&analysis.kernels, &printed))
            (list("What to do", &lines(&notes, Severity::Advice)))
            (list("Notes", &[lines(&notes, Severity::Fact), printed.explanations(snapshot)].concat()))
            footer { "gpu-time " (printable(&process.version)) }
            script type="application/json" id="report" { (PreEscaped(inert(&data))) }
        };
        page(&printable(&process.name), STYLE, Some(SCRIPT), &body)
    }
}

/// Returns the notes of a severity. Those at the top name one function each.
fn lines(notes: &[Note], severity: Severity) -> Vec<String> {
    let notes = notes.iter().filter(|note| note.severity == severity);
    let named = if severity == Severity::Fact { notes::NAMED } else { 1 };
    notes.map(|note| note.line(named)).collect()
}

/// Renders sentences below a heading, or nothing if there are none.
fn list(heading: &str, notes: &[String]) -> Markup {
    html! {
        @if !notes.is_empty() {
            h2 { (heading) }
            ul.notes { @for note in notes { li { (prose::prose(note)) } } }
        }
    }
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
                    @if let Some(provenance) = process.provenance() { " · " (printable(&provenance)) }
                }
            }
            button.theme type="button" hidden title="light or dark" aria-label="light or dark" { "◐" }
        }
    }
}

/// Renders the headline figures, without those of which the program has none.
fn tiles(analysis: &Analysis, printed: &Printed) -> Markup {
    let Analysis { snapshot, gpus, .. } = analysis;
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
    let busy = gpus.iter().map(|gpu| gpu.busy).reduce(Figure::add);
    let busy = busy.filter(|busy| busy.value > 0.0);
    let calls = saturating_sum(sites.iter().map(|site| site.calls));
    let called = sites.iter().filter(|site| site.calls > 0).count();
    let tile = |name: &str, value: Markup| html! { div.tile { dt { (name) } dd { (value) } } };
    html! {
        dl.tiles {
            @if let Some(busy) = busy {
                (tile("GPU busy in functions", html! { (busy.print(&units::time(busy.value), printed)) }))
            }
            @if !sites.is_empty() {
                (tile("functions called", html! { (units::count(called as u64)) small { " of " (units::count(sites.len() as u64)) } }))
                (tile("calls", html! { (units::count(calls)) }))
            }
            @if gpu_samples > 0 { (tile("GPU samples", html! { (units::count(gpu_samples)) })) }
            @if opened > 0 { (tile("recorded calls", html! { (units::count(opened)) })) }
            @if host_samples > 0 { (tile("host samples", html! { (units::count(host_samples)) })) }
            @if gpu_samples > 0 { (tile("fed", html! { (units::share(fed as f64, gpu_samples as f64)) })) }
            @if calls > 0 { (tile("lost", html! { span.bad[lost > 0] { (units::count(lost)) } })) }
        }
    }
}

fn warnings(process: &Process, warnings: Vec<String>) -> Markup {
    let off = process.off.is_some();
    let why_off = process.off.as_ref().map(|why| format!("nothing was timed on a GPU: {why}"));
    let warnings: Vec<String> = why_off.into_iter().chain(warnings).collect();
    html! {
        @if !warnings.is_empty() {
            details.warnings.off[off] open {
                summary {
                    (warnings.len()) @if warnings.len() == 1 { " warning" } @else { " warnings" }
                }
                ul { @for warning in warnings { li { (prose::prose(&warning)) } } }
            }
        }
    }
}

#[cfg(test)]
mod tests;
