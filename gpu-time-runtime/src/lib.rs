//! The measuring half of [gpu-time](https://docs.rs/gpu-time), which is what to depend on.
//!
//! Data flows one way: a `CallSite` per annotated function, a decision per call, a `Scope` while it
//! runs, brackets of two events on its stream, a sample once the GPU has passed them, a series per
//! row, a report.

mod bias;
mod bracket;
mod calls;
mod clocks;
mod collect;
mod config;
mod counts;
mod cuda;
mod eviction;
mod exit;
#[cfg(test)]
mod fake;
mod gpu;
#[cfg_attr(not(feature = "nvml"), path = "health/off.rs")]
mod health;
mod hold_policy;
mod in_flight;
mod lane;
mod ledger;
mod passage;
mod place;

mod pool;
#[doc(hidden)]
pub mod private;
mod probe;
mod process;
mod recorder;
mod registry;
mod report;
mod rows;
mod sample;
mod scope;
mod series;
mod site;
mod stats;
mod stream;
mod track;
mod work;

pub use clocks::{ClockError, LockedClocks, lock_clocks};
pub use eviction::{Eviction, FlushProof};
pub use report::{Clocks, Device, Launch, Launches, Process, Series, Site, Snapshot};
pub use stats::Stats;

/// Looks after what the GPU has finished, and writes the report to where `GPU_TIME_REPORT` says: by
/// default as a table to stderr. Never waits for the GPU's work; where none of what is timed is under
/// way, a few milliseconds go into looking whether the event bias has moved.
pub fn report() {
    collect::check_calibrations();
    collect::write_reports();
}

/// The same as values.
pub fn snapshot() -> Snapshot {
    collect::snapshot()
}

/// Turns timing on or off from here on, in all threads. `GPU_TIME=off` wins over it. Calls under way
/// are measured to their end; streams that are held until a bracket has been enqueued are let go, and
/// such a bracket does not count as fed.
pub fn set_enabled(on: bool) {
    process::switch(on);
    if !on && !exit::is_forked() {
        for context in cuda::contexts() {
            context.release_holds(false);
        }
    }
}
