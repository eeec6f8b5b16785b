//! The times in which CUPTI records everything that the process enqueues.

use std::time::Duration;

/// When CUPTI records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordMode {
    /// Never.
    Off,
    /// Always: one phase that does not end.
    On,
    /// In phases at random times.
    Phases(PhasePlan),
    /// From the start of the process on, for this time.
    Start(Duration),
}

/// What the functions need that have been called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    pub events: bool,
    pub records: bool,
}

impl Needs {
    pub const EVENTS: Needs = Needs { events: true, records: false };
    pub const RECORDS: Needs = Needs { events: false, records: true };

    pub fn and(self, other: Needs) -> Needs {
        Needs { events: self.events || other.events, records: self.records || other.records }
    }

    /// Returns when to record so that all have what they need: if some need records and others events, in `phases`.
    pub fn record_mode(self, phases: RecordMode) -> RecordMode {
        match self {
            Needs { records: false, .. } => RecordMode::Off,
            Needs { events: false, .. } => RecordMode::On,
            _ => phases,
        }
    }
}

/// A plan of phases with random pauses between them, on average one phase per period.
///
/// Invariant: `Duration::ZERO < length <= period`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PhasePlan {
    length: Duration,
    period: Duration,
}

impl RecordMode {
    /// The longest phase of a plan, and the longest one on request.
    pub const LONGEST: Duration = Duration::from_secs(3_600);

    pub fn plan(self) -> Option<PhasePlan> {
        if let RecordMode::Phases(plan) = self { Some(plan) } else { None }
    }
}

impl PhasePlan {
    /// The plan for a program in which some functions need records and others events.
    pub const USUAL: PhasePlan =
        PhasePlan { length: PhasePlan::USUAL_LENGTH, period: Duration::from_millis(100) };
    /// The length of a phase that is requested without one.
    pub const USUAL_LENGTH: Duration = Duration::from_millis(20);
    const SHORTEST: Duration = Duration::from_millis(1);
    const LONGEST: Duration = Duration::from_secs(10);
    const LONGEST_PERIOD: Duration = Duration::from_secs(3_600);

    /// Returns the plan with a phase of this length in every period, or `None` if that is out of range.
    pub fn new(length: Duration, period: Duration) -> Option<PhasePlan> {
        let is_valid = (Self::SHORTEST..=Self::LONGEST).contains(&length)
            && (length..=Self::LONGEST_PERIOD).contains(&period);
        is_valid.then_some(PhasePlan { length, period })
    }

    /// Returns the plan with longer periods if its phases take more than this share of the time.
    pub fn limited_to(self, share: f64) -> PhasePlan {
        let least = self.length.as_secs_f64() / share.max(1e-6);
        let least = Duration::from_secs_f64(least).min(Self::LONGEST_PERIOD);
        PhasePlan { period: self.period.max(least), ..self }
    }

    pub fn length(self) -> Duration {
        self.length
    }

    /// Returns the pause before a phase, given a random number from 0 to 1.
    ///
    /// On average, the pause is as long as the rest of a period. The alternative, one phase at a random time within
    /// each of a series of fixed periods, would nearly always miss what the program enqueues exactly at the period
    /// boundaries.
    pub fn pause(self, random: f64) -> Duration {
        2 * (self.period - self.length).mul_f64(random)
    }

    /// Returns the number of calls that one in a phase stands for.
    pub fn weight(self) -> f64 {
        self.period.as_secs_f64() / self.length.as_secs_f64()
    }
}
