//! Marks and words that the table and the page show in a cell, and the notes explain.

/// Marks a time that may be longer than the work.
pub const UPPER_BOUND: &str = "≤";
/// Marks a rate that may be higher.
pub const LOWER_BOUND: &str = "≥";
/// Marks a total that is estimated from a sample of the calls.
pub const ESTIMATE: &str = "~";
/// Marks a row that was timed between two stream barriers.
pub const SYNC: &str = "sync";
/// Marks a row that was timed by the host's clock alone.
pub const HOST: &str = "host";
/// Marks times that still contain the device's bias.
pub const RAW: &str = "raw";
/// The header of the bandwidth column.
pub const GB_PER_S: &str = "GB/s";
/// The header of the column of floating-point throughput.
pub const TFLOP_PER_S: &str = "TFLOP/s";
