//! A comparison as a page.

use gpu_time_report::{page, printable};
use maud::{Markup, html};

use super::chart;
use super::figures::{COLUMNS, CONTROL, figures};
use crate::compare::comparison::{Comparison, Row};

const STYLE: &str = "
:root { color-scheme: light dark; --base: #5b7fa6; --new: #d9822b; --slower: #c62828; --faster: #2e7d32; }
@media (prefers-color-scheme: dark) { :root { --slower: #ff8a80; --faster: #81c784; } }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 68rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .7rem; border-bottom: 1px solid #8884; text-align: right; }
th:first-child, td:first-child, th:last-child, td:last-child { text-align: left; }
td:first-child { overflow-wrap: anywhere; }
.slower { color: var(--slower); font-weight: 600; } .faster { color: var(--faster); font-weight: 600; }
.same { opacity: .65; }
figure { margin: 1.5rem 0; } figcaption { font-weight: 600; overflow-wrap: anywhere; }
svg { width: 100%; max-width: 44rem; } svg text { font-size: 12px; fill: currentColor; }
svg line { stroke: currentColor; }
path.base, circle.base { fill: var(--base); fill-opacity: .55; } path.new, circle.new { fill: var(--new); fill-opacity: .55; }
.key { display: inline-block; width: .8em; height: .8em; margin: 0 .3em 0 1em; }
";

/// Renders a comparison with the distributions of each series, and its control below it.
pub fn text(comparison: &Comparison, control: Option<&Comparison>) -> String {
    let summary = comparison.summary();
    let body = html! {
        h1 { (summary) }
        (part(comparison))
        @if let Some(control) = control {
            h2 { (CONTROL) }
            p { (control.summary()) }
            (part(control))
        }
        h2 { "Distributions" }
        p {
            span.key style="background: var(--base)" {} "base"
            span.key style="background: var(--new)" {} "new"
            ". A dot is the median of a run."
        }
        @for row in &comparison.rows { (distribution(row)) }
        footer { "gpu-time " (env!("CARGO_PKG_VERSION")) }
    };
    page(&summary, STYLE, None, &body) + "\n"
}

fn part(comparison: &Comparison) -> Markup {
    html! {
        table {
            thead { tr { @for column in COLUMNS { th { (column) } } } }
            tbody {
                @for row in &comparison.rows {
                    tr {
                        td { (printable(&row.name)) }
                        @let figures = figures(&row.change);
                        @for figure in figures.iter().take(4) { td { (figure) } }
                        td class=(row.change.verdict.name()) { (figures[4]) }
                    }
                }
            }
        }
        @let lists = comparison.unmatched();
        @let notes = comparison.all_notes();
        @if !notes.is_empty() || lists.iter().any(|(_, names)| !names.is_empty()) {
            ul {
                @for (title, names) in lists {
                    @for name in names { li { (title) ": " (printable(name)) } }
                }
                @for note in &notes { li { (printable(note)) } }
            }
        }
    }
}

fn distribution(row: &Row) -> Markup {
    html! {
        @if let Some(chart) = chart::draw(&row.pair) {
            figure {
                figcaption { (printable(&row.name)) }
                (chart)
            }
        }
    }
}
