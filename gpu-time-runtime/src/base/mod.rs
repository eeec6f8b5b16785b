//! Process-wide plumbing that knows nothing about GPUs: locks, clocks, threads, fork, signals,
//! descriptors, random numbers.

pub(crate) mod at_exit;
pub(crate) mod background;
pub(crate) mod clock;
pub(crate) mod console;
pub(crate) mod environment;
pub(crate) mod file_calls;
#[cfg(test)]
pub(crate) mod fixtures;
pub(crate) mod fork;
pub(crate) mod increment;
pub(crate) mod inside;
pub(crate) mod lock;
pub(crate) mod outlet;
pub(crate) mod pin;
pub(crate) mod progress;
pub(crate) mod published;
pub(crate) mod random;
pub(crate) mod rounds;
pub(crate) mod signal_mask;
#[cfg(any(feature = "nvml", feature = "signals"))]
pub(crate) mod signals;
pub(crate) mod standard;
#[cfg(not(all(feature = "kernels", feature = "nvml")))]
pub(crate) mod stubs;
pub(crate) mod switches;
pub(crate) mod thread_bound;
pub(crate) mod thread_id;
pub(crate) mod worker;
