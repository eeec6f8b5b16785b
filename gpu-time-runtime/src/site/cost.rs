//! The cost of timing a site, counted only while a budget is set.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use crate::base::{random::happens, switches::SWITCHES};
use crate::stats::budget::Usage;

/// One in this many timed calls is metered, and one in this many decisions.
const ONE_IN: u8 = 8;
/// Upper bound on the host cost of one timed call. A longer time is not a recurring cost: the call
/// calibrated its context, or waited for space in a full stream, as the launch itself would have.
pub(crate) const LONGEST_NS: u64 = 100_000;
/// Upper bound on the cost of one sampling decision. Anything longer is either a rate adjustment,
/// which is counted separately, or preemption.
const LONGEST_DECISION_NS: u64 = 1_000;

/// The costs of one site since the last [`CostMeter::take`].
#[repr(align(64))] // timed calls write it, so it is apart from fields that every call reads
pub(crate) struct CostMeter(Usage<AtomicU64>);

/// Returns `true` while a budget is set and costs are counted.
#[inline(always)]
pub(crate) fn is_on() -> bool {
    SWITCHES.budget.load(Relaxed)
}

impl CostMeter {
    pub const fn new() -> Self {
        CostMeter(Usage {
            calls: AtomicU64::new(0),
            timed: AtomicU64::new(0),
            pair_ns: AtomicU64::new(0),
            preparation_ns: AtomicU64::new(0),
            metered: AtomicU64::new(0),
            metered_ns: AtomicU64::new(0),
            decision_ns: AtomicU64::new(0),
            paced: AtomicU64::new(0),
            paced_by_gpu: AtomicU64::new(0),
        })
    }

    /// Counts calls, timed or not.
    pub fn count(&self, calls: u64) {
        self.0.calls.fetch_add(calls, Relaxed);
    }

    /// Counts one timed call.
    pub fn count_timed(&self) {
        self.0.timed.fetch_add(1, Relaxed);
    }

    /// Counts the device time of one event pair.
    #[cold]
    pub fn count_pair(&self, ns: f64) {
        self.0.pair_ns.fetch_add(ns as u64, Relaxed);
    }

    /// Counts a time that is charged in full: the device time of a flush or a hold, or the host time
    /// that recording adds to the launches of an opened call.
    #[cold]
    pub fn count_preparation(&self, ns: f64) {
        self.0.preparation_ns.fetch_add(ns as u64, Relaxed);
    }

    /// Counts a sample that shows which side sets the pace: the GPU if `is_gpu_behind`. This means
    /// that the GPU was busy with the application's earlier work until the host had enqueued the
    /// whole bracket.
    #[cold]
    pub fn count_pace(&self, is_gpu_behind: bool) {
        self.0.paced.fetch_add(1, Relaxed);
        self.0.paced_by_gpu.fetch_add(u64::from(is_gpu_behind), Relaxed);
    }

    /// Returns the counters and resets them.
    pub fn take(&self) -> Usage {
        self.read(|count| count.swap(0, Relaxed))
    }

    /// Returns the counters.
    pub fn peek(&self) -> Usage {
        self.read(|count| count.load(Relaxed))
    }

    fn read(&self, one: impl Fn(&AtomicU64) -> u64) -> Usage {
        let number = |count| one(count) as f64;
        Usage {
            calls: number(&self.0.calls),
            timed: number(&self.0.timed),
            pair_ns: number(&self.0.pair_ns),
            preparation_ns: number(&self.0.preparation_ns),
            metered: number(&self.0.metered),
            metered_ns: number(&self.0.metered_ns),
            decision_ns: number(&self.0.decision_ns),
            paced: number(&self.0.paced),
            paced_by_gpu: number(&self.0.paced_by_gpu),
        }
    }
}

/// Returns `true` for one call in [`ONE_IN`], chosen at random.
fn is_chosen() -> bool {
    happens(f64::from(ONE_IN).recip())
}

/// Meters the host time of one timed call in [`ONE_IN`].
///
/// Invariant: the time is added to the meter once, when the call ends. A reader therefore sees a
/// call together with its full time, however long the call takes.
pub(crate) struct CostTimer {
    meter: Option<&'static CostMeter>,
    /// The call is inside an opened call, whose cost the meter counts.
    is_inner: bool,
    ns: AtomicU64,
}

impl CostTimer {
    /// Creates an inactive timer.
    pub const fn off() -> CostTimer {
        CostTimer { meter: None, is_inner: false, ns: AtomicU64::new(0) }
    }

    /// Creates the timer for one call. It is active for one call in [`ONE_IN`]. A call inside an opened one `is_inner`: it
    /// is timed because the outermost function is, so `meter`, the meter of that function, counts its time as a cost of
    /// recording.
    #[inline(always)]
    pub fn sample(meter: &'static CostMeter, is_inner: bool) -> CostTimer {
        if is_on() { CostTimer::draw(meter, is_inner) } else { CostTimer::off() }
    }

    #[cold]
    fn draw(meter: &'static CostMeter, is_inner: bool) -> CostTimer {
        let meter = is_chosen().then_some(meter);
        CostTimer { meter, is_inner, ns: AtomicU64::new(0) }
    }

    /// Measures until the returned value is dropped.
    #[inline(always)]
    pub fn start(&self) -> CostGuard<'_> {
        CostGuard(if self.meter.is_some() {
            Some(Stretch::new(&self.ns, LONGEST_NS, 1))
        } else {
            None
        })
    }
}

impl Drop for CostTimer {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(meter) = self.meter {
            let ns = *self.ns.get_mut();
            if self.is_inner {
                meter.count_preparation((ns * u64::from(ONE_IN)) as f64);
            } else {
                count_call(meter, ns);
            }
        }
    }
}

#[cold]
fn count_call(meter: &CostMeter, ns: u64) {
    meter.0.metered_ns.fetch_add(ns, Relaxed);
    meter.0.metered.fetch_add(1, Relaxed);
}

/// On drop, adds the elapsed host time to a counter.
#[must_use]
pub struct CostGuard<'a>(Option<Stretch<'a>>);

struct Stretch<'a> {
    ns: &'a AtomicU64,
    began: Instant,
    longest_ns: u64,
    /// The number of stretches that this one represents.
    weight: u64,
}

impl<'a> Stretch<'a> {
    #[cold]
    fn new(ns: &'a AtomicU64, longest_ns: u64, weight: u64) -> Self {
        Stretch { ns, began: Instant::now(), longest_ns, weight }
    }
}

impl CostGuard<'_> {
    /// Marks that the call waits for the GPU, so all of its time counts as cost.
    #[inline(always)]
    pub fn waits(&mut self) {
        if let Some(stretch) = &mut self.0 {
            stretch.longest_ns = u64::MAX;
        }
    }
}

impl Drop for Stretch<'_> {
    #[cold]
    fn drop(&mut self) {
        let took = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.ns.fetch_add(took.min(self.longest_ns) * self.weight, Relaxed);
    }
}

/// Meters one decision in [`ONE_IN`] until the returned value is dropped. It counts for [`ONE_IN`]
/// decisions.
#[inline]
pub(crate) fn time_decision(meter: &CostMeter) -> CostGuard<'_> {
    let is_timed = is_on() && is_chosen();
    CostGuard(
        is_timed.then(|| Stretch::new(&meter.0.decision_ns, LONGEST_DECISION_NS, ONE_IN.into())),
    )
}

/// Counts a metered call that began this long `ago`.
#[cfg(test)]
pub(crate) fn count_call_of(meter: &'static CostMeter, ago: std::time::Duration) {
    let timer = CostTimer { meter: Some(meter), is_inner: false, ns: AtomicU64::new(0) };
    let mut timing = timer.start();
    if let Some(stretch) = &mut timing.0 {
        stretch.began -= ago;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// One inner call in eight is metered, and counts for all eight.
    #[test]
    fn inner_call_is_charged_to_the_outermost_one() {
        static METER: CostMeter = CostMeter::new();
        let timer = CostTimer { meter: Some(&METER), is_inner: true, ns: AtomicU64::new(500) };
        drop(timer);
        let usage = METER.take();
        assert_eq!((usage.metered, usage.metered_ns, usage.preparation_ns), (0.0, 0.0, 4_000.0));
    }

    #[test]
    fn call_is_counted_once_when_it_ends() {
        static METER: CostMeter = CostMeter::new();
        let timer = CostTimer { meter: Some(&METER), is_inner: false, ns: AtomicU64::new(0) };
        drop(timer.start());
        drop(timer.start());
        let usage = METER.take();
        assert_eq!((usage.metered, usage.metered_ns), (0.0, 0.0));
        drop(timer);
        assert_eq!(METER.take().metered, 1.0);
    }

    #[test]
    fn counters_are_read_once() {
        static METER: CostMeter = CostMeter::new();
        METER.count_pair(3_900.5);
        METER.count_preparation(70_000.0);
        METER.count_pace(true);
        METER.count_pace(false);
        for usage in [METER.peek(), METER.take()] {
            assert_eq!((usage.pair_ns, usage.preparation_ns), (3_900.0, 70_000.0));
            assert_eq!((usage.paced, usage.paced_by_gpu), (2.0, 1.0));
        }
        let usage = METER.take();
        assert_eq!((usage.pair_ns, usage.preparation_ns, usage.paced), (0.0, 0.0, 0.0));
    }

    #[test]
    fn interrupted_call_counts_up_to_the_bound() {
        static METER: CostMeter = CostMeter::new();
        count_call_of(&METER, Duration::from_nanos(50_000));
        let took = METER.take().metered_ns;
        assert!((50_000.0..=LONGEST_NS as f64).contains(&took), "{took}");
        count_call_of(&METER, Duration::from_secs(1));
        assert_eq!(METER.take().metered_ns, LONGEST_NS as f64);
    }

    #[test]
    fn interrupted_decision_counts_up_to_the_bound() {
        static METER: CostMeter = CostMeter::new();
        let mut stretch = Stretch::new(&METER.0.decision_ns, LONGEST_DECISION_NS, ONE_IN.into());
        stretch.began -= Duration::from_secs(1);
        drop(stretch);
        let usage = METER.take();
        assert_eq!((usage.metered, usage.metered_ns, usage.decision_ns), (0.0, 0.0, 8_000.0));
    }
}
