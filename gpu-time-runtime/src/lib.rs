//! The runtime of [gpu-time](https://docs.rs/gpu-time): records events around GPU work, collects the
//! times and writes the report.
//!
//! Depend on `gpu-time`, not on this crate. It re-exports the public items, and the code that
//! `#[gpu_timed]` generates calls the hidden ones.
//!
//! # From a call to the report
//!
//! Every annotated function has a static `CallSite`. A call of the function
//!
//! 1. decides whether it is timed: filter, sampling, warm-up, capture state of the stream;
//! 2. opens a `Scope`, which records an event on the stream before and after the work: a *bracket*;
//! 3. returns without waiting for the GPU. The bracket is pending in the thread's recorder.
//!
//! Later calls of the thread, and every report, drain the brackets that the GPU has passed. Each becomes
//! a sample of a series: one per function or launch, device, cache state and key. A [`Snapshot`] has the
//! statistics of all series.
//!
//! The folders of the crate are layers. The first line of each `mod.rs` says what the layer is for, and
//! the test `tests/workspace/tests/layers.rs` has their order.

#[cfg(not(target_os = "linux"))]
compile_error!(
    "gpu-time measures on Linux only: build without its feature `enabled` on other systems, where the \
     attribute does nothing"
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

use crate::base::{fork, inside, switches};
#[doc(hidden)]
pub use config::output::write_file;
pub use control::configure::{Configure, configure};
pub use gpu_time_report::{
    Budget, Bytes, Clocks, Device, Eviction, Flops, FlushProof, Histogram, Launch, Launches,
    Process, ReadError, Series, Site, Slot, Snapshot, Stats, Timeline,
};
pub use lifecycle::clocks::{ClockError, LockedClocks, lock_clocks};
pub use settle::{BackToBack, Settle, Settled, Unmet};

/// Writes the report now, to the targets in `GPU_TIME_REPORT` or [`Configure::report`]: by default a
/// table on stderr.
///
/// The report covers everything measured since the start of the process. Work that the GPU has not
/// finished is counted as in flight; this function never waits for it. While no timed work is in flight,
/// a few milliseconds are spent on checking whether the event bias has changed.
///
/// The report is also written when the process ends, so most programs never call this.
///
/// Does nothing in a child process that was forked after the first call of a timed function.
pub fn report() {
    let _inside = inside::enter();
    collect::report();
}

/// Returns everything measured so far, as values.
///
/// Like [`report`], this never waits for the GPU: [`Snapshot`] counts unfinished work as in flight.
pub fn snapshot() -> Snapshot {
    let _inside = inside::enter();
    collect::snapshot()
}

/// Publishes new counts and times through the [`metrics`](https://docs.rs/metrics) facade at once.
///
/// With the feature `metrics`, a background thread does this about once a second. Call it where the
/// values must be current: in a handler that renders the metrics, or at the end of `main`. Never waits
/// for the GPU.
///
/// Does nothing without the feature `metrics`.
pub fn publish() {
    let _inside = inside::enter();
    export::publish();
}

/// Calls `closure` repeatedly until the times of the functions that it calls are known well enough, and
/// returns the measurements of this run.
///
/// # When it stops
///
/// The run covers the annotated functions that are called while it lasts, on any thread. A series of
/// such a function has *settled* when
///
/// - this run gave it at least [`min_samples`](Settle::min_samples) samples, and
/// - the 95 % confidence interval of its median is narrower than the [`margin`](Settle::margin).
///
/// The run ends when all series have settled, or after the [`timeout`](Settle::timeout).
/// [`Settled::unmet`] lists the series that have not settled, with the reasons. Because the interval is
/// checked repeatedly until it is narrow, it holds the true median slightly less often than in 95 % of
/// runs.
///
/// The closure is called only once if that call starts no measurement: timing is off, the filter
/// excludes the functions, or there is no GPU. A series whose samples are all lost is not waited for. A
/// function that is called in only a few iterations keeps the run going until the timeout.
///
/// # What it measures
///
/// The result contains the samples of this run only. The report at the end of the process contains
/// all samples, those of the run included.
///
/// The run adds no work to the GPU. It checks the figures between calls, in about 1 % of the time, and
/// does not wait for the GPU between calls. If the closure does not wait either, the last samples are
/// still in flight when the run ends and get 0.2 s to finish; samples of earlier calls get the same time
/// at the start. The first calls of a function are warm-up, as its attribute says. Functions with
/// `clock = "host"` settle like others.
///
/// With [`Settle::graph`], calls are timed back to back instead, and the run waits for their stream.
///
/// # Nesting and panics
///
/// Runs may be nested or concurrent, and each decides on its own when to stop. If they ask for different
/// cache states, the one that began last prevails. A panic of the closure is passed on to the caller.
pub fn until_stable(settle: Settle, mut closure: impl FnMut()) -> Settled {
    let _inside = inside::enter();
    settle::run(settle, || inside::outside(&mut closure))
}

/// Turns timing on or off for all threads.
///
/// Timing is on when the process starts. `GPU_TIME=off` cannot be overridden. Calls in progress are
/// measured to their end. Turning timing off releases the streams that are held for a bracket (`sleep`),
/// and those brackets do not count as fed.
pub fn set_enabled(on: bool) {
    let _inside = inside::enter();
    switches::switch(on);
    if !on && !fork::is_forked() {
        for context in cuda::contexts() {
            context.release_holds(false);
        }
    }
}
