//! The plan of the windows in which everything that the process enqueues is recorded.

use std::time::Duration;

/// Windows with random pauses between them, on average one in each period.
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
    /// The length of a window where no plan gives one.
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

    /// Returns the pause before a window, for a random number from 0 to 1.
    ///
    /// It is as long as the rest of a period on average. One window at a random time in each period of
    /// a fixed grid would nearly always miss a program's work that is enqueued at the grid's points.
    pub fn pause(self, random: f64) -> Duration {
        2 * (self.period - self.length).mul_f64(random)
    }
}
