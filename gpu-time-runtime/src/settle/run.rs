//! The normal `until_stable` run: calls the closure until its times have settled.

use std::time::Instant;

use crate::base::{fork, progress::Progress};
use crate::collect::{self, devices::event_step_ns};
use crate::control::{active, cold_override::ColdOverride};
use crate::record::drain;
use crate::settle::pacer::{IN_FLIGHT_PATIENCE, Pacer};
use crate::settle::turn::Turn;
use crate::settle::{back_to_back, options::Settle};
use crate::settle::{
    settled::Settled,
    stopping::{self, Verdict},
};
use gpu_time_report::Site;

/// Calls the closure once, in a forked child.
pub(crate) fn run_in_child(closure: impl FnOnce()) -> Settled {
    let started = Instant::now();
    closure();
    Settled::of_child(started, 1)
}

/// Calls the closure until all times have settled or the timeout has passed.
pub(crate) fn run(settle: Settle, mut closure: impl FnMut()) -> Settled {
    let _turn = Turn::take();
    if let Some(plan) = settle.graph {
        return back_to_back::run(&settle, plan, closure);
    }
    // Brackets already in flight do not belong to the run.
    drain::wait_for_gpu(IN_FLIGHT_PATIENCE);
    let before = collect::begin_run();
    let judge = |run: &[Site]| Verdict::of(&settle, run, event_step_ns);
    let cold = settle.cold.filter(|_| active::config().cold.is_none());
    let _override = cold.map(ColdOverride::begin);
    let mut progress = Progress::on_terminal(stopping::SHOWN_EVERY);
    let mut pacer = Pacer::start(&settle);
    loop {
        let stepped = pacer.run_steps(|| {
            closure();
            if fork::is_forked() { Err(()) } else { Ok(()) }
        });
        if stepped.is_err() {
            // The closure forked, and this is the child.
            return Settled::of_child(pacer.started, pacer.steps + 1);
        }
        let is_due = pacer.is_look_due();
        let is_done = |verdict: &Verdict| {
            pacer.is_late() || (verdict.is_over() && (is_due || verdict.is_empty()))
        };
        let verdict = judge(&collect::sites_since(&before, pacer.looks_with_this()));
        let evaluation = pacer.stepped.elapsed();
        if is_done(&verdict) {
            if !verdict.is_empty() {
                drain::wait_for_gpu(IN_FLIGHT_PATIENCE);
            }
            let snapshot = collect::snapshot_since(&before, pacer.looks_with_this());
            // The last samples may have moved a median.
            let verdict = judge(&snapshot.sites);
            if is_done(&verdict) {
                return Settled {
                    snapshot,
                    unmet: verdict.unmet,
                    calls: pacer.steps,
                    elapsed: pacer.started.elapsed(),
                    back_to_back: None,
                };
            }
        }
        if is_due {
            pacer.look_again(&verdict);
        }
        progress.show(|| verdict.line(pacer.steps, pacer.elapsed()));
        pacer.pause_after(evaluation);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_of_closure_passes_through() {
        let unwound = std::panic::catch_unwind(|| {
            run(Settle::default(), || panic!("the closure panics"));
        });
        assert!(unwound.is_err());
        let mut calls = 0;
        let settled = run(Settle::default(), || calls += 1);
        assert_eq!((calls, settled.calls, settled.unmet.len()), (1, 1, 0));
    }
}
