//! The looks of a run: the evaluations that may end it.

use std::time::Duration;

use crate::settle::stopping::Verdict;

/// The smallest and largest factor by which the run's time grows from one possible look to the
/// next.
const GROWTH: (f64, f64) = (1.1, 3.0);

/// The largest factor by which an evaluation may lack samples and still count as a look. If it
/// lacks more, it could not have ended the run, whatever the samples.
const NEARLY: f64 = 2.0;

/// The factor by which to exceed the number of samples that seems to be enough.
const RESERVE: f64 = 1.2;

/// Plans the looks of a run. Each look makes the intervals of later ones wider, because a run that
/// may stop at any of many looks is more likely to stop at an interval that misses the truth. So
/// the next look comes when the run is likely to have enough samples.
pub(super) struct LookPlan {
    looks: u32,
    next: Duration,
}

impl LookPlan {
    /// Creates a plan whose first look comes no earlier than this time into the run.
    pub fn from(first: Duration) -> LookPlan {
        LookPlan { looks: 0, next: first }
    }

    /// Returns `true` if an evaluation at this time of the run is a look.
    pub fn is_due(&self, elapsed: Duration) -> bool {
        elapsed >= self.next
    }

    /// Returns the number of looks, including one now.
    pub fn with_this(&self) -> u32 {
        self.looks + 1
    }

    /// Plans the next look after an evaluation that did not end the run.
    pub fn went_on(&mut self, elapsed: Duration, verdict: &Verdict) {
        let missing = verdict.missing_factor();
        self.looks += u32::from(missing <= NEARLY);
        self.next = elapsed.mul_f64((RESERVE * missing).clamp(GROWTH.0, GROWTH.1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settle::unmet::{Unmet, UnmetReason};

    fn verdict(reason: UnmetReason) -> Verdict {
        let (site, series) = ("f".to_owned(), String::new());
        let unmet = Unmet { site, series, samples: 40, margin: Some(0.006), reason };
        Verdict { settled: 1, unmet: vec![unmet] }
    }

    #[test]
    fn next_look_comes_when_samples_may_do() {
        let mut plan = LookPlan::from(Duration::from_secs(1));
        assert!(!plan.is_due(Duration::from_millis(999)));
        // Far too few samples to stop: not a look.
        plan.went_on(Duration::from_secs(1), &verdict(UnmetReason::Few(100)));
        assert_eq!((plan.with_this(), plan.next), (1, Duration::from_secs(3)));
        plan.went_on(Duration::from_secs(3), &verdict(UnmetReason::Wide(0.0001)));
        assert_eq!((plan.with_this(), plan.next), (1, Duration::from_secs(9)));
        // Narrowing ±0.6 % to ±0.5 % takes 1.44 times as many samples.
        plan.went_on(Duration::from_secs(30), &verdict(UnmetReason::Wide(0.005)));
        assert_eq!((plan.with_this(), plan.next), (2, Duration::from_millis(51_840)));
        plan.went_on(Duration::from_secs(60), &verdict(UnmetReason::Drift(0.1)));
        assert_eq!((plan.with_this(), plan.next), (3, Duration::from_secs(72)));
    }
}
