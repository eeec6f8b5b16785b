//! Calibrates the event bias, by timing event pairs around an empty kernel and around nothing.
//!
//! The kernel is measured in two regimes, because a pair with a long queue behind it measures about 0.6 µs
//! more than a lone one (H200). Lone pairs cannot be enqueued ahead: each has its own hold, and the host
//! gives the GPU time to finish it before enqueueing the next pair. The first call in a context therefore
//! spends some milliseconds here. No other thread waits for it. The host queries the GPU a bounded number of
//! times. If the GPU is busy with other work, which would disturb the measurements anyway, calibration is
//! retried when a report is made.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::base::lock::{Mutex, Rank, locked, locked_by, try_locked};
use crate::cuda::objects::{create_event, create_stream, elapsed, record_event};
use crate::cuda::{hold::Holds, module::LoadedKernel, no_result::NoResult, symbols::Symbols};
use crate::gpu::{Fault, HoldResult};
use crate::stats::bias::{AddedTime, Calibration, InnerCost};
use crate::stats::{pair_constant::PairConstant, quantile::quantile};
use crate::types::handles::{Event, EventPair, Stream};

/// The number of event pairs, which are used in rotation. Also the length of the long queue.
const PAIRS: usize = 32;
/// The number of pairs at the end of the long queue that have too little work behind them to count as
/// queued.
const LAST: usize = 12;
/// The number of measurements of a pair around several kernels, both with and without a pair around each
/// kernel.
const INNER_SAMPLES: usize = 5;
/// The number of initial pairs whose times are not used, while the GPU raises its clocks. They take about
/// 2 ms, during most of which holds keep the GPU busy.
const RAMP: usize = 100;
/// The number of pairs measured behind holds, for a calibration, and for a check of whether the bias has
/// moved.
const SAMPLES: usize = 200;
const CHECKED: usize = 64;
/// The maximum number of rounds taken to get samples that agree.
const ROUNDS: usize = 3;
/// The maximum spread of agreeing samples, in clock steps. The half step allows for times that are not
/// whole nanoseconds.
const AGREEMENT_STEPS: f64 = 3.5;
/// The distance between the two values of the constant on H200s where it alternates: 0.22 µs, rounded up. The
/// first calibration may have seen only one of the values.
const SECOND_NS: f64 = 256.0;
/// The distance, in clock steps, beyond which a constant counts as moved: more than two.
const MOVED_STEPS: f64 = 2.5;
/// The clock step of an H200, used until the device's own step is known.
const ASSUMED_STEP_NS: f64 = 32.0;
/// The time from a release until the GPU has finished the pair: about 7 µs, with a margin for
/// slower GPUs.
const PACE: Duration = Duration::from_micros(12);
/// Hold deadlines, for a single pair and for a queue. Enqueueing a pair takes 5 µs. A pair whose hold
/// expired does not count.
const HOLD_NS: u64 = 200_000;
const QUEUE_HOLD_NS: u64 = 5_000_000;
/// The maximum number of queries for unfinished events in one calibration: about 2 ms at 0.1 µs
/// each. They are counted rather than timed, so a descheduled host still gets all of them.
const QUERIES: u32 = 20_000;
/// Additional queries for the cost of pairs inside another pair, which is measured last. On some hosts an empty pair takes
/// 3 µs, and these measurements some 2 ms.
const INNER_QUERIES: u32 = 20_000;

/// The parts of a context needed for calibration.
pub(super) struct Equipment<'a> {
    pub symbols: &'static Symbols,
    pub holds: &'a Holds,
    pub empty: LoadedKernel,
    /// The resolution of event times, if it is known.
    pub step_ns: Option<f64>,
}

/// The calibration of one context.
pub(super) struct Calibrator {
    /// Set once calibration has been tried. A failed one is retried only when a report is made.
    pub tried: AtomicBool,
    /// Locked during calibration.
    tools: Mutex<Tools>,
    /// Never locked during a driver call, so that a report does not have to wait for the driver.
    results: Mutex<Results>,
    /// The calibration in use, which timed calls read without a lock.
    pub calibration: OnceLock<Calibration>,
}

impl Default for Calibrator {
    fn default() -> Self {
        Calibrator {
            tried: AtomicBool::new(false),
            tools: Mutex::new(Rank::CalibrationTools, Tools::default()),
            results: Mutex::new(Rank::Calibration, Results::default()),
            calibration: OnceLock::new(),
        }
    }
}

#[derive(Default)]
struct Tools {
    /// A stream used only for calibration. On the context's own stream, events that align the clocks would
    /// come between the pairs, and holds would delay them.
    stream: Option<Stream>,
    pairs: Vec<EventPair>,
}

#[derive(Clone, Copy, Default)]
struct Results {
    /// The reason why there is no calibration, if it has failed so far.
    failure: Option<NoResult>,
    /// The result of the last check, or the reason why it has none.
    last: Option<Result<PairConstant, NoResult>>,
}

impl Calibrator {
    /// Calibrates, unless that has been tried before. With `checks`, tries again after a failure, and
    /// checks after a success whether the constant has moved. Does nothing if another thread is
    /// calibrating. The context must be current.
    pub fn calibrate(
        &self,
        checks: bool,
        equipment: Result<Equipment<'_>, NoResult>,
    ) -> Result<(), Fault> {
        let Some(mut tools) = try_locked(&self.tools) else { return Ok(()) };
        self.tried.store(true, Relaxed);
        let failure = locked(&self.results).failure;
        let error = match self.calibration.get() {
            first if !checks && (first.is_some() || failure.is_some()) => None,
            Some(first) => {
                let last = tools.bench(equipment).and_then(|bench| bench.check(first.held));
                locked(&self.results).last = Some(last);
                last.err()
            }
            None => {
                let first = tools.bench(equipment).and_then(Bench::calibrate);
                let failure = first.map(|first| _ = self.calibration.set(first)).err();
                locked(&self.results).failure = failure;
                failure
            }
        };
        match error {
            Some(NoResult::Fault(fault)) => Err(fault),
            _ => Ok(()),
        }
    }

    /// Runs the empty kernel `count` times behind holds, and waits until the GPU is done. Fails if another
    /// thread is calibrating. The context must be current.
    pub fn run_empty_kernels(
        &self,
        count: usize,
        equipment: Result<Equipment<'_>, NoResult>,
    ) -> Result<(), NoResult> {
        let mut tools = try_locked(&self.tools).ok_or(NoResult::Busy)?;
        let held = tools.bench(equipment)?.held(count, Bench::enqueue)?;
        if held.len() < count / 2 { Err(NoResult::Busy) } else { Ok(()) }
    }

    /// Frees the list of pairs. Must be called only after the context has been destroyed. Returns `false`
    /// if another thread is calibrating.
    pub fn retire(&self) -> bool {
        let tools = locked_by(&self.tools, Instant::now());
        tools.map(|mut tools| *tools = Tools::default()).is_some()
    }

    /// Returns the report's warning about the calibration, if there is a problem.
    pub fn warning(&self, step_ns: Option<f64>) -> Option<String> {
        let results = *locked(&self.results);
        let Some(first) = self.calibration.get() else {
            if let Some(error) = results.failure {
                return Some(format!("the event bias could not be calibrated ({error})"));
            }
            let is_under_way = try_locked(&self.tools).is_none();
            return is_under_way
                .then(|| "the calibration of the event bias was still running".to_owned());
        };
        match results.last? {
            Ok(last) => has_moved(&first.held, &last, step_ns).then(|| {
                format!(
                    "the event bias moved by {:+.0} ns while the program ran, and net times may have \
                     moved with it",
                    last.ns - first.held.ns
                )
            }),
            Err(error) => Some(format!(
                "could not check whether the event bias moved while the program ran ({error})"
            )),
        }
    }
}

impl Tools {
    /// Creates the stream and the pairs if needed, and launches the kernel once to load it.
    fn bench<'a>(
        &'a mut self,
        equipment: Result<Equipment<'a>, NoResult>,
    ) -> Result<Bench<'a>, NoResult> {
        let equipment = equipment?;
        let stream = match self.stream {
            Some(stream) => stream,
            None => *self.stream.insert(create_stream()?),
        };
        while self.pairs.len() < PAIRS {
            self.pairs.push(EventPair { start: create_event()?, stop: create_event()? });
        }
        let bench = Bench { equipment, stream, pairs: &self.pairs, queries: QUERIES };
        bench.launch_empty()?;
        Ok(bench)
    }
}

/// A calibration in progress.
struct Bench<'a> {
    equipment: Equipment<'a>,
    stream: Stream,
    pairs: &'a [EventPair],
    /// The number of queries left for unfinished events.
    queries: u32,
}

impl Bench<'_> {
    fn calibrate(mut self) -> Result<Calibration, NoResult> {
        self.held(RAMP, Bench::enqueue)?;
        let queued_empty_ns = self.queued()?;
        let pair_ns = self.floor()?;
        let held = self.agreeing(SAMPLES)?;
        self.queries += INNER_QUERIES;
        let inner = self.inner().ok().flatten();
        Ok(Calibration { held, queued_empty_ns, pair_ns, inner })
    }

    fn check(mut self, first: PairConstant) -> Result<PairConstant, NoResult> {
        let step_ns = self.equipment.step_ns;
        self.held(RAMP, Bench::enqueue)?;
        let last = self.agreeing(CHECKED)?;
        let [low, high] = last.interval_ns;
        // A wide interval is inconclusive unless it excludes the first constant. An interval that spans
        // both values of an alternating constant is not wide.
        let second_ns = first.spread_ns.max(SECOND_NS);
        let is_certain = high - low <= agreement_ns(step_ns) + second_ns;
        let is_conclusive = is_certain || has_moved(&first, &last, step_ns);
        is_conclusive.then_some(last).ok_or(NoResult::Disagreement)
    }

    /// Takes up to [`ROUNDS`] rounds of `count` samples, and returns the constant of the first round whose
    /// samples agree. If the samples agree in no round, uses the samples of all rounds: with two
    /// alternating values, picking a round would pick one of the values by chance.
    fn agreeing(&mut self, count: usize) -> Result<PairConstant, NoResult> {
        let mut all = Vec::new();
        for _ in 0..ROUNDS {
            let samples = self.held(count, Bench::enqueue)?;
            if samples.len() < count / 2 {
                return Err(NoResult::Busy);
            }
            all.extend_from_slice(&samples);
            let constant = PairConstant::of(samples).ok_or(NoResult::Busy)?;
            if constant.spread_ns <= agreement_ns(self.equipment.step_ns) {
                return Ok(constant);
            }
        }
        PairConstant::of(all).ok_or(NoResult::Busy)
    }

    /// Returns the median time of an empty pair, or `None` if every hold expired.
    fn floor(&mut self) -> Result<Option<f64>, NoResult> {
        let mut samples = self.held(PAIRS, Bench::enqueue_nothing)?;
        samples.sort_by(f64::total_cmp);
        Ok(quantile(&samples, 0.5))
    }

    /// Measures `count` lone pairs, each behind its own hold, and returns their times, except for pairs
    /// whose hold expired.
    fn held(
        &mut self,
        count: usize,
        enqueue: impl Fn(&Self, &EventPair) -> Result<(), Fault>,
    ) -> Result<Vec<f64>, NoResult> {
        let mut samples = Vec::with_capacity(count);
        let mut holds: [Option<HoldResult>; PAIRS] = [None; PAIRS];
        // The last `PAIRS` iterations only read.
        for n in 0..count + PAIRS {
            let (pair, hold) = (self.pairs[n % PAIRS], &mut holds[n % PAIRS]);
            if let Some(hold) = hold.take() {
                let ns = self.wait(&pair)?;
                if !self.equipment.holds.has_expired(hold) {
                    samples.push(ns);
                }
            }
            if n < count {
                *hold = Some(self.behind_hold(HOLD_NS, |bench| enqueue(bench, &pair))?);
                let released = Instant::now();
                while released.elapsed() < PACE {
                    std::hint::spin_loop();
                }
            }
        }
        Ok(samples)
    }

    /// Returns the median time of the pairs in a long queue that have enough work behind them, or `None`
    /// if every hold expired.
    fn queued(&mut self) -> Result<Option<f64>, NoResult> {
        for _ in 0..ROUNDS {
            let hold = self.behind_hold(QUEUE_HOLD_NS, |bench| {
                bench.pairs.iter().try_for_each(|pair| bench.enqueue(pair))
            })?;
            let mut samples = Vec::with_capacity(PAIRS);
            for pair in self.pairs {
                samples.push(self.wait(pair)?);
            }
            if !self.equipment.holds.has_expired(hold) {
                samples.truncate(PAIRS - LAST);
                samples.sort_by(f64::total_cmp);
                return Ok(quantile(&samples, 0.5));
            }
        }
        Ok(None)
    }

    /// Measures the time that pairs inside another pair add to it. Returns `None` if holds expired.
    fn inner(&mut self) -> Result<Option<InnerCost>, NoResult> {
        let few = self.added_by(InnerCost::NEAR / 2)?;
        let many = self.added_by(InnerCost::NEAR * 2)?;
        Ok(few.zip(many).and_then(|(few, many)| InnerCost::of(few, many)))
    }

    /// Returns the time that a pair around each of `count` kernels adds in total to a pair around all of
    /// them. Returns `None` if holds expired.
    fn added_by(&mut self, count: usize) -> Result<Option<AddedTime>, NoResult> {
        let mut samples = [const { Vec::new() }; 2];
        for _ in 0..INNER_SAMPLES {
            for (has_pairs, samples) in [false, true].into_iter().zip(&mut samples) {
                let enqueue = |bench: &Bench<'_>| bench.enqueue_around(count, has_pairs);
                let hold = self.behind_hold(QUEUE_HOLD_NS, enqueue)?;
                let ns = self.wait(&self.pairs[0].clone())?;
                if !self.equipment.holds.has_expired(hold) {
                    samples.push(ns);
                }
            }
        }
        let [plain, bracketed] = samples.map(|mut samples| {
            samples.sort_by(f64::total_cmp);
            let ns = quantile(&samples, 0.5)?;
            Some(AddedTime { ns, spread_ns: quantile(&samples, 0.9)? - ns })
        });
        Ok(plain.zip(bracketed).map(|(plain, bracketed)| AddedTime {
            ns: bracketed.ns - plain.ns,
            spread_ns: bracketed.spread_ns + plain.spread_ns,
        }))
    }

    /// Enqueues a pair around `count` empty kernels and, with `has_pairs`, a pair around each kernel.
    fn enqueue_around(&self, count: usize, has_pairs: bool) -> Result<(), Fault> {
        let Some((outer, inner)) = self.pairs.split_first() else { return Ok(()) };
        self.record(&outer.start)?;
        for pair in inner.iter().take(count) {
            if has_pairs { self.enqueue(pair)? } else { self.launch_empty()? }
        }
        self.record(&outer.stop)
    }

    /// Holds the stream while `enqueue` enqueues work. Releases the stream even on failure.
    fn behind_hold(
        &self,
        deadline_ns: u64,
        enqueue: impl FnOnce(&Self) -> Result<(), Fault>,
    ) -> Result<HoldResult, Fault> {
        let hold = self.equipment.holds.hold(self.stream, deadline_ns)?;
        let enqueued = enqueue(self);
        let result = self.equipment.holds.release(hold);
        enqueued.map(|()| result)
    }

    fn enqueue(&self, pair: &EventPair) -> Result<(), Fault> {
        self.record(&pair.start)?;
        self.launch_empty()?;
        self.record(&pair.stop)
    }

    fn enqueue_nothing(&self, pair: &EventPair) -> Result<(), Fault> {
        self.record(&pair.start)?;
        self.record(&pair.stop)
    }

    fn record(&self, event: &Event) -> Result<(), Fault> {
        record_event(event, self.stream)
    }

    fn launch_empty(&self) -> Result<(), Fault> {
        // SAFETY: the kernel takes no parameters, and its context is current.
        unsafe { self.equipment.empty.launch(self.stream, (1, 1), []) }
    }

    /// Waits until the GPU has passed a pair and returns its time.
    fn wait(&mut self, pair: &EventPair) -> Result<f64, NoResult> {
        loop {
            if let Some(ns) = elapsed(self.equipment.symbols, &pair.start, &pair.stop)? {
                return Ok(ns);
            }
            self.queries = self.queries.checked_sub(1).ok_or(NoResult::Busy)?;
        }
    }
}

fn agreement_ns(step_ns: Option<f64>) -> f64 {
    AGREEMENT_STEPS * step_ns.unwrap_or(ASSUMED_STEP_NS)
}

fn has_moved(first: &PairConstant, last: &PairConstant, step_ns: Option<f64>) -> bool {
    first.distance_ns(last) > MOVED_STEPS * step_ns.unwrap_or(ASSUMED_STEP_NS)
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn calibrator_is_not_busy_after_a_panic() {
        let calibrator = Calibrator::default();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _tools = locked(&calibrator.tools);
            panic!("planted");
        }));
        assert!(panicked.is_err());
        let run = calibrator.run_empty_kernels(1, Err(NoResult::Blocking));
        assert_eq!(run, Err(NoResult::Blocking));
        assert_eq!(calibrator.warning(None), None);
    }
}
