//! The run of `until_stable` that calls the closure again and again.

use std::time::{Duration, Instant};

use crate::base::fork;
use crate::collect;
use crate::collect::devices::event_step_ns;
use crate::control::active;
use crate::control::cold_override::ColdOverride;
use crate::record::drain;
use crate::settle::back_to_back;
use crate::settle::options::{SHARE, Settle};
use crate::settle::progress::Progress;
use crate::settle::settled::Settled;
use crate::settle::verdict::Verdict;
use gpu_time_report::Site;

/// So long the beginning and the end wait for what is still in flight.
const PATIENCE: Duration = Duration::from_millis(200);

/// Calls the closure until everything that it times has settled, or time is up.
///
/// It looks after the first call, and then whenever a hundred times of what the last look took has
/// passed, so that looking takes about 1 % of the time, between calls and never inside of one.
pub(crate) fn run(settle: Settle, mut closure: impl FnMut()) -> Settled {
    if fork::is_forked() {
        let started = Instant::now();
        closure();
        return Settled {
            snapshot: collect::snapshot(),
            unmet: Vec::new(),
            calls: 1,
            elapsed: started.elapsed(),
            back_to_back: None,
        };
    }
    if let Some(plan) = settle.graph {
        return back_to_back::run(&settle, plan, closure);
    }
    // What is still in flight is none of the run's.
    drain::wait_for_gpu(PATIENCE);
    let (before, _) = collect::states();
    let judge = |run: &[Site]| Verdict::of(&settle, run, event_step_ns);
    let wish = settle.cold.filter(|_| !active::config().has_cold());
    let _rules = wish.map(ColdOverride::begin);
    let mut progress = Progress::on_terminal();
    let started = Instant::now();
    let (mut calls, mut pause) = (0, Duration::ZERO);
    loop {
        let resumed = Instant::now();
        let now = loop {
            closure();
            calls += 1;
            let now = Instant::now();
            if now - resumed >= pause || now - started >= settle.timeout {
                break now;
            }
        };
        let elapsed = now - started;
        let is_late = elapsed >= settle.timeout;
        let is_content = |verdict: &Verdict| {
            verdict.is_over() && (verdict.is_empty() || elapsed >= settle.min_time)
        };
        let verdict = judge(&collect::sites_since(&before));
        let looked = now.elapsed();
        if is_late || is_content(&verdict) {
            if !verdict.is_empty() {
                drain::wait_for_gpu(PATIENCE);
            }
            let snapshot = collect::snapshot_since(&before);
            // The last samples may have moved a median.
            let verdict = judge(snapshot.sites());
            if is_late || is_content(&verdict) {
                return Settled {
                    snapshot,
                    unmet: verdict.unmet,
                    calls,
                    elapsed: started.elapsed(),
                    back_to_back: None,
                };
            }
        }
        progress.show(&verdict, calls, elapsed);
        pause = looked * SHARE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_passes_through_and_leaves_nothing_behind() {
        let unwound = std::panic::catch_unwind(|| {
            run(Settle::default(), || panic!("the closure panics"));
        });
        assert!(unwound.is_err());
        let mut calls = 0;
        let settled = run(Settle::default(), || calls += 1);
        assert_eq!((calls, settled.calls(), settled.unmet().len()), (1, 1, 0));
    }
}
