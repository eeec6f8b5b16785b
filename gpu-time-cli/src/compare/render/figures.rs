//! Text that all formats share.

use gpu_time_report::judge::Change;
use gpu_time_report::units;

/// The title of a control comparison.
pub const CONTROL: &str = "control: the old program against itself";

/// The titles of the columns.
pub const COLUMNS: [&str; 6] = ["function", "base", "new", "change", "95% interval", "verdict"];

/// The same of kernels.
pub const KERNEL_COLUMNS: [&str; 6] =
    ["kernel", "base", "new", "change", "95% interval", "verdict"];

/// Returns the figures of a row, in the order of [`COLUMNS`] without the first.
pub fn figures(change: &Change) -> [String; 5] {
    let [base, new] = [change.base_median_ns, change.new_median_ns].map(units::time);
    let interval = change
        .interval
        .map(|[low, high]| format!("{} to {}", units::change(low), units::change(high)));
    [
        base,
        new,
        change.share.map(units::change).unwrap_or_default(),
        interval.unwrap_or_default(),
        change.to_string(),
    ]
}
