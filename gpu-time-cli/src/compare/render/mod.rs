//! The result of a comparison as text.

mod chart;
mod figures;
mod html;
mod json;
mod markdown;
mod table;

use clap::ValueEnum;
use gpu_time_report::Terminal;

use super::comparison::Comparison;

/// An output format of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ComparisonFormat {
    /// A table for reading, in colour on a terminal.
    Table,
    /// All figures, for scripts.
    Json,
    /// A comment for a pull request.
    Markdown,
    /// A self-contained page that draws both distributions of each series.
    Html,
}

/// Renders a comparison, and its control if there is one: the old program against itself.
pub fn text(
    comparison: &Comparison,
    control: Option<&Comparison>,
    format: ComparisonFormat,
) -> String {
    match format {
        ComparisonFormat::Table => table::text(comparison, control, Terminal::stdout()),
        ComparisonFormat::Json => json::text(comparison, control),
        ComparisonFormat::Markdown => markdown::text(comparison, control),
        ComparisonFormat::Html => html::text(comparison, control),
    }
}
