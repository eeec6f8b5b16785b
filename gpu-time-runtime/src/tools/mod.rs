//! What the command-line tool does to a machine rather than to a report: `calibrate` and `doctor`. This is
//! not a public interface and may change without notice.

#[cfg(feature = "kernels")]
pub mod calibrate;
pub mod doctor;
