//! The public API without the `enabled` feature, so that code that uses it needs no `cfg`.
//!
//! There is nothing to report: a snapshot has no devices and no sites, and their types are
//! uninhabited.

use std::ops::Deref;
use std::time::{Duration, Instant};
use std::{fmt, iter};

/// Implements accessors that return fixed values.
macro_rules! answers {
    ($($name:ident { $($accessor:ident: $value:ty = $answer:expr),* $(,)? })*) => {
        $(impl $name {
            $(
                #[doc = concat!("Returns `", stringify!($answer), "`.")]
                pub fn $accessor(&self) -> $value {
                    $answer
                }
            )*
        })*
    };
}

/// Implements builder methods that ignore their options.
macro_rules! ignored {
    ($name:ident { $($option:ident($($value:ident: $of:ty),*))* }) => {
        impl $name {
            $(
                /// Does nothing, because the `enabled` feature is off.
                pub fn $option(self $(, $value: $of)*) -> Self {
                    $(_ = $value;)*
                    self
                }
            )*
        }
    };
}

mod snapshot;
mod stream;

use snapshot::WHY;
pub use snapshot::*;
use stream::GraphStream;
pub use stream::{GpuStream, LEGACY_STREAM, NULL_STREAM, PER_THREAD_STREAM, RawStream, raw_stream};

/// Does nothing, because the `enabled` feature is off.
pub fn report() {}

/// Returns an empty snapshot, because the `enabled` feature is off.
pub fn snapshot() -> Snapshot {
    Snapshot::empty()
}

/// Does nothing, because the `enabled` feature is off.
pub fn publish() {}

/// Does nothing, because the `enabled` feature is off.
pub fn set_enabled(_on: bool) {}

/// Does nothing, because the `enabled` feature is off.
pub fn set_default_stream<S>(_stream: S) {}

/// Does nothing, because the `enabled` feature is off.
pub fn set_thread_default_stream<S>(_stream: S) {}

/// Does nothing, because the `enabled` feature is off.
pub fn open_window(_length: Duration) {}

/// Returns an error that names the `enabled` and `nvml` features.
///
/// # Errors
///
/// Always, because the `enabled` feature is off.
pub fn lock_clocks(_mhz: u32) -> Result<LockedClocks, ClockError> {
    Err(ClockError(()))
}

/// The error returned by [`lock_clocks`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockError(());

impl fmt::Display for ClockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{WHY}: locking clocks needs it and `nvml`")
    }
}

impl std::error::Error for ClockError {}

/// Uninhabited, because the `enabled` feature is off.
#[derive(Debug)]
#[must_use = "the clocks are given back when it is dropped"]
pub enum LockedClocks {}

impl LockedClocks {
    /// Never called, because this type is uninhabited.
    pub fn sm_mhz(&self) -> impl Iterator<Item = (&str, Option<u32>)> + '_ {
        iter::empty()
    }
}

/// Process-wide options, ignored because the `enabled` feature is off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "nothing happens until `apply`"]
pub struct Configure(());

/// Returns options that are ignored, because the `enabled` feature is off.
pub fn configure() -> Configure {
    Configure::default()
}

ignored! {
    Configure {
        report(targets: &str)
        filter(patterns: &str)
        sample(share: impl Into<Option<f64>>)
        budget(share: impl Into<Option<f64>>)
        warmup(calls: impl Into<Option<u32>>)
        cold(state: &str)
        sleep(time: &str)
        kernels(how: &str)
        windows(plan: &str)
        notes(which: &str)
        view(rows: &str)
        label(text: &str)
        program_version(version: &str)
        bias(ns: &str)
        trace_last(calls: impl Into<Option<usize>>)
    }
}

impl Configure {
    /// Does nothing, because the `enabled` feature is off.
    pub fn apply(self) {}
}

/// Calls the closure once, because the `enabled` feature is off.
pub fn until_stable(_settle: Settle, mut closure: impl FnMut()) -> Settled {
    let started = Instant::now();
    closure();
    Settled { snapshot: snapshot(), elapsed: started.elapsed() }
}

/// Calls each closure once, because the feature `enabled` is off.
pub fn compare(
    _settle: Settle,
    (base, mut of_base): (&str, impl FnMut()),
    (new, mut of_new): (&str, impl FnMut()),
) -> Compared {
    let started = Instant::now();
    of_base();
    of_new();
    Compared { names: [base, new].map(str::to_owned), elapsed: started.elapsed() }
}

/// The result of [`compare`], without ratios.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    names: [String; 2],
    elapsed: Duration,
}

answers! {
    Compared {
        ratios: &[Ratio] = &[],
        blocks: u64 = 0,
        is_known: bool = false,
    }
}

impl Compared {
    /// Returns the names of the two closures.
    pub fn names(&self) -> [&str; 2] {
        self.names.each_ref().map(String::as_str)
    }

    /// Returns how long the calls of the closures took.
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// Does nothing, because the feature `enabled` is off.
    pub fn assert_not_slower(&self, _limit: f64) {}
}

impl fmt::Display for Compared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [base, new] = self.names();
        writeln!(f, "`{new}` was not compared with `{base}`: {WHY}")
    }
}

/// Options of [`until_stable`], ignored because the feature `enabled` is off.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[must_use]
pub struct Settle(());

ignored! {
    Settle {
        margin(share: f64)
        min_samples(count: u64)
        min_time(time: Duration)
        timeout(time: Duration)
        as_found()
        cold()
        cold_dirty()
        graph(stream: impl GraphStream, calls: u32)
    }
}

/// The result of [`until_stable`]: an empty snapshot.
#[derive(Clone, Debug, PartialEq)]
pub struct Settled {
    snapshot: Snapshot,
    elapsed: Duration,
}

answers! {
    Settled {
        is_settled: bool = true,
        unmet: &[Unmet] = &[],
        calls: u64 = 1,
        back_to_back: Option<&BackToBack> = None,
    }
}

impl Settled {
    /// Returns how long the closure ran.
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// Returns only the snapshot.
    pub fn into_snapshot(self) -> Snapshot {
        self.snapshot
    }
}

impl Deref for Settled {
    type Target = Snapshot;

    fn deref(&self) -> &Snapshot {
        &self.snapshot
    }
}

impl fmt::Display for Settled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.snapshot.fmt(f)
    }
}
