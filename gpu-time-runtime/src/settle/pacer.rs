//! The pace of a run: when to evaluate the results, and when the time is up.

use std::time::{Duration, Instant};

/// The maximum time to wait for brackets in flight, before and after what is measured.
pub(super) const IN_FLIGHT_PATIENCE: Duration = Duration::from_millis(200);

/// Evaluations take about 1/`EVALUATION_SHARE` of the run's time.
const EVALUATION_SHARE: u32 = 100;

/// Alternates between the steps of a run and evaluations of its results.
///
/// The first evaluation follows one step. Each later one follows after a hundred times the duration
/// of the previous one, so evaluations take about 1 % of the time. They run between steps, never
/// during one.
pub(super) struct Pacer {
    pub started: Instant,
    timeout: Duration,
    pub steps: u64,
    /// The end of the last step.
    pub stepped: Instant,
    /// The time to spend on steps before the next evaluation.
    pause: Duration,
}

impl Pacer {
    /// Starts the clock of a run.
    pub fn start(timeout: Duration) -> Pacer {
        let started = Instant::now();
        Pacer { started, timeout, steps: 0, stepped: started, pause: Duration::ZERO }
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

    fn run_steps(pacer: &mut Pacer) -> u64 {
        let before = pacer.steps;
        let Ok(()) = pacer.run_steps(|| Ok::<(), Infallible>(()));
        pacer.steps - before
    }

    #[test]
    fn first_evaluation_is_due_after_one_step() {
        assert_eq!(run_steps(&mut Pacer::start(Duration::MAX)), 1);
    }

    #[test]
    fn steps_take_hundred_times_the_evaluation() {
        let mut pacer = Pacer::start(Duration::MAX);
        pacer.pause_after(Duration::from_micros(200));
        let resumed = Instant::now();
        assert!(run_steps(&mut pacer) > 1);
        assert!(resumed.elapsed() >= Duration::from_millis(20));
    }

    #[test]
    fn timeout_ends_the_steps() {
        let mut pacer = Pacer::start(Duration::ZERO);
        pacer.pause_after(Duration::from_secs(1));
        assert_eq!(run_steps(&mut pacer), 1);
        assert!(pacer.is_late());
    }

    #[test]
    fn failed_step_ends_the_steps() {
        assert_eq!(Pacer::start(Duration::MAX).run_steps(|| Err("failed")), Err("failed"));
    }
}
