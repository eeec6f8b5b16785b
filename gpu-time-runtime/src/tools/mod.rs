//! Commands of the tool that act on a machine rather than on a report: `calibrate` and `doctor`. This is
//! not a public interface and may change without notice.

#[cfg(feature = "kernels")]
pub mod calibrate;
pub mod doctor;

pub use crate::base::progress::Progress;
