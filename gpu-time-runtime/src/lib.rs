//! The measuring half of [gpu-time](https://docs.rs/gpu-time), which is what to depend on.
//!
//! Data flows one way: a `CallSite` per annotated function, a decision per call, a `Scope` while it
//! runs, brackets of two events on its stream, a sample once the GPU has passed them, a series per
//! row, a report.

#[cfg(not(target_os = "linux"))]
compile_error!(
    "gpu-time measures on Linux only: elsewhere build without its feature `enabled`, and the attribute \
     does nothing"
);

mod base;
mod call;
mod collect;
mod config;
mod control;
mod cuda;
#[cfg(feature = "nvml")]
#[doc(hidden)]
pub mod doctor;
#[cfg_attr(not(feature = "metrics"), path = "export/off.rs")]
mod export;
mod gpu;
#[cfg_attr(not(feature = "nvml"), path = "health/off.rs")]
mod health;
mod lifecycle;
#[doc(hidden)]
pub mod private;
mod record;
mod settle;
mod site;
mod stats;
mod types;

use crate::base::fork;
use crate::base::switches;
#[doc(hidden)]
pub use config::output::write_file;
pub use control::configure::{Configure, configure};
pub use gpu_time_report::{
    Budget, Bytes, Clocks, Device, Eviction, Flops, FlushProof, Histogram, Launch, Launches,
    Process, ReadError, Series, Site, Slot, Snapshot, Stats, Timeline,
};
pub use lifecycle::clocks::{ClockError, LockedClocks, lock_clocks};
pub use settle::{BackToBack, Settle, Settled, Unmet};

/// Looks after what the GPU has finished, and writes the report to where `GPU_TIME_REPORT` says: by
/// default as a table to stderr. Never waits for the GPU's work; where none of what is timed is under
/// way, a few milliseconds go into looking whether the event bias has moved.
pub fn report() {
    collect::report();
}

/// The same as values.
pub fn snapshot() -> Snapshot {
    collect::snapshot()
}

/// Looks after what the GPU has finished, and publishes what is new through the `metrics` facade, to the
/// recorder that is installed. With the feature `metrics` that happens about once a second by itself;
/// this is for whoever wants it at once, such as a handler that renders the metrics, or the end of
/// `main`. Without the feature it does nothing. Never waits for the GPU's work.
pub fn publish() {
    export::publish();
}

/// Calls the closure until the times of everything that it touches are known well enough, or time is
/// up, and gives a snapshot of that, which says what was not.
///
/// It touches the annotated functions that are called while it runs, on whichever thread. Each of
/// their series has **settled** when this run gave it [`min_samples`](Settle::min_samples) and the 95 %
/// interval of its median is narrower than the [`margin`](Settle::margin). Both are of this run's samples,
/// and so is what the result says of the functions: what was measured before is in the report at the
/// process's end, which is of everything, and not in here. Asking again and again until it is narrow, the
/// interval holds the true median a little less often than 95 %.
///
/// What it times is what the closure enqueues: nothing is added but a look at the figures between calls
/// now and then, which takes about 1 % of the time. The GPU is not waited for in between. Where the closure
/// does not do that either, the last samples lag behind; at the end they get 0.2 s, as those of earlier
/// calls do at the beginning. The first calls of a
/// function warm up as its attribute says.
///
/// It returns after a single call where that began nothing to be timed: if timing is off, if everything
/// is filtered out, or if there is no GPU. Functions that the host clock times settle as others do. A
/// series that had samples enough but lost all of them is not waited for; what is timed once and never
/// again keeps the closure being called to the [`timeout`](Settle::timeout).
///
/// With [`graph`](Settle::graph) it times calls back to back instead, and waits for their stream.
///
/// A run inside of another, or beside it on another thread, goes its own way; of what they want of the
/// L2, the one that began last has it. A panic of the closure passes through.
pub fn until_stable(settle: Settle, closure: impl FnMut()) -> Settled {
    settle::run(settle, closure)
}

/// Turns timing on or off from here on, in all threads. `GPU_TIME=off` wins over it. Calls under way
/// are measured to their end; streams that are held until a bracket has been enqueued are let go, and
/// such a bracket does not count as fed.
pub fn set_enabled(on: bool) {
    switches::switch(on);
    if !on && !fork::is_forked() {
        for context in cuda::contexts() {
            context.release_holds(false);
        }
    }
}
