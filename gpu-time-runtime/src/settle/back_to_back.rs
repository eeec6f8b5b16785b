//! Calls back to back: a graph of them, replayed until its time is known.

use std::thread;
use std::time::{Duration, Instant};

use crate::base::console;
use crate::base::switches;
use crate::call::first;
use crate::collect;
use crate::control::active;
use crate::cuda::launches_block;
use crate::cuda::{self, Context, Refusal, Replay};
use crate::gpu::{Fault, Gpu};
use crate::gpu::{HoldPlan, Preparation};
use crate::record::sequence::{self};
use crate::settle::options::{Plan, SHARE, Settle};
use crate::settle::progress::Progress;
use crate::settle::settled::{BackToBack, Settled};
use crate::settle::unmet::{Obstacle, Unmet};
use crate::settle::verdict::{self, Verdict};
use crate::stats::series::{SeriesData, SeriesInfo};
use crate::types::attribute::Clock;
use crate::types::handles::{EventPair, Stream};
use crate::types::sample::{CacheState, Measure, Sample};

/// A replay is held for no longer than this until it has been enqueued.
const DEADLINE_NS: u64 = 5_000_000;

/// Calls the closure once as ever, then captures it, and replays that.
pub(super) fn run(settle: &Settle, plan: Plan, mut closure: impl FnMut()) -> Settled {
    let (before, _) = collect::states();
    let started = Instant::now();
    let mut calls = 0;
    let mut call = || {
        calls += 1;
        closure();
    };
    // What is loaded or allocated on first use is no part of a graph.
    call();
    let is_on = active::config().is_on() && switches::is_on();
    let outcome = is_on.then(|| {
        let (context, replay) = capture(plan, call)?;
        replays(settle, plan, context, &replay, started)
    });
    let (back_to_back, unmet) = match outcome {
        None => (None, None),
        Some(Ok((back_to_back, unmet))) => (Some(back_to_back), unmet),
        Some(Err(refusal)) => {
            (None, Some(unmet_replays(plan.calls, None, Obstacle::Refused(refusal))))
        }
    };
    Settled {
        snapshot: collect::snapshot_since(&before),
        unmet: unmet.into_iter().collect(),
        calls,
        elapsed: started.elapsed(),
        back_to_back,
    }
}

fn capture(plan: Plan, mut call: impl FnMut()) -> Result<(&'static Context, Replay), Refusal> {
    if cuda::why_unusable().is_some() {
        return Err(Refusal::Failed(Fault::ContextGone));
    }
    let context = first::find(plan.stream, 0).map_err(Refusal::Failed)?;
    let recording = context.record_calls(plan.stream)?;
    let unwinding = Unwinding;
    for _ in 0..plan.calls {
        call();
        if !recording.is_whole() {
            // Whatever else it enqueues is an error.
            break;
        }
    }
    std::mem::forget(unwinding);
    Ok((context, recording.finish()?))
}

/// Says what a capture has to do with it, where the closure expects what no capture gives.
struct Unwinding;

impl Drop for Unwinding {
    fn drop(&mut self) {
        if thread::panicking() {
            console::say(
                "`Settle::graph`: the closure panicked while it was captured, where it can neither \
                 wait nor allocate",
            );
        }
    }
}

/// Replays until the time of that has settled.
fn replays(
    settle: &Settle,
    plan: Plan,
    context: &Context,
    replay: &Replay,
    started: Instant,
) -> Result<(BackToBack, Option<Unmet>), Refusal> {
    let events = || Ok(EventPair { start: context.create_event()?, stop: context.create_event()? });
    let pair = events().map_err(Refusal::Failed)?;
    let once = || span(plan.stream, context, &pair, replay).map_err(Refusal::Failed);
    let replayed = (|| {
        // The first brings the graph to the device.
        once()?;
        let step_ns =
            context.floor().and_then(|floor| floor.step_ns).unwrap_or(verdict::NO_STEP_NS);
        let mut series = SeriesData::new();
        let mut count = 0;
        let mut progress = Progress::on_terminal();
        let mut pause = Duration::ZERO;
        loop {
            let resumed = Instant::now();
            let now = loop {
                series.record(once()?);
                count += 1;
                let now = Instant::now();
                if now - resumed >= pause || now - started >= settle.timeout {
                    break now;
                }
            };
            let elapsed = now - started;
            let shown = series.times().report(row(context, count), &series.tally());
            let obstacle = verdict::obstacle(settle, step_ns, &shown);
            let back_to_back = BackToBack { calls: plan.calls, series: shown };
            let unmet =
                obstacle.map(|obstacle| unmet_replays(plan.calls, Some(&back_to_back), obstacle));
            let is_late = elapsed >= settle.timeout;
            if is_late || (unmet.is_none() && elapsed >= settle.min_time) {
                return Ok((back_to_back, unmet));
            }
            let settled = usize::from(unmet.is_none());
            let verdict = Verdict { settled, unmet: unmet.into_iter().collect() };
            progress.show(&verdict, 1 + u64::from(plan.calls), elapsed);
            pause = now.elapsed() * SHARE;
        }
    })();
    context.discard(&pair);
    replayed
}

/// One replay between two events, waited for.
fn span(
    stream: Stream,
    context: &Context,
    pair: &EventPair,
    replay: &Replay,
) -> Result<Sample, Fault> {
    let can_hold = !launches_block() && context.can_hold(true);
    let hold = can_hold.then_some(HoldPlan::Until(DEADLINE_NS));
    let held = sequence::begin(context, stream, pair, Preparation { cold: None, hold })?;
    if let Err(fault) = replay.launch(stream) {
        sequence::abandon(context, held);
        return Err(fault);
    }
    let hold = sequence::end(context, stream, pair, held)?;
    context.synchronize(stream)?;
    // Both events have been passed, unless the program captures its stream on another thread.
    let raw_ns = context.elapsed(pair)?.ok_or(Fault::Captured)?;
    let mut sample = Sample::new(raw_ns).ok_or(Fault::Captured)?;
    sample.fed = hold.is_some_and(|hold| !context.has_expired(hold));
    Ok(sample)
}

fn row(context: &Context, timed: u64) -> SeriesInfo {
    SeriesInfo {
        device: context.device_id().to_string(),
        launch: None,
        measure: Measure::Span,
        key: None,
        cache: CacheState::AsFound,
        clock: Clock::Events,
        graph: false,
        timed,
        in_flight: 0,
        population: None,
        repeats: false,
        start_ns: cuda::start_ns(),
        bias: None,
    }
}

/// Of what is to settle in replays of a graph.
fn unmet_replays(calls: u32, of: Option<&BackToBack>, obstacle: Obstacle) -> Unmet {
    Unmet {
        site: format!("graph of {calls} calls"),
        series: of.map(|of| of.series.place()).unwrap_or_default(),
        samples: of.map_or(0, BackToBack::replays),
        margin: of.and_then(|of| verdict::margin(&of.series)),
        obstacle,
    }
}
