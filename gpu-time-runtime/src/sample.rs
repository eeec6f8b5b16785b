//! One measurement, or the reason why there is none.

use std::time::Duration;

use serde::ser::{Serialize, SerializeMap, Serializer};

/// What one bracket, one call's sum, or one call timed by the host clock gave.
///
/// Invariant: the time is finite and not negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    raw_ns: f64,
    /// How many brackets it adds up: 1, or for a sum the number of launches that the call made.
    pub brackets: u32,
    /// The GPU cannot have waited for the CPU inside it. A sample of the host clock is always fed.
    pub fed: bool,
    /// Much was queued behind it when the GPU passed it, which adds to what its events say.
    pub queued: bool,
    /// Nothing ran inside.
    pub at_floor: bool,
    /// Another timed bracket lay inside.
    pub nested: bool,
    /// The bracket also held waits and records that cudarc's event tracking enqueued.
    pub tracked: bool,
}

impl Sample {
    /// A starved sample of one bracket without marks, or `None` if `raw_ns` is no time.
    pub fn new(raw_ns: f64) -> Option<Sample> {
        (raw_ns.is_finite() && raw_ns >= 0.0).then_some(Sample::of(raw_ns))
    }

    const fn of(raw_ns: f64) -> Sample {
        Sample {
            raw_ns,
            brackets: 1,
            fed: false,
            queued: false,
            at_floor: false,
            nested: false,
            tracked: false,
        }
    }

    /// Adds a launch of the same call. A sum of finite times is finite: a call makes fewer than 2^32
    /// launches, and a time is a float's.
    #[inline]
    pub fn add(&mut self, launch: Sample) {
        self.raw_ns += launch.raw_ns;
        self.brackets += launch.brackets;
        self.fed &= launch.fed;
        self.queued &= launch.queued;
        self.at_floor &= launch.at_floor;
        self.nested |= launch.nested;
        self.tracked |= launch.tracked;
    }

    /// What a call without launches adds up to.
    pub const NOTHING: Sample =
        Sample { at_floor: true, brackets: 0, fed: true, queued: true, ..Sample::of(0.0) };

    /// A sample of the host clock, for which there is no GPU to feed.
    pub fn by_host(took: Duration) -> Sample {
        Sample { fed: true, ..Sample::of(took.as_nanos() as f64) }
    }

    /// What the clock said, in nanoseconds.
    pub fn raw_ns(self) -> f64 {
        self.raw_ns
    }
}

/// Why a bracket gave no sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The stream was being captured into a graph.
    Capture,
    /// The launch answered an error, or unwound.
    Failed,
    /// The future was dropped before it completed.
    Cancelled,
    /// Start and stop came from different threads of a stream that each thread has its own of.
    Thread,
    /// The stream was dropped before the stop.
    Stream,
    /// The context was destroyed or reset.
    Context,
    /// The bound on events was reached: the GPU was too far behind.
    Events,
    /// A driver call of ours failed.
    Driver,
    /// The elapsed time was no time.
    Invalid,
}

impl Lost {
    /// Every reason, in the order of the report.
    pub const ALL: [Lost; 9] = [
        Lost::Capture,
        Lost::Failed,
        Lost::Cancelled,
        Lost::Thread,
        Lost::Stream,
        Lost::Context,
        Lost::Events,
        Lost::Driver,
        Lost::Invalid,
    ];

    /// Its key in the reports.
    pub fn name(self) -> &'static str {
        self.words().0
    }

    /// What happened, in a clause.
    pub fn meaning(self) -> &'static str {
        self.words().1
    }

    fn words(self) -> (&'static str, &'static str) {
        match self {
            Lost::Capture => ("capture", "the stream was being captured into a graph"),
            Lost::Failed => ("failed", "the launch answered an error, or unwound"),
            Lost::Cancelled => ("cancelled", "the future was dropped before it completed"),
            Lost::Thread => ("thread", "a per-thread stream was stopped on another thread"),
            Lost::Stream => ("stream", "the stream was dropped before the stop"),
            Lost::Context => ("context", "the context was destroyed or reset"),
            Lost::Events => ("events", "the GPU was too far behind for more events"),
            Lost::Driver => ("driver", "a driver call of the measurement failed"),
            Lost::Invalid => ("invalid", "the elapsed time was no time"),
        }
    }
}

/// How many brackets were lost, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses([u64; Lost::ALL.len()]);

impl Losses {
    /// Counts one more.
    pub fn add(&mut self, reason: Lost) {
        if let Some(count) = self.0.get_mut(reason as usize) {
            *count += 1;
        }
    }

    /// Counts what another counted.
    pub fn add_all(&mut self, other: Losses) {
        self.0.iter_mut().zip(other.0).for_each(|(count, more)| *count += more);
    }

    /// How many were lost for this reason.
    pub fn of(&self, reason: Lost) -> u64 {
        self.0.get(reason as usize).copied().unwrap_or_default()
    }

    /// Every reason with its count.
    pub fn iter(&self) -> impl Iterator<Item = (Lost, u64)> + '_ {
        Lost::ALL.into_iter().zip(self.0)
    }

    /// The sum over all reasons.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// An object of every reason's name and count, zeros too, so that scripts need no default.
impl Serialize for Losses {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(Lost::ALL.len()))?;
        for (reason, count) in self.iter() {
            map.serialize_entry(reason.name(), &count)?;
        }
        map.end()
    }
}

/// What the L2 held when the bracket began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CacheState {
    /// Whatever the work before it left there.
    AsFound,
    /// None of the work's data, and nothing to write back.
    Cold,
    /// None of the work's data, and dirty lines that must be written back.
    ColdDirty,
    /// What the earlier launches of a cold call left there.
    AfterCold,
    /// Less of the work's data than before, but it could not be emptied.
    Partial,
}

impl CacheState {
    /// Every state, in the order of their discriminants.
    pub const ALL: [CacheState; 5] = [
        CacheState::AsFound,
        CacheState::Cold,
        CacheState::ColdDirty,
        CacheState::AfterCold,
        CacheState::Partial,
    ];

    /// Its name in the reports.
    pub fn name(self) -> &'static str {
        match self {
            CacheState::AsFound => "as-found",
            CacheState::Cold => "cold",
            CacheState::ColdDirty => "cold-dirty",
            CacheState::AfterCold => "after-cold",
            CacheState::Partial => "partial",
        }
    }
}

/// What the time of a series is the time of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// The launches of one call, added up.
    Sum,
    /// One call, from the first thing that it enqueued to the last.
    Span,
    /// One launch.
    Launch,
}

impl Measure {
    /// Its name in the reports.
    pub fn name(self) -> &'static str {
        match self {
            Measure::Sum => "sum",
            Measure::Span => "span",
            Measure::Launch => "launch",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_a_time() {
        for no_time in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.5] {
            assert_eq!(Sample::new(no_time), None);
        }
        assert_eq!(Sample::new(0.0).map(Sample::raw_ns), Some(0.0));
        assert_eq!(Sample::new(1280.0).map(Sample::raw_ns), Some(1280.0));
    }

    #[test]
    fn every_reason_is_counted_by_itself() {
        let mut losses = Losses::default();
        for (i, reason) in Lost::ALL.into_iter().enumerate() {
            for _ in 0..=i {
                losses.add(reason);
            }
        }
        for (i, (reason, count)) in losses.iter().enumerate() {
            assert_eq!((reason, count), (Lost::ALL[i], i as u64 + 1));
        }
        assert_eq!(losses.total(), 45);
    }

    #[test]
    fn losses_are_an_object_with_every_reason() {
        let mut losses = Losses::default();
        losses.add(Lost::Capture);
        let json = serde_json::to_value(losses).unwrap();
        assert_eq!(json["capture"], 1);
        assert_eq!(json["invalid"], 0);
        assert_eq!(json.as_object().unwrap().len(), Lost::ALL.len());
    }
}
