//! The runtime of [gpu-time](https://docs.rs/gpu-time): records events around GPU work, or the work
//! itself, collects the times and writes the report.
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
//! With the feature `kernels`, a call that begins in a phase has no bracket. It is *recorded*: CUPTI records the work
//! that it enqueues, and a thread of the runtime matches the records to its launches.
//!
//! The thread's later calls, and every report, drain the brackets that the GPU has passed. Each
//! becomes a sample in a series: there is one series per function or launch, device, cache state
//! and key. A [`Snapshot`] contains the statistics for all series.
//!
//! The crate's folders are layers. The first line of each `mod.rs` describes the layer, and the
//! test `tests/workspace/tests/layers.rs` defines their order.

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
#[cfg_attr(not(feature = "kernels"), path = "cupti/off.rs")]
mod cupti;
#[cfg(feature = "metrics")]
mod export;
mod gpu;
#[cfg_attr(not(feature = "nvml"), path = "health/off.rs")]
mod health;
mod lifecycle;
#[cfg_attr(not(feature = "nvtx"), path = "nvtx/off.rs")]
mod nvtx;
#[doc(hidden)]
pub mod private;
mod record;
mod settle;
mod site;
mod stats;
#[cfg(feature = "nvml")]
#[doc(hidden)]
pub mod tools;
mod types;

use std::time::Duration;

use crate::base::{fork, inside, switches};
pub use call::default_stream::{set_default_stream, set_thread_default_stream};
#[cfg(feature = "tracing")]
pub use call::spans::{Spans, spans};
#[cfg(fuzzing)]
#[doc(hidden)]
pub use config::fuzzing;
#[doc(hidden)]
pub use config::report_file::write_file;
pub use control::configure::{Configure, configure};
pub use gpu_time_report::{
    Budget, Bytes, Clocks, Coverage, Dependence, Device, Elsewhere, ElsewhereReason, Eviction,
    Flops, FlushProof, Histogram, Kernel, KernelTimes, Launch, Launches, Modes, Node, PerCall,
    PhaseKernel, Process, ReadError, Run, Series, Site, Slot, Snapshot, Stats, Timeline, Trend,
    UnknownError, Utilization, WindowsFrom,
};
pub use lifecycle::clocks::{ClockError, LockedClocks, lock_clocks};
pub use settle::{BackToBack, Compared, Ratio, Settle, Settled, Unmet};
pub use types::attribute::{Clock, Remark, ScopeKind};
pub use types::gpu_stream::{
    GpuStream, LEGACY_STREAM, NULL_STREAM, PER_THREAD_STREAM, RawStream, raw_stream,
};
pub use types::sample::{CacheState, Losses, Lost, Measure};

/// Writes the report now, to the targets in `GPU_TIME_REPORT` or [`Configure::report`]: by default a
/// table on stderr.
///
/// The report covers everything measured since the process started. Work that the GPU has not
/// finished is counted as in flight; this function never waits for it. If no timed work is in
/// flight, it spends a few milliseconds checking whether the event bias has changed.
///
/// The report is also written when the process ends, so most programs never need to call this.
///
/// Has no effect in a child process forked after the first call of a timed function.
pub fn report() {
    let Some(_call) = fork::begin_call() else { return };
    collect::report();
}

/// Returns everything measured so far, as values.
///
/// Like [`report`], this never waits for the GPU: [`Snapshot`] counts unfinished work as in flight.
pub fn snapshot() -> Snapshot {
    match fork::begin_call() {
        Some(_call) => collect::snapshot(),
        None => collect::snapshot_in_child(),
    }
}

/// Immediately publishes new counts and times through the [`metrics`](https://docs.rs/metrics)
/// facade.
///
/// With the `metrics` feature, a background thread does this about once a second. Call it where the
/// values must be current: in a handler that renders the metrics, or at the end of `main`. Never
/// waits for the GPU.
///
/// Does nothing without the `metrics` feature.
pub fn publish() {
    let Some(_call) = fork::begin_call() else { return };
    #[cfg(feature = "metrics")]
    export::publish();
}

/// Calls `closure` repeatedly until the times of the functions that it calls are known precisely
/// enough. Returns the measurements from this run.
///
/// # When it stops
///
/// The run covers all annotated functions called while it lasts, on any thread. A series has
/// *settled* when
///
/// - this run gave it at least [`min_samples`](Settle::min_samples) samples, and
/// - the 95 % confidence interval of its median is narrower than the [`margin`](Settle::margin), and
/// - its times neither drift nor switch between levels during the run, and enough of them are independent.
///
/// The run ends when all series have settled, or after the [`timeout`](Settle::timeout).
/// [`Settled::unmet`] lists the series that have not settled, with the reasons. Each check that does
/// not end the run widens the interval, so that it contains the median as often as an interval that is
/// checked only once.
///
/// The closure is called only once if that call starts no measurement, because timing is off, the
/// filter excludes the functions, or there is no GPU. A series whose samples are all lost is not
/// waited for. A function that is called in only a few iterations keeps the run going until the
/// timeout.
///
/// # What it measures
///
/// The result contains only this run's samples. The report at the end of the process contains all
/// samples, including those from the run.
///
/// The run adds no work to the GPU. It checks the results between calls, which takes about 1 % of
/// the time, and does not wait for the GPU between calls. If the closure does not wait either, the
/// last samples are still in flight when the run ends. They are given 0.2 s to finish, as are
/// samples from earlier calls at the start of the run. A function's first calls are warm-up calls,
/// as set by its attribute. Functions with `clock = "host"` settle like others.
///
/// With [`Settle::graph`], calls are timed back to back instead, and the run waits for their stream.
///
/// # Nesting and panics
///
/// Runs of several threads, as in tests of one binary, take turns, also with those of [`compare`]. A run waits for at most
/// a minute. Runs may be nested, and each decides separately when to stop. If they request different cache states, the
/// run that began last takes precedence. A panic in the closure is passed on to the caller.
///
/// Phases of recording begin only if functions that need records are called. If all functions need them, every call is
/// recorded.
pub fn until_stable(settle: Settle, mut closure: impl FnMut()) -> Settled {
    match fork::begin_call() {
        Some(_call) => settle::run(settle, || inside::outside(&mut closure)),
        None => settle::run_in_child(closure),
    }
}

/// Compares two closures, which take turns. Returns, for each function, the ratio of its time in the second
/// closure to its time in the first.
///
/// ```no_run
/// # fn old() {}
/// # fn new() {}
/// # use gpu_time_runtime::{Settle, compare};
/// let compared = compare(Settle::default(), ("old", || old()), ("new", || new()));
/// println!("{compared}");
/// compared.assert_not_slower(1.02);
/// ```
///
/// The calls run in blocks of four batches, in the order base, new, new, base or new, base, base, new
/// at random, which cancels a drift of the clock. A batch takes about 2 ms, and is followed by a wait
/// for the GPU. The functions' own attributes (warm-up, flush, hold) apply. Each block gives one ratio
/// of medians for every function that both closures call or, if they call different functions, for
/// their total.
///
/// The run ends when the 95 % interval of every ratio is within the [`margin`](Settle::margin) to
/// either side and [`min_time`](Settle::min_time) has passed, or after the
/// [`timeout`](Settle::timeout). The intervals are valid whenever it ends. The cache states of
/// [`Settle`], such as [`Settle::cold`], apply; [`Settle::graph`] and [`Settle::min_samples`] do not.
/// Each closure is called only once if that measures nothing.
pub fn compare(
    settle: Settle,
    (base, mut of_base): (&str, impl FnMut()),
    (new, mut of_new): (&str, impl FnMut()),
) -> Compared {
    let Some(_call) = fork::begin_call() else {
        return settle::compare::run_in_child([(base, &mut of_base), (new, &mut of_new)]);
    };
    let mut of_base = || inside::outside(&mut of_base);
    let mut of_new = || inside::outside(&mut of_new);
    settle::compare::run(settle, [(base, &mut of_base), (new, &mut of_new)])
}

/// Records everything that the process enqueues in the next `length`, up to an hour: a *phase*, besides those that
/// [`Configure::record`] plans.
///
/// Does not block: a background thread begins the phase, within a second once a device has a primary context or a
/// timed call uses a GPU. With a [budget](Configure::budget) below 0.5, none begins. If a phase is in progress, the
/// next one follows it. Calls that begin in the phase are recorded with all calls inside of them, and
/// [`Device::coverage`] tells how busy the devices were. Phases that a program asks for describe the moments that it
/// chooses; planned ones begin at random times.
///
/// Does nothing without the `kernels` feature, with `GPU_TIME=off`, or in a forked child. A child forked after
/// this call is not timed, like one forked after the first call of a timed function.
pub fn record_phase(length: Duration) {
    let Some(_call) = fork::begin_call() else { return };
    control::active::record_phase(Some(length));
}

/// Turns timing on or off for all threads.
///
/// Timing is on when the process starts. `GPU_TIME=off` cannot be overridden. Calls in progress are
/// measured to the end. Turning timing off releases streams that are being held for a bracket
/// (`sleep`), and those brackets do not count as fed.
pub fn set_enabled(on: bool) {
    let Some(_call) = fork::begin_call() else { return };
    switches::switch(on);
    record::phase::window::wake();
    if !on {
        cuda::release_holds(false);
    }
}
