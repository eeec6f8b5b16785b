//! Calls back to back: a graph of them, replayed until its time is known.

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use super::progress::Progress;
use super::settled::{Obstacle, percent};
use super::verdict::{self, Verdict};
use super::{SHARE, Settle, Settled, Unmet};
use crate::cuda::{self, Context, Refusal, Replay};
use crate::gpu::{EventPair, Fault, Gpu, Stream};
use crate::place::launches_block;
use crate::recorder::{self, HoldPlan, Preparation};
use crate::report::{self, Stats, units};
use crate::sample::{CacheState, Measure, Sample};
use crate::series::{RowInfo, Series};
use crate::site::Clock;
use crate::{collect, enter, process, target};

/// A replay is held for no longer than this until it has been enqueued.
const DEADLINE_NS: u64 = 5_000_000;

/// Which stream the closure launches on, and how often it is captured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Plan {
    pub stream: Stream,
    pub calls: u32,
}

/// What calls of the closure take back to back, with nothing between the kernels but what a graph
/// leaves there.
///
/// A replay is timed from before its graph to after it, with the stream held until both have been
/// enqueued. So its span has what a pair of events adds, once for all of the calls, and beginning a
/// graph costs the GPU a microsecond or so; nothing of that is removed.
#[derive(Clone, Debug, PartialEq)]
pub struct BackToBack {
    calls: u32,
    pub(super) series: report::Series,
}

impl BackToBack {
    /// How many calls a replay is of.
    pub fn calls(&self) -> u32 {
        self.calls
    }

    /// How many replays the figures are over.
    pub fn replays(&self) -> u64 {
        if self.upper_bound() { self.series.starved() } else { self.series.fed() }
    }

    /// The median time of a replay, divided by its calls.
    pub fn per_call_ns(&self) -> f64 {
        self.span_ns().map_or(f64::NAN, Stats::median) / f64::from(self.calls)
    }

    /// The interval that holds this median with 95 % confidence; `None` with fewer than 6 replays.
    pub fn ci95_ns(&self) -> Option<[f64; 2]> {
        Some(self.series.ci95_ns()?.map(|ns| ns / f64::from(self.calls)))
    }

    /// What whole replays took; `None` without any.
    pub fn span_ns(&self) -> Option<&Stats> {
        self.series.raw_ns()
    }

    /// Whether the GPU may have waited for the host in every replay, so that the times are upper
    /// bounds: that is so where streams cannot be held.
    pub fn upper_bound(&self) -> bool {
        self.series.upper_bound()
    }
}

/// One line.
impl fmt::Display for BackToBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = units::time(self.per_call_ns());
        write!(f, "back to back: {}{time} a call", if self.upper_bound() { "≤ " } else { "" })?;
        if let Some([low, high]) = self.ci95_ns() {
            write!(f, " ±{}", percent((high - low) / 2.0 / self.per_call_ns()))?;
        }
        write!(f, ", {} replays of {} calls", self.replays(), self.calls)
    }
}

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
    let is_on = process::config().is_on() && process::is_on();
    let outcome = is_on.then(|| {
        let (context, replay) = capture(plan, call)?;
        replays(settle, plan, context, &replay, started)
    });
    let (back_to_back, unmet) = match outcome {
        None => (None, None),
        Some(Ok((back_to_back, unmet))) => (Some(back_to_back), unmet),
        Some(Err(refusal)) => {
            (None, Some(Unmet::of_replays(plan.calls, None, Obstacle::Refused(refusal))))
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
    let context = enter::find(plan.stream, 0).map_err(Refusal::Failed)?;
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
            target::say(
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
        let mut series = Series::new();
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
            let shown = series.recorded().report(row(context, count), series.tally());
            let obstacle = verdict::obstacle(settle, step_ns, &shown);
            let back_to_back = BackToBack { calls: plan.calls, series: shown };
            let unmet = obstacle
                .map(|obstacle| Unmet::of_replays(plan.calls, Some(&back_to_back), obstacle));
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
    let can_hold = !launches_block() && context.prepare_hold(|| true);
    let hold = can_hold.then_some(HoldPlan::Until(DEADLINE_NS));
    let held = recorder::begin(context, stream, pair, Preparation { cold: None, hold })?;
    if let Err(fault) = replay.launch(stream) {
        recorder::abandon(context, held);
        return Err(fault);
    }
    let hold = recorder::end(context, stream, pair, held)?;
    context.synchronize(stream)?;
    // Both events have been passed, unless the program captures its stream on another thread.
    let raw_ns = context.elapsed(pair)?.ok_or(Fault::Captured)?;
    let mut sample = Sample::new(raw_ns).ok_or(Fault::Captured)?;
    sample.fed = hold.is_some_and(|hold| !context.has_expired(hold));
    Ok(sample)
}

fn row(context: &Context, timed: u64) -> RowInfo {
    RowInfo {
        device: collect::device_id(context.place()),
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
