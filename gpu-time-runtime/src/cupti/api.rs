//! The types through which other folders use CUPTI, with and without the feature `kernels`.

use crate::types::activity::EnqueueCall;

/// Functions to call on the launching thread while CUPTI records. They must not panic, lock or call the driver, and
/// must seldom allocate. Launches of the runtime itself are observed too.
#[derive(Clone, Copy)]
#[cfg_attr(not(feature = "kernels"), allow(dead_code, reason = "only recording calls them"))]
pub(crate) struct LaunchObserver {
    /// Called when a call that enqueues work begins.
    pub launched: fn(EnqueueCall),
    /// Called when the call with this correlation id has failed. It has enqueued nothing.
    pub failed: fn(u32),
}

/// Says which records a drain takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DrainKind {
    /// The records in buffers that are full. Launches do not notice.
    Completed,
    /// All complete records. CUPTI is flushed, and launches on other threads wait meanwhile.
    Flushed,
    /// Incomplete records as well, for the last report.
    Last,
}

/// The outcome of a drain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DrainOutcome {
    /// `false` if no flush was wanted, another thread is loading code, or CUPTI refused.
    pub has_flushed: bool,
    /// A lower bound on the number of records that CUPTI never wrote.
    pub dropped: u64,
}
