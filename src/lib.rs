#![doc = concat!(include_str!("links.md"), include_str!("../README.md"))]

#[cfg(all(doc, not(doctest)))]
pub mod guide;

pub use gpu_time_macros::gpu_timed;

#[cfg(feature = "enabled")]
pub use gpu_time_runtime::{
    BackToBack, Budget, Bytes, ClockError, Clocks, Configure, Device, Eviction, Flops, FlushProof,
    Histogram, Launch, Launches, LockedClocks, Process, ReadError, Series, Settle, Settled, Site,
    Slot, Snapshot, Stats, Timeline, Unmet, configure, lock_clocks, publish, report, set_enabled,
    snapshot, until_stable,
};

/// Items named by generated code. This is not a public interface.
#[cfg(feature = "enabled")]
#[doc(hidden)]
pub use gpu_time_runtime::private as __private;

#[cfg(not(feature = "enabled"))]
mod off;
#[cfg(not(feature = "enabled"))]
pub use off::{
    BackToBack, Budget, Bytes, ClockError, Clocks, Configure, Device, Eviction, Flops, FlushProof,
    Histogram, Launch, Launches, LockedClocks, Process, ReadError, Series, Settle, Settled, Site,
    Slot, Snapshot, Stats, Timeline, Unmet, configure, lock_clocks, publish, report, set_enabled,
    snapshot, until_stable,
};
