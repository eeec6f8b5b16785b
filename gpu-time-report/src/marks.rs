//! Marks and words used in cells of the table and the page, and explained in the notes.

/// Marks a time that may be longer than the timed work.
pub const UPPER_BOUND: &str = "≤";
/// Marks a share that may be too large or too small, because a time that it is computed from is an
/// upper bound.
pub const UNCERTAIN: &str = "?";
/// Marks a rate that may be higher.
pub const LOWER_BOUND: &str = "≥";
/// Marks a total that is estimated from a sample of the calls.
pub const ESTIMATE: &str = "~";
/// The header of the column with the standard errors of estimated totals.
pub const ERROR: &str = "±";
/// Marks a row that was timed between two stream barriers.
pub const SYNC: &str = "sync";
/// Marks a row that was timed only by the host clock.
pub const HOST: &str = "host";
/// Marks a row whose times are the busy times of opened calls.
pub const KERNELS: &str = "kernels";
/// Marks a launch in a graph, which has samples of replays.
pub const GRAPH: &str = "graph";
/// Precedes the number of launches per call.
pub const PER_CALL: &str = "×";
/// Marks times that still include the device's bias.
pub const RAW: &str = "raw";
/// The header of the column with shares of all GPU time.
pub const SHARE: &str = "share";
/// The header of the column with the mean GPU time per call in the call tree. Explained where totals have
/// work that it lacks.
pub const GPU_PER_CALL: &str = "GPU/call";
/// The header of the bandwidth column.
pub const GB_PER_S: &str = "GB/s";
/// The header of the floating-point throughput column.
pub const TFLOP_PER_S: &str = "TFLOP/s";

/// Returns the mark of a figure that is only an upper bound, or nothing.
#[cfg(feature = "html")]
pub fn bound(is_bound: bool) -> &'static str {
    if is_bound { UPPER_BOUND } else { "" }
}
