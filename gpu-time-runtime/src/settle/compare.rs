//! The run of `compare`, in which two closures take turns.

use std::time::{Duration, Instant};

use crate::base::{fork, random};
use crate::collect;
use crate::collect::devices::event_step_ns;
use crate::control::active;
use crate::control::cold_override::ColdOverride;
use crate::record::drain;
use crate::settle::compared::{self, Compared};
use crate::settle::options::Settle;
use crate::settle::pacer::IN_FLIGHT_PATIENCE;
use crate::settle::turn::Turn;
use gpu_time_report::{Look, Site};

/// The intended duration of a batch: long enough that evaluating it costs little, and short enough
/// that a drift of the clock does not matter within four of them.
const BATCH: Duration = Duration::from_millis(2);
/// The largest number of calls in a batch.
const MOST_CALLS: u32 = 10_000;

/// A closure and its name.
pub(crate) type Arm<'a> = (&'a str, &'a mut dyn FnMut());

/// Calls each closure once, in a forked child.
pub(crate) fn run_in_child([base, new]: [Arm; 2]) -> Compared {
    let started = Instant::now();
    (base.1)();
    (new.1)();
    Compared::new([base.0, new.0]).ended(started.elapsed(), Look::Early)
}

/// Alternates between two closures until the ratios of their times are known precisely enough, or the timeout
/// has passed.
pub(crate) fn run(settle: Settle, [base, new]: [Arm; 2]) -> Compared {
    let _turn = Turn::take();
    let started = Instant::now();
    let mut compared = Compared::new([base.0, new.0]);
    let closures = &mut [base.1, new.1];
    let cold = settle.cold.filter(|_| active::config().cold.is_none());
    let _override = cold.map(ColdOverride::begin);
    // Brackets in flight do not belong to the run.
    drain::wait_for_gpu(IN_FLIGHT_PATIENCE);
    let is_late = || started.elapsed() >= settle.timeout;
    let mut calls = [1; 2];
    for (closure, calls) in closures.iter_mut().zip(&mut calls) {
        *calls = prepare(*closure, is_late);
        if fork::is_forked() {
            return compared.ended(started.elapsed(), Look::Early);
        }
    }
    // Equal numbers of calls make the medians of both equally precise.
    let calls = calls[0].min(calls[1]);
    if calls == 0 {
        return compared.ended(started.elapsed(), Look::Early);
    }
    let mut random = random::generator(0);
    loop {
        let mut block = [Vec::new(), Vec::new()];
        let outer = usize::from(random.bool());
        for arm in [outer, 1 - outer, 1 - outer, outer] {
            let sites = batch(closures[arm], calls);
            if fork::is_forked() {
                return compared.ended(started.elapsed(), Look::Early);
            }
            block[arm].push(compared::medians(&sites, calls, event_step_ns));
        }
        compared.add(block);
        let elapsed = started.elapsed();
        if elapsed >= settle.timeout {
            return compared.ended(elapsed, Look::Last);
        }
        if elapsed >= settle.min_time && compared.is_precise(settle.margin) {
            return compared.ended(elapsed, Look::Early);
        }
    }
}

/// Calls the closure until it has been measured. Returns the number of calls that take about as
/// long as a batch should, or 0 if its calls measure nothing.
fn prepare(closure: &mut dyn FnMut(), is_late: impl Fn() -> bool) -> u32 {
    let mut calls = 1u32;
    loop {
        let began = Instant::now();
        let sites = batch(closure, calls);
        let each = began.elapsed() / calls;
        let has_time =
            sites.iter().flat_map(|site| &site.series).any(|series| series.raw_ns.is_some());
        if has_time {
            let fitting = BATCH.as_nanos() / each.as_nanos().max(1);
            return u32::try_from(fitting).unwrap_or(MOST_CALLS).clamp(1, MOST_CALLS);
        }
        // More calls may help as long as calls are used for warm-up or skipped by sampling.
        let may_come = sites.iter().any(|site| site.warmup > 0 || site.unsampled > 0);
        if !may_come || is_late() {
            return 0;
        }
        calls = calls.saturating_mul(2).min(MOST_CALLS);
    }
}

/// Calls the closure `calls` times and returns the sites with the times of these calls. In a child that is forked
/// meanwhile, it is not called again and has no sites.
fn batch(closure: &mut dyn FnMut(), calls: u32) -> Vec<Site> {
    let (before, _) = collect::states();
    for _ in 0..calls {
        closure();
        if fork::is_forked() {
            return Vec::new();
        }
    }
    drain::wait_for_gpu(IN_FLIGHT_PATIENCE);
    // Any number of looks will do, because only the medians are used, not their intervals.
    collect::sites_since(&before, 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::switches;

    #[test]
    fn closures_that_measure_nothing_are_called_once() {
        let (mut one, mut other) = (0, 0);
        let compared =
            run(Settle::default(), [("one", &mut || one += 1), ("other", &mut || other += 1)]);
        assert_eq!((compared.blocks, compared.ratios.len()), (0, 0));
        assert_eq!((one, other), (1, 1));
        // A test whose function is no longer timed must not pass.
        assert!(switches::is_on() && !compared.is_known());
        let panic = std::panic::catch_unwind(|| compared.assert_not_slower(1.0)).unwrap_err();
        let message = panic.downcast_ref::<String>().unwrap();
        let expected =
            "`other` was not compared with `one`: no timed function ran in both closures";
        assert_eq!(message, expected);
    }
}
