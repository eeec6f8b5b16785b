//! Marks and words used in cells of the table and the page, and explained in the notes.

/// Marks a time that may be longer than the timed work.
pub const UPPER_BOUND: &str = "≤";
/// Marks a rate that may be higher.
pub const LOWER_BOUND: &str = "≥";
/// Marks a total that is estimated from a sample of the calls.
pub const ESTIMATE: &str = "~";
/// Marks a row that was timed between two stream barriers.
pub const SYNC: &str = "sync";
/// Marks a row that was timed only by the host clock.
pub const HOST: &str = "host";
/// Marks a row whose times are the busy times of opened calls.
pub const KERNELS: &str = "kernels";
/// Precedes the number of launches per call.
pub const PER_CALL: &str = "×";
/// Marks times that still include the device's bias.
pub const RAW: &str = "raw";
/// The header of the bandwidth column.
pub const GB_PER_S: &str = "GB/s";
/// The header of the floating-point throughput column.
pub const TFLOP_PER_S: &str = "TFLOP/s";
