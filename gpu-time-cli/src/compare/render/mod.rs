//! The result of a comparison as text.

mod table;

use clap::ValueEnum;
use gpu_time_report::Terminal;

use super::change::Change;
use super::comparison::Comparison;

/// An output format of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table for reading, in colour on a terminal.
    Table,
}

/// Renders a comparison, and the control of the same experiment if there is one.
pub fn text(comparison: &Comparison, control: Option<&Comparison>, format: Format) -> String {
    match format {
        Format::Table => table::text(comparison, control, Terminal::stdout()),
    }
}

/// The title of each column but the name.
const COLUMNS: [&str; 5] = ["base", "new", "change", "95 % interval", "verdict"];

/// Returns the figures of a row, in the order of [`COLUMNS`].
fn figures(change: &Change) -> [String; 5] {
    let [base, new] = change.medians_ns.map(gpu_time_report::units::time);
    let interval =
        change.interval.map(|[low, high]| format!("{} to {}", percent(low), percent(high)));
    [
        base,
        new,
        change.share.map(percent).unwrap_or_default(),
        interval.unwrap_or_default(),
        change.to_string(),
    ]
}

fn percent(share: f64) -> String {
    format!("{:+.1}%", 100.0 * share)
}
