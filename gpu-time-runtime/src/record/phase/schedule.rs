//! The times at which windows open.

use std::time::Instant;

use crate::base::random::generator;
use crate::types::record_mode::PhasePlan;

/// The next window of a plan.
#[derive(Default)]
pub(super) struct Schedule {
    /// The plan, and the time at which to open the next window.
    current: Option<(PhasePlan, Instant)>,
    seed: u64,
}

impl Schedule {
    /// Returns the plan of the next phase, and the moment to begin it.
    pub fn next(&mut self, plan: Option<PhasePlan>, now: Instant) -> Option<(PhasePlan, Instant)> {
        let Some(plan) = plan else {
            // The time of the next phase must not be that at which phases may begin again.
            self.current = None;
            return None;
        };
        if self.current.is_none_or(|(known, _)| known != plan) {
            // The first window opens within one period.
            self.draw(plan, now, 0.5);
        }
        self.current
    }

    /// Moves on to the window after the current one. Skips windows whose time has passed.
    pub fn advance(&mut self) {
        if let Some((plan, at)) = self.current {
            let (mut end, now) = (at + plan.length(), Instant::now());
            if end + plan.pause(1.0) < now {
                end = now;
            }
            self.draw(plan, end, 1.0);
        }
    }

    fn draw(&mut self, plan: PhasePlan, after: Instant, most: f64) {
        let mut rng = generator(self.seed);
        let pause = plan.pause(rng.f64() * most);
        self.seed = rng.get_seed();
        self.current = Some((plan, after + pause));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn plan(length_ms: u64, period_ms: u64) -> PhasePlan {
        let [length, period] = [length_ms, period_ms].map(Duration::from_millis);
        PhasePlan::new(length, period).unwrap()
    }

    /// The program may even have the same period as the windows and have started with them.
    #[test]
    fn windows_fall_on_all_moments_equally() {
        const WINDOWS: u32 = 20_000;
        // Far in the future, so that no window is skipped.
        let began = Instant::now() + Duration::from_secs(100_000);
        let plan = plan(4, 20);
        let mut schedule = Schedule { seed: 7, ..Schedule::default() };
        // The number of windows that contain each millisecond of the program's period.
        let mut seen = [0; 20];
        let mut end = began;
        for _ in 0..WINDOWS {
            let (next, at) = schedule.next(Some(plan), began).unwrap();
            assert!(next == plan && at >= end && at - end <= plan.pause(1.0));
            end = at + plan.length();
            let first = (at - began).as_millis() as usize + 1;
            (first..first + 4).for_each(|ms| seen[ms % 20] += 1);
            schedule.advance();
        }
        let mean = (end - began) / WINDOWS;
        assert!((mean.as_secs_f64() - 0.02).abs() < 2e-4, "{mean:?}");
        let expected = WINDOWS / 5;
        assert!(seen.iter().all(|&seen: &u32| seen.abs_diff(expected) < expected / 10), "{seen:?}");
    }

    #[test]
    fn schedule_begins_again_with_another_plan() {
        let now = Instant::now();
        let mut schedule = Schedule::default();
        assert_eq!(schedule.next(None, now), None);
        let first = schedule.next(Some(plan(1, 100)), now);
        assert_eq!(schedule.next(Some(plan(1, 100)), now + Duration::from_millis(1)), first);
        assert_eq!(schedule.next(Some(plan(5, 5)), now), Some((plan(5, 5), now)));
        // After a time without phases, the next one does not begin at once.
        let plan = plan(1, 100_000);
        schedule.next(Some(plan), now);
        assert_eq!(schedule.next(None, now), None);
        let later = now + Duration::from_secs(1_000);
        assert!(schedule.next(Some(plan), later).is_some_and(|(_, at)| at > later));
    }
}
