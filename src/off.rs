//! The same names where the feature `enabled` is off, so that code which uses them needs no `cfg`.
//!
//! There is nothing to report: no devices and no sites, whose types have no values.

use std::{fmt, iter};

const WHY: &str = "gpu-time was built without its feature `enabled`";

/// Does nothing, because the feature `enabled` is off.
pub fn report() {}

/// A snapshot of nothing, because the feature `enabled` is off.
pub fn snapshot() -> Snapshot {
    Snapshot::nothing()
}

/// Does nothing, because the feature `enabled` is off.
pub fn publish() {}

/// Does nothing, because the feature `enabled` is off.
pub fn set_enabled(_on: bool) {}

/// Answers that the features `enabled` and `nvml` are needed for it.
///
/// # Errors
///
/// Always, because the feature `enabled` is off.
pub fn lock_clocks(_mhz: u32) -> Result<LockedClocks, ClockError> {
    Err(ClockError(()))
}

/// Why the clocks were not fixed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockError(());

impl fmt::Display for ClockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{WHY}: clocks are locked with that and `nvml`")
    }
}

impl std::error::Error for ClockError {}

/// Has no values, because the feature `enabled` is off.
#[derive(Debug)]
#[must_use = "the clocks are given back when it is dropped"]
pub enum LockedClocks {}

impl LockedClocks {
    /// Never called, because there is nothing to call it on.
    pub fn sm_mhz(&self) -> impl Iterator<Item = (&str, Option<u32>)> + '_ {
        iter::empty()
    }
}

/// Options for the whole process, which do nothing because the feature `enabled` is off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "nothing happens until `apply`"]
pub struct Configure(());

/// Options that do nothing, because the feature `enabled` is off.
pub fn configure() -> Configure {
    Configure::default()
}

/// Methods that take an option and do nothing with it.
macro_rules! ignored {
    ($($option:ident: $value:ty),* $(,)?) => {
        impl Configure {
            $(
                /// Does nothing, because the feature `enabled` is off.
                pub fn $option(self, _value: $value) -> Self {
                    self
                }
            )*

            /// Does nothing, because the feature `enabled` is off.
            pub fn apply(self) {}
        }
    };
}

ignored! {
    report: &str,
    filter: &str,
    sample: impl Into<Option<f64>>,
    budget: impl Into<Option<f64>>,
    warmup: impl Into<Option<u32>>,
    cold: &str,
    sleep: &str,
    bias: &str,
    trace_last: impl Into<Option<usize>>,
}

/// A type without values, with the accessors that it has with the feature `enabled`.
macro_rules! no_values {
    ($(#[$more:meta])* $name:ident: $($accessor:ident -> $value:ty),* $(,)?) => {
        /// Has no values, because the feature `enabled` is off.
        $(#[$more])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $name {}

        impl $name {
            $(
                /// Never called, because there is nothing to call it on.
                pub fn $accessor(&self) -> $value {
                    match *self {}
                }
            )*
        }
    };
}

mod settle;
mod snapshot;

pub use settle::{BackToBack, Settle, Settled, Unmet, until_stable};
pub use snapshot::{
    Budget, Bytes, Clocks, Device, Eviction, Flops, FlushProof, Histogram, Launch, Launches,
    Process, ReadError, Series, Site, Slot, Snapshot, Stats, Timeline,
};
