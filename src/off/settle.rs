//! `until_stable` where there is nothing to settle.

use std::fmt;
use std::ops::Deref;
use std::time::{Duration, Instant};

use super::{Snapshot, Stats};

/// Calls the closure once, because the feature `enabled` is off.
pub fn until_stable(_settle: Settle, mut closure: impl FnMut()) -> Settled {
    let started = Instant::now();
    closure();
    Settled { snapshot: super::snapshot(), elapsed: started.elapsed() }
}

/// Says nothing, because the feature `enabled` is off.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[must_use]
pub struct Settle(());

/// A driver's handle.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the handle of a stream",
    label = "a `CUstream` goes here: `stream.cu_stream()`"
)]
pub trait RawHandle {}

impl<T> RawHandle for *mut T {}

macro_rules! ignored {
    ($($option:ident($($value:ident: $of:ty),*))*) => {
        impl Settle {
            $(
                /// Has no meaning, because the feature `enabled` is off.
                pub fn $option(self $(, $value: $of)*) -> Self {
                    $(_ = $value;)*
                    self
                }
            )*
        }
    };
}

ignored! {
    margin(share: f64)
    min_samples(count: u64)
    min_time(time: Duration)
    timeout(time: Duration)
    as_found()
    cold()
    cold_dirty()
    graph(stream: impl RawHandle, calls: u32)
}

/// A snapshot without devices and sites, of a closure that was called once.
#[derive(Clone, Debug, PartialEq)]
pub struct Settled {
    snapshot: Snapshot,
    elapsed: Duration,
}

impl Settled {
    /// True: there was nothing to settle.
    pub fn is_settled(&self) -> bool {
        true
    }

    /// None.
    pub fn unmet(&self) -> &[Unmet] {
        &[]
    }

    /// 1.
    pub fn calls(&self) -> u64 {
        1
    }

    /// How long the call took.
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// None.
    pub fn back_to_back(&self) -> Option<&BackToBack> {
        None
    }

    /// The snapshot alone.
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

no_values! { BackToBack:
    calls -> u32,
    replays -> u64,
    per_call_ns -> f64,
    ci95_ns -> Option<[f64; 2]>,
    span_ns -> Option<&Stats>,
    upper_bound -> bool,
}

impl fmt::Display for BackToBack {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

no_values! { Unmet:
    site -> &str,
    series -> &str,
    samples -> u64,
    margin -> Option<f64>,
}

impl fmt::Display for Unmet {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}
