//! The pace of a run: when to evaluate the results, which evaluations may end it, and when the time is up.

use std::time::{Duration, Instant};

use crate::settle::{options::Settle, stopping::Verdict};

/// The maximum time to wait for brackets in flight, before and after what is measured.
pub(super) const IN_FLIGHT_PATIENCE: Duration = Duration::from_millis(200);

/// Evaluations take about 1/`EVALUATION_SHARE` of the run's time.
const EVALUATION_SHARE: u32 = 100;

/// The smallest and largest factor by which the run's time grows from one possible look to the
/// next.
const GROWTH: (f64, f64) = (1.1, 3.0);

/// The largest factor by which an evaluation may lack samples and still count as a look. If it
/// lacks more, it could not have ended the run, whatever the samples.
const NEARLY: f64 = 2.0;

/// The factor by which to exceed the number of samples that seems to be enough.
const RESERVE: f64 = 1.2;

/// Alternates between the steps of a run and evaluations of its results.
///
/// The first evaluation follows one step. Each later one follows after a hundred times the duration
/// of the previous one, so evaluations take about 1 % of the time. They run between steps, never
/// during one.
///
/// The evaluations that may end the run are its looks. Each look makes the intervals of later ones wider, because a run
/// that may stop at any of many looks is more likely to stop at an interval that misses the truth. So the next look
/// comes when the run is likely to have enough samples.
pub(super) struct Pacer {
    pub started: Instant,
    timeout: Duration,
    pub steps: u64,
    /// The end of the last step.
    pub stepped: Instant,
    /// The time to spend on steps before the next evaluation.
    pause: Duration,
    looks: u32,
    /// The time of the run at which the next look is due.
    next_look: Duration,
}

impl Pacer {
    /// Starts the clock of a run. The first look comes no earlier than the run's shortest time.
    pub fn start(settle: &Settle) -> Pacer {
        let (started, pause) = (Instant::now(), Duration::ZERO);
        let Settle { timeout, min_time: next_look, .. } = *settle;
        Pacer { started, timeout, steps: 0, stepped: started, pause, looks: 0, next_look }
    }

    /// Repeats the step, at least once, until an evaluation is due, time is up, or a step fails.
    pub fn run_steps<E>(&mut self, mut step: impl FnMut() -> Result<(), E>) -> Result<(), E> {
        let resumed = Instant::now();
        loop {
            step()?;
            self.steps += 1;
            self.stepped = Instant::now();
            if self.stepped - resumed >= self.pause || self.is_late() {
                return Ok(());
            }
        }
    }

    /// Schedules the next evaluation based on the duration of the last one.
    pub fn pause_after(&mut self, evaluation: Duration) {
        self.pause = evaluation * EVALUATION_SHARE;
    }

    /// Returns `true` if an evaluation after the last step is a look.
    pub fn is_look_due(&self) -> bool {
        self.elapsed() >= self.next_look
    }

    /// Returns the number of looks, including one now.
    pub fn looks_with_this(&self) -> u32 {
        self.looks + 1
    }

    /// Plans the next look after one that did not end the run.
    pub fn look_again(&mut self, verdict: &Verdict) {
        let missing = verdict.missing_factor();
        self.looks += u32::from(missing <= NEARLY);
        self.next_look = self.elapsed().mul_f64((RESERVE * missing).clamp(GROWTH.0, GROWTH.1));
    }

    /// Returns the time from the start to the end of the last step.
    pub fn elapsed(&self) -> Duration {
        self.stepped - self.started
    }

    /// Returns `true` if the timeout had passed by the end of the last step.
    pub fn is_late(&self) -> bool {
        self.elapsed() >= self.timeout
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::settle::unmet::{Unmet, UnmetReason};

    fn pacer(timeout: Duration) -> Pacer {
        Pacer::start(&Settle::default().min_time(Duration::from_secs(1)).timeout(timeout))
    }

    fn run_steps(pacer: &mut Pacer) -> u64 {
        let before = pacer.steps;
        let Ok(()) = pacer.run_steps(|| Ok::<(), Infallible>(()));
        pacer.steps - before
    }

    #[test]
    fn first_evaluation_is_due_after_one_step() {
        assert_eq!(run_steps(&mut pacer(Duration::MAX)), 1);
    }

    #[test]
    fn steps_take_hundred_times_the_evaluation() {
        let mut pacer = pacer(Duration::MAX);
        pacer.pause_after(Duration::from_micros(200));
        let resumed = Instant::now();
        assert!(run_steps(&mut pacer) > 1);
        assert!(resumed.elapsed() >= Duration::from_millis(20));
    }

    #[test]
    fn timeout_ends_the_steps() {
        let mut pacer = pacer(Duration::ZERO);
        pacer.pause_after(Duration::from_secs(1));
        assert_eq!(run_steps(&mut pacer), 1);
        assert!(pacer.is_late());
    }

    #[test]
    fn failed_step_ends_the_steps() {
        assert_eq!(pacer(Duration::MAX).run_steps(|| Err("failed")), Err("failed"));
    }

    fn verdict(reason: UnmetReason) -> Verdict {
        let (site, series) = ("f".to_owned(), String::new());
        let unmet = Unmet { site, series, samples: 40, margin: Some(0.006), reason };
        Verdict { settled: 1, unmet: vec![unmet] }
    }

    #[test]
    fn next_look_comes_when_samples_may_do() {
        let mut pacer = pacer(Duration::MAX);
        let at = |pacer: &mut Pacer, seconds, reason| {
            pacer.stepped = pacer.started + Duration::from_secs(seconds);
            pacer.look_again(&verdict(reason));
            (pacer.looks_with_this(), pacer.next_look)
        };
        assert!(!pacer.is_look_due());
        pacer.stepped = pacer.started + Duration::from_millis(999);
        assert!(!pacer.is_look_due());
        // Far too few samples to stop: not a look.
        let few = at(&mut pacer, 1, UnmetReason::Few(100));
        assert_eq!(few, (1, Duration::from_secs(3)));
        let wide = at(&mut pacer, 3, UnmetReason::Wide(0.0001));
        assert_eq!(wide, (1, Duration::from_secs(9)));
        // Narrowing ±0.6 % to ±0.5 % takes 1.44 times as many samples.
        let wide = at(&mut pacer, 30, UnmetReason::Wide(0.005));
        assert_eq!(wide, (2, Duration::from_millis(51_840)));
        let drift = at(&mut pacer, 60, UnmetReason::Drift(0.1));
        assert_eq!(drift, (3, Duration::from_secs(72)));
    }
}
