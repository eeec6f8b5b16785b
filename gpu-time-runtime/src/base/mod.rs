//! Process-wide plumbing that knows nothing about GPUs: locks, clocks, threads, fork, signals, stderr.

#[cfg(test)]
pub(crate) mod allocations;
pub(crate) mod background;
pub(crate) mod clock;
pub(crate) mod console;
pub(crate) mod fork;
pub(crate) mod lock;
pub(crate) mod rounds;
#[cfg(any(feature = "nvml", feature = "signals"))]
pub(crate) mod signals;
pub(crate) mod switches;
pub(crate) mod thread_id;
