//! Times calls back to back: replays a graph of them until its time has settled.

use crate::base::progress::Progress;
use crate::base::{fork, switches};
use crate::call::{first, stream::Life};
use crate::collect;
use crate::control::active;
use crate::cuda::{self, Context, Replay};
use crate::gpu::{Fault, Gpu, HoldPlan, Preparation};
use crate::record::bracket;
use crate::settle::options::{Plan, Settle};
use crate::settle::pacer::Pacer;
use crate::settle::settled::{BackToBack, Settled};
use crate::settle::stopping::{self, Verdict};
use crate::settle::unmet::{Unmet, UnmetReason};
use crate::stats::series::{SeriesData, SeriesInfo};
use crate::stats::tally::Tally;
use crate::types::attribute::Clock;
use crate::types::handles::{EventPair, Stream};
use crate::types::sample::{CacheState, Measure, Sample};
use gpu_time_report::Series;

/// The deadline for the hold during which a replay is enqueued, before the GPU reaches the start
/// event.
const DEADLINE_NS: u64 = 5_000_000;

/// Calls the closure once normally, then captures it and replays the graph.
pub(super) fn run(settle: &Settle, plan: Plan, mut closure: impl FnMut()) -> Settled {
    let (before, _) = collect::states();
    let mut pacer = Pacer::start(settle);
    let mut calls = 0;
    let mut call = || {
        calls += 1;
        closure();
    };
    // Modules that are loaded and memory that is allocated on first use must not become part of the graph.
    call();
    if fork::is_forked() {
        return Settled::of_child(pacer.started, calls);
    }
    let is_on = active::config().is_on && switches::is_on();
    let outcome = is_on.then(|| {
        let (context, replay) = capture(plan, call)?;
        replays(settle, plan, context, &replay, &mut pacer)
    });
    if fork::is_forked() {
        return Settled::of_child(pacer.started, calls);
    }
    let (back_to_back, unmet) = match outcome {
        None => (None, None),
        Some(Ok((back_to_back, unmet))) => (Some(back_to_back), unmet),
        Some(Err(why)) => (None, Some(unmet_replays(plan.calls, None, UnmetReason::Refused(why)))),
    };
    Settled {
        snapshot: collect::snapshot_since(&before, 1),
        unmet: unmet.into_iter().collect(),
        calls,
        elapsed: pacer.started.elapsed(),
        back_to_back,
    }
}

fn capture(plan: Plan, mut call: impl FnMut()) -> Result<(&'static Context, Replay), String> {
    if cuda::why_unusable().is_some() {
        return Err(Fault::ContextGone.to_string());
    }
    let context = first::find(plan.stream, 0, Life::ALWAYS).map_err(|fault| fault.to_string())?;
    let recording = context.record_calls(plan.stream)?;
    for _ in 0..plan.calls {
        call();
        if fork::is_forked() {
            return Err(fork::FORKED.to_owned());
        }
        if !recording.is_whole() {
            // The capture is invalid, so every further call would fail.
            break;
        }
    }
    Ok((context, recording.finish()?))
}

/// Replays the graph until its time has settled or the timeout has passed.
fn replays(
    settle: &Settle,
    plan: Plan,
    context: &Context,
    replay: &Replay,
    pacer: &mut Pacer,
) -> Result<(BackToBack, Option<Unmet>), String> {
    let pair = context.create_pair().map_err(|fault| fault.to_string())?;
    let once = || span(plan.stream, context, &pair, replay).map_err(|fault| fault.to_string());
    let replayed = (|| {
        // The first replay uploads the graph to the device.
        once()?;
        let step_ns =
            context.floor().and_then(|floor| floor.step_ns).unwrap_or(stopping::DEFAULT_STEP_NS);
        let (mut series, mut tally) = (SeriesData::new(), Tally::default());
        let mut progress = Progress::on_terminal(stopping::SHOWN_EVERY);
        loop {
            pacer.run_steps(|| {
                tally.counts.begin();
                once().map(|sample| {
                    tally.counts.end(Ok(sample));
                    series.record(sample);
                })
            })?;
            tally.sums = series.sums();
            let info = info(context, pacer.looks_with_this());
            let series = series.times().report(info, &tally);
            let reason = stopping::reason(settle, step_ns, &series);
            let unmet = reason.map(|reason| unmet_replays(plan.calls, Some(&series), reason));
            let back_to_back = BackToBack { calls: plan.calls, series };
            if pacer.is_late() || (unmet.is_none() && pacer.is_look_due()) {
                return Ok((back_to_back, unmet));
            }
            pacer.pause_after(pacer.stepped.elapsed());
            let settled = usize::from(unmet.is_none());
            let verdict = Verdict { settled, unmet: unmet.into_iter().collect() };
            if pacer.is_look_due() {
                pacer.look_again(&verdict);
            }
            progress.show(|| verdict.line(1 + u64::from(plan.calls), pacer.elapsed()));
        }
    })();
    context.discard(&[pair.start, pair.stop]);
    replayed
}

/// Times one replay between two events and waits for it.
fn span(
    stream: Stream,
    context: &Context,
    pair: &EventPair,
    replay: &Replay,
) -> Result<Sample, Fault> {
    let hold = context.can_hold(true).then_some(HoldPlan::Until(DEADLINE_NS));
    let held = bracket::start(context, stream, pair, Preparation { cold: None, hold })?;
    if let Err(fault) = replay.launch(stream) {
        bracket::release(context, held);
        return Err(fault);
    }
    let hold = bracket::stop(context, stream, pair, held)?;
    context.synchronize(stream)?;
    // The GPU has passed both events, unless another thread in the program is capturing the stream.
    let raw_ns = context.elapsed(pair)?.ok_or(Fault::Captured)?;
    let mut sample = Sample::new(raw_ns).ok_or(Fault::Captured)?;
    sample.flags.fed = hold.is_some_and(|hold| !context.has_expired(hold));
    Ok(sample)
}

fn info(context: &Context, looks: u32) -> SeriesInfo {
    SeriesInfo {
        device: context.device_id().to_string(),
        launch: None,
        measure: Measure::Span,
        key: None,
        cache: CacheState::AsFound,
        clock: Clock::Events,
        graph: false,
        population: None,
        repeats: false,
        counted: false,
        looks: Some(looks),
        start_ns: cuda::start_ns(),
        bias: None,
    }
}

/// Describes replays that did not settle.
fn unmet_replays(calls: u32, series: Option<&Series>, reason: UnmetReason) -> Unmet {
    Unmet::new(format!("graph of {calls} calls"), series, reason)
}
