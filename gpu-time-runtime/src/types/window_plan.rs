//! The schedule of the windows in which CUPTI records everything that the process enqueues.

use std::time::Duration;

/// A schedule of windows with random pauses between them, on average one window per period.
///
/// Invariant: `Duration::ZERO < length <= period`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WindowPlan {
    length: Duration,
    period: Duration,
}

impl WindowPlan {
    /// The longest window.
    pub const LONGEST: Duration = Duration::from_secs(10);
    /// The length of a window that is opened without a plan.
    pub const USUAL_LENGTH: Duration = Duration::from_millis(20);
    const SHORTEST: Duration = Duration::from_millis(1);
    const LONGEST_PERIOD: Duration = Duration::from_secs(3_600);

    /// Returns the plan with a window of this length in every period, or `None` if that is out of
    /// range.
    pub fn new(length: Duration, period: Duration) -> Option<WindowPlan> {
        let is_valid = (Self::SHORTEST..=Self::LONGEST).contains(&length)
            && (length..=Self::LONGEST_PERIOD).contains(&period);
        is_valid.then_some(WindowPlan { length, period })
    }

    pub fn length(self) -> Duration {
        self.length
    }

    /// Returns the pause before a window, given a random number from 0 to 1.
    ///
    /// On average, the pause is as long as the rest of a period. The alternative, one window at a
    /// random time within each of a series of fixed periods, would nearly always miss work that the
    /// program enqueues exactly at the period boundaries.
    pub fn pause(self, random: f64) -> Duration {
        2 * (self.period - self.length).mul_f64(random)
    }
}
