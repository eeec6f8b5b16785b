//! Measuring what a pair of events reads around a kernel that does nothing, and around nothing at all.
//!
//! The kernel is measured in two regimes, because a pair with a long queue behind it reads about 0.6 µs more than
//! one that is alone (H200). What is alone cannot be enqueued ahead: each pair has a hold of its own,
//! and the host gives the GPU the time to finish it before it enqueues the next. So whoever meets a
//! context first spends some milliseconds here, once; nobody else waits for that. The host never waits
//! for the GPU beyond a bounded number of looks: one that is busy with other work, which would
//! disturb the figures anyway, is asked again when a report is made.

use std::fmt;
use std::sync::TryLockError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use cudarc::driver::sys::{self, CUevent};

use crate::base::lock::{Mutex, Rank, locked};
use crate::cuda::event::{create_event, elapsed};
use crate::cuda::hold::Holds;
use crate::cuda::module::Kernel;
use crate::cuda::private_stream;
use crate::cuda::result::check;
use crate::cuda::result::raw;
use crate::cuda::symbols::Symbols;
use crate::gpu::{Fault, HoldResult};
use crate::stats::bias::Calibration;
use crate::stats::pair_constant::{PairConstant, quantile};
use crate::types::handles::{Event, EventPair, Stream};

/// Pairs that are used in turn, and the length of the long queue.
const PAIRS: usize = 32;
/// The last pairs of a queue have too little behind them to count as queued.
const LAST: usize = 12;
/// Pairs that come first and are not looked at. The GPU raises its clocks meanwhile: about 2 ms, in
/// most of which the hold keeps it busy.
const RAMP: usize = 100;
/// Held pairs of a calibration, and of a check whether it still holds.
const SAMPLES: usize = 200;
const CHECKED: usize = 64;
/// They are taken so often at most until they agree.
const ROUNDS: usize = 3;
/// Samples that agree lie within so many steps. The half is for times that are no whole nanoseconds.
const AGREEMENT_STEPS: f64 = 3.5;
/// So far apart are the two values that the constant takes in turn on some H200s: 0.22 µs. The second may
/// not have been seen at first.
const SECOND_NS: f64 = 256.0;
/// A constant that differs by more steps than this, which is more than two, has moved.
const MOVED_STEPS: f64 = 2.5;
/// The step of an H200, for as long as the device's own is not known.
const ASSUMED_STEP_NS: f64 = 32.0;
/// From a release until the GPU has finished the pair: about 7 µs, with room for a slower one.
const PACE: Duration = Duration::from_micros(12);
/// Enqueueing a pair takes 5 µs; one whose hold ran out was not held and does not count.
const HOLD_NS: u64 = 200_000;
const QUEUE_HOLD_NS: u64 = 5_000_000;
/// Looks at unfinished events in one calibration, all in all: at 0.1 µs each about 2 ms. Counted, not
/// timed, so that a host that is busy elsewhere gets no fewer.
const LOOKS: u32 = 20_000;

/// What calibrating needs of a context.
pub(super) struct Equipment<'a> {
    pub symbols: &'static Symbols,
    pub holds: &'a Holds,
    pub empty: Kernel,
}

/// The calibration of one context.
pub(super) struct Calibrator {
    /// Whether it has been tried. What failed is tried again at a report only.
    tried: AtomicBool,
    /// Locked by who calibrates.
    tools: Mutex<Tools>,
    /// Never locked during a driver call: who makes a report must not wait for one.
    outcome: Mutex<Outcome>,
    /// What a pair reads more where a long queue is behind it, as bits of a float: for timed calls, which
    /// lock nothing for it.
    queued_extra: AtomicU64,
}

impl Default for Calibrator {
    fn default() -> Self {
        Calibrator {
            tried: AtomicBool::new(false),
            tools: Mutex::new(Rank::CalibrationTools, Tools::default()),
            outcome: Mutex::new(Rank::Calibration, Outcome::default()),
            queued_extra: AtomicU64::new(0),
        }
    }
}

#[derive(Default)]
struct Tools {
    /// A stream that nothing else of ours uses: the clock's events would stand among the pairs, and
    /// the holds before those.
    stream: Option<Stream>,
    pairs: Vec<EventPair>,
}

#[derive(Clone, Copy, Default)]
struct Outcome {
    /// The calibration in force, or why there is none.
    first: Option<Result<Calibration, Obstacle>>,
    /// What the last check said, or why it said nothing.
    last: Option<Result<PairConstant, Obstacle>>,
}

/// Why there is no calibration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Obstacle {
    Fault(Fault),
    /// The GPU did not come to our work, or the host did not come to enqueue it.
    Busy,
    /// What pairs read differs by too much to tell.
    Disagreement,
    /// A launch returns when its kernel has ended, so that nothing can be held.
    Blocking,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Obstacle::Fault(fault) => fault.fmt(f),
            Obstacle::Busy => f.write_str("the GPU was busy"),
            Obstacle::Disagreement => f.write_str("pairs differ by too much among themselves"),
            Obstacle::Blocking => f.write_str("every launch waits for its kernel"),
        }
    }
}

impl From<Fault> for Obstacle {
    fn from(fault: Fault) -> Obstacle {
        Obstacle::Fault(fault)
    }
}

impl Calibrator {
    pub fn is_tried(&self) -> bool {
        self.tried.load(Relaxed)
    }

    /// Calibrates, unless that was tried before or somebody is at it. The context must be current.
    pub fn calibrate(
        &self,
        step_ns: Option<f64>,
        equipment: Result<Equipment<'_>, Obstacle>,
    ) -> Result<(), Fault> {
        self.work(|tools, outcome| match outcome.first {
            None => outcome.calibrate(tools, step_ns, equipment),
            Some(_) => Ok(()),
        })
    }

    /// Looks whether the constant has moved, or calibrates where that has not been done. The context
    /// must be current.
    pub fn check(
        &self,
        step_ns: Option<f64>,
        equipment: Result<Equipment<'_>, Obstacle>,
    ) -> Result<(), Fault> {
        self.work(|tools, outcome| match outcome.first {
            Some(Ok(first)) => outcome.check(first.held, tools, step_ns, equipment),
            _ => outcome.calibrate(tools, step_ns, equipment),
        })
    }

    fn work(
        &self,
        f: impl FnOnce(&mut Tools, &mut Outcome) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let Ok(mut tools) = self.tools.try_lock() else { return Ok(()) };
        self.tried.store(true, Relaxed);
        let mut outcome = *locked(&self.outcome);
        let worked = f(&mut tools, &mut outcome);
        *locked(&self.outcome) = outcome;
        if let Some(Ok(first)) = outcome.first {
            self.queued_extra.store(first.queued_extra_ns().to_bits(), Relaxed);
        }
        worked
    }

    pub fn queued_extra_ns(&self) -> f64 {
        f64::from_bits(self.queued_extra.load(Relaxed))
    }

    pub fn get(&self) -> Option<Calibration> {
        locked(&self.outcome).first?.ok()
    }

    /// What is wrong with it, for the report.
    pub fn warning(&self, step_ns: Option<f64>) -> Option<String> {
        let outcome = *locked(&self.outcome);
        let first = match outcome.first {
            Some(Ok(first)) => first,
            Some(Err(obstacle)) => {
                return Some(format!("the event bias could not be calibrated ({obstacle})"));
            }
            None => {
                let is_under_way = matches!(self.tools.try_lock(), Err(TryLockError::WouldBlock));
                return is_under_way.then(|| {
                    "the calibration of the event bias had not come to an end".to_owned()
                });
            }
        };
        match outcome.last? {
            Ok(last) => has_moved(&first.held, &last, step_ns).then(|| {
                format!(
                    "the event bias moved by {:+.0} ns while the program ran, and so may net times",
                    last.ns - first.held.ns
                )
            }),
            Err(obstacle) => Some(format!(
                "whether the event bias moved while the program ran could not be checked ({obstacle})"
            )),
        }
    }
}

impl Outcome {
    fn calibrate(
        &mut self,
        tools: &mut Tools,
        step_ns: Option<f64>,
        equipment: Result<Equipment<'_>, Obstacle>,
    ) -> Result<(), Fault> {
        let measured = tools.bench(equipment).and_then(|mut bench| {
            bench.held(RAMP, Bench::enqueue)?;
            let queued_empty_ns = bench.queued()?;
            let pair_ns = bench.floor()?;
            Ok(Calibration { held: bench.agreeing(SAMPLES, step_ns)?, queued_empty_ns, pair_ns })
        });
        self.first = Some(measured);
        fault_of(measured)
    }

    fn check(
        &mut self,
        first: PairConstant,
        tools: &mut Tools,
        step_ns: Option<f64>,
        equipment: Result<Equipment<'_>, Obstacle>,
    ) -> Result<(), Fault> {
        let measured = tools.bench(equipment).and_then(|mut bench| {
            bench.held(RAMP, Bench::enqueue)?;
            let last = bench.agreeing(CHECKED, step_ns)?;
            let [low, high] = last.interval_ns;
            // Where that holds whatever the constant may have become, nothing was seen. A second value is no
            // disagreement.
            let second_ns = first.spread_ns.max(SECOND_NS);
            let is_certain = high - low <= agreement_ns(step_ns) + second_ns;
            let says = is_certain || has_moved(&first, &last, step_ns);
            says.then_some(last).ok_or(Obstacle::Disagreement)
        });
        self.last = Some(measured);
        fault_of(measured)
    }
}

impl Tools {
    /// Everything in its place: the pairs made, the kernel loaded by its first launch.
    fn bench<'a>(
        &'a mut self,
        equipment: Result<Equipment<'a>, Obstacle>,
    ) -> Result<Bench<'a>, Obstacle> {
        let equipment = equipment?;
        let stream = match self.stream {
            Some(stream) => stream,
            None => *self.stream.insert(private_stream::create()?),
        };
        while self.pairs.len() < PAIRS {
            self.pairs.push(EventPair { start: create_event()?, stop: create_event()? });
        }
        let bench = Bench { equipment, stream, pairs: &self.pairs, looks: LOOKS };
        bench.launch_empty()?;
        Ok(bench)
    }
}

/// A calibration under way.
struct Bench<'a> {
    equipment: Equipment<'a>,
    stream: Stream,
    pairs: &'a [EventPair],
    /// How often it may still look at something that is not finished.
    looks: u32,
}

impl Bench<'_> {
    /// What so many held pairs say, of the first round that agrees; else what all rounds say together,
    /// because to pick one would be to pick a value.
    fn agreeing(&mut self, count: usize, step_ns: Option<f64>) -> Result<PairConstant, Obstacle> {
        let mut all = Vec::new();
        for _ in 0..ROUNDS {
            let samples = self.held(count, Bench::enqueue)?;
            if samples.len() < count / 2 {
                return Err(Obstacle::Busy);
            }
            all.extend_from_slice(&samples);
            let found = PairConstant::of(samples).ok_or(Obstacle::Busy)?;
            if found.spread_ns <= agreement_ns(step_ns) {
                return Ok(found);
            }
        }
        PairConstant::of(all).ok_or(Obstacle::Busy)
    }

    /// The median of pairs with nothing between; `None` where no hold lasted.
    fn floor(&mut self) -> Result<Option<f64>, Obstacle> {
        let mut samples = self.held(PAIRS, Bench::enqueue_nothing)?;
        samples.sort_by(f64::total_cmp);
        Ok(quantile(&samples, 0.5))
    }

    /// So many pairs, each alone behind a hold, less those whose hold ran out.
    fn held(
        &mut self,
        count: usize,
        enqueue: impl Fn(&Self, &EventPair) -> Result<(), Fault>,
    ) -> Result<Vec<f64>, Obstacle> {
        let mut samples = Vec::with_capacity(count);
        let mut holds: [Option<HoldResult>; PAIRS] = [None; PAIRS];
        // Once more round to read the last ones.
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

    /// The median of the pairs of a long queue that have much of it behind them.
    fn queued(&mut self) -> Result<Option<f64>, Obstacle> {
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

    /// Enqueues while the stream is held, and lets it go whatever comes of that.
    fn behind_hold(
        &self,
        deadline_ns: u64,
        enqueue: impl FnOnce(&Self) -> Result<(), Fault>,
    ) -> Result<HoldResult, Fault> {
        let held = self.equipment.holds.hold(self.stream, deadline_ns)?;
        let enqueued = enqueue(self);
        let hold = self.equipment.holds.release(held);
        enqueued.map(|()| hold)
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
        // SAFETY: event and stream were made in the current context and are never destroyed.
        check(unsafe { sys::cuEventRecord(event.handle() as CUevent, raw(self.stream)) })
    }

    fn launch_empty(&self) -> Result<(), Fault> {
        // SAFETY: the kernel takes no parameters, and its context is current.
        unsafe { self.equipment.empty.launch(self.stream, (1, 1), &mut []) }
    }

    /// The time of a pair, once the GPU has passed it.
    fn wait(&mut self, pair: &EventPair) -> Result<f64, Obstacle> {
        loop {
            if let Some(ns) = elapsed(self.equipment.symbols, &pair.start, &pair.stop)? {
                return Ok(ns);
            }
            self.looks = self.looks.checked_sub(1).ok_or(Obstacle::Busy)?;
        }
    }
}

fn fault_of<T>(measured: Result<T, Obstacle>) -> Result<(), Fault> {
    match measured {
        Err(Obstacle::Fault(fault)) => Err(fault),
        _ => Ok(()),
    }
}

fn agreement_ns(step_ns: Option<f64>) -> f64 {
    AGREEMENT_STEPS * step_ns.unwrap_or(ASSUMED_STEP_NS)
}

fn has_moved(first: &PairConstant, last: &PairConstant, step_ns: Option<f64>) -> bool {
    first.distance_ns(last) > MOVED_STEPS * step_ns.unwrap_or(ASSUMED_STEP_NS)
}
