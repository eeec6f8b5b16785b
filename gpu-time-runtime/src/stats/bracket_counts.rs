//! Counts of brackets by outcome.

use crate::stats::since::Since;
use crate::types::sample::{Losses, Lost, Sample};

/// The number of brackets of a series by outcome. In a series of per-call sums, calls are counted instead.
///
/// Invariants: `timed = measured + opened + in_flight + lost` and
/// `measured = fed + starved + at_floor`. Each field is counted independently. Both invariants hold
/// for each thread, and therefore for the sum over any set of threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BracketCounts {
    /// Brackets opened, or calls begun for a series of sums. In graphs, replays that were read plus
    /// launches that were lost.
    pub timed: u64,
    /// The part of `timed` that has been neither measured nor lost yet.
    pub in_flight: u64,
    pub measured: u64,
    /// Calls whose work was recorded by CUPTI.
    pub opened: u64,
    pub fed: u64,
    pub starved: u64,
    pub at_floor: u64,
    pub queued: u64,
    pub nested: u64,
    pub tracked: u64,
    pub lost: Losses,
}

impl BracketCounts {
    /// Counts a bracket that is in flight from now on.
    #[inline]
    pub fn begin(&mut self) {
        self.timed += 1;
        self.in_flight += 1;
    }

    /// Counts the outcome of a bracket that was in flight.
    #[inline]
    pub fn end(&mut self, outcome: Result<Sample, Lost>) {
        self.in_flight = self.in_flight.saturating_sub(1);
        let flags = match outcome {
            Ok(sample) => sample.flags,
            Err(lost) => return self.lost.add(lost),
        };
        self.measured += 1;
        self.nested += u64::from(flags.nested);
        self.tracked += u64::from(flags.tracked);
        if flags.at_floor {
            self.at_floor += 1;
            return;
        }
        let count = if flags.fed { &mut self.fed } else { &mut self.starved };
        *count += 1;
        self.queued += u64::from(flags.queued);
    }

    /// Takes back a call that was counted as in flight.
    pub fn take_back(&mut self) {
        self.timed = self.timed.saturating_sub(1);
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// Counts the outcome of an opened call that was in flight.
    pub fn end_opened(&mut self, lost: Option<Lost>) {
        self.in_flight = self.in_flight.saturating_sub(1);
        match lost {
            Some(lost) => self.lost.add(lost),
            None => self.opened += 1,
        }
    }

    /// Returns the number of brackets and calls with an outcome: measured, opened or lost.
    pub fn ended(&self) -> u64 {
        self.measured + self.opened + self.lost.total()
    }

    /// Adds the brackets of another thread.
    pub fn add(&mut self, other: &BracketCounts) {
        self.add_idle(other);
        self.fed += other.fed;
        self.starved += other.starved;
        self.queued += other.queued;
        self.nested += other.nested;
        self.tracked += other.tracked;
    }

    /// Adds calls without launches: empty calls, lost calls and calls in flight.
    pub fn add_idle(&mut self, other: &BracketCounts) {
        self.timed += other.timed;
        self.in_flight += other.in_flight;
        self.measured += other.measured;
        self.opened += other.opened;
        self.at_floor += other.at_floor;
        self.lost.add_all(other.lost);
    }
}

/// Counts the brackets that ended after the earlier reading, and those still in flight. Both may
/// have begun before that reading.
impl Since for BracketCounts {
    fn since(&self, earlier: &BracketCounts) -> BracketCounts {
        let mut gained = BracketCounts {
            timed: 0,
            in_flight: self.in_flight,
            measured: self.measured.since(&earlier.measured),
            opened: self.opened.since(&earlier.opened),
            fed: self.fed.since(&earlier.fed),
            starved: self.starved.since(&earlier.starved),
            at_floor: self.at_floor.since(&earlier.at_floor),
            queued: self.queued.since(&earlier.queued),
            nested: self.nested.since(&earlier.nested),
            tracked: self.tracked.since(&earlier.tracked),
            lost: self.lost.since(&earlier.lost),
        };
        gained.timed = gained.ended() + gained.in_flight;
        gained
    }
}
