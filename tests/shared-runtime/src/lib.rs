//! gpu-time as a shared library.

pub use gpu_time;
