//! A path's times as measured by events: the total time of its calls, and the part that is the function's own.

use std::collections::BTreeMap;

use crate::stats::bias::Bias;
use crate::stats::call_tree::place::PathId;
use crate::types::device::DeviceId;
use crate::types::sample::{Lost, Sample};
use gpu_time_report::starved::{self, SampleSum};

/// The maximum number of enclosing paths that a call's time is subtracted from.
const MOST_AROUND: usize = 64;

/// The calls of one path that events timed on one device. All of them were inside brackets of the path
/// `around`, or all were outside any bracket.
#[derive(Clone, Debug, Default)]
pub(super) struct TimedCalls {
    device: DeviceId,
    around: Option<PathId>,
    recorded: u64,
    lost: u64,
    calls: f64,
    /// The sums of the times with their bias.
    sums: TimeSums,
    /// The number of brackets, each counted with the weight of its call.
    brackets: f64,
    /// The number of brackets nested inside the calls' brackets, and that number plus the calls' own brackets.
    /// The brackets of `around` contain all of these.
    inside: u64,
    whole: u64,
    /// The parts of `sums` that are of fed and of starved samples.
    of_fed: SampleSum,
    of_starved: SampleSum,
    /// The number of calls with an unknown number of brackets inside.
    unknown: u64,
}

/// Weighted sums over sampled times.
#[derive(Clone, Copy, Debug, Default)]
struct TimeSums {
    /// The sum of the times, each with its weight.
    ns: f64,
    /// The sum of the squares, each with its weight.
    squares: f64,
    /// The sum of the squares, each with the square of its weight.
    weighted_squares: f64,
}

/// The times of a path, estimated for all of its calls.
#[derive(Clone, Debug, Default)]
pub(super) struct EventTimes {
    pub recorded: u64,
    pub calls: f64,
    /// The net time of the calls, including everything inside their brackets.
    pub net_ns: f64,
    pub net_variance: f64,
    /// The net time minus the time of the calls inside those brackets, by device.
    pub own_by_device: BTreeMap<DeviceId, f64>,
    pub own_variance: f64,
    /// The error of the time of recorded calls that has been taken off the own time. Calls of one phase are alike, so their
    /// errors add up. Infinite if it is unknown.
    pub taken_error_ns: f64,
    /// By so much recorded calls inside, of which this is an estimate, are longer than the brackets around them.
    pub excess_ns: f64,
    /// The net time is only an upper bound, because it includes an unknown amount of other time.
    pub is_bound: bool,
}

impl TimedCalls {
    pub fn new(device: DeviceId, around: Option<PathId>) -> TimedCalls {
        TimedCalls { device, around, ..TimedCalls::default() }
    }

    pub fn is_of(&self, device: DeviceId, around: Option<PathId>) -> bool {
        (self.device, self.around) == (device, around)
    }

    /// Records a call. `is_own` is `false` if the called function has no path of its own. Its call is then part
    /// of a call of this path.
    pub fn record(&mut self, outcome: Result<Sample, Lost>, is_own: bool) {
        let Ok(sample) = outcome else {
            self.lost += u64::from(is_own);
            return;
        };
        let weight = f64::from(sample.weight);
        if is_own {
            self.recorded += 1;
            self.calls += weight;
        }
        let inside = u64::from(sample.inner.unwrap_or(0));
        self.inside += inside;
        self.whole += inside + u64::from(sample.brackets);
        if sample.flags.at_floor {
            return;
        }
        let ns = sample.alone_ns();
        self.sums.add(ns, weight);
        self.brackets += weight * f64::from(sample.brackets);
        let sum = SampleSum { samples: weight, ns: weight * ns };
        if sample.flags.fed { &mut self.of_fed } else { &mut self.of_starved }.add(sum);
        self.unknown += u64::from(sample.added_ns.is_none());
    }

    /// Returns the sums of the net times.
    fn net(&self, bias: Option<Bias>) -> TimeSums {
        let bias_ns = bias.map_or(0.0, |bias| bias.ns);
        self.sums.reduced_to((self.sums.ns - self.brackets * bias_ns).max(0.0))
    }
}

impl TimeSums {
    fn add(&mut self, ns: f64, weight: f64) {
        self.ns += weight * ns;
        self.squares += weight * ns * ns;
        self.weighted_squares += weight * weight * ns * ns;
    }

    fn reduced_to(self, ns: f64) -> TimeSums {
        let scale = if self.ns > 0.0 { (ns / self.ns).powi(2) } else { 0.0 };
        let (squares, weighted_squares) = (scale * self.squares, scale * self.weighted_squares);
        TimeSums { ns, squares, weighted_squares }
    }

    /// Returns the variance of the total if each time counts `factor` times (Horvitz–Thompson
    /// estimator). Assumes independent draws.
    fn variance(self, factor: f64) -> f64 {
        let factor = factor.abs();
        (factor * factor * self.weighted_squares - factor * self.squares).max(0.0)
    }
}

/// Computes the times of every path. `paths` contains the timed calls of each path. `is_counted` returns `true` for a path
/// whose calls were sampled by count, whose errors are unknown.
///
/// A function's own time is the time of its calls minus the time of the calls inside their
/// brackets. If both are sampled, the inner time is multiplied by both weights.
///
/// If a function between two others is sampled, only some of its calls are timed. In the others,
/// the inner call appears directly inside the outer bracket. The inner time is then subtracted from
/// the outer function both directly and as a part of the middle function's estimated time. The
/// expected excess is added back.
pub(super) fn settle(
    paths: &[&[TimedCalls]],
    bias: impl Fn(DeviceId) -> Option<Bias>,
    is_counted: impl Fn(usize) -> bool,
) -> Vec<EventTimes> {
    let mut times: Vec<EventTimes> = paths.iter().map(|timed| EventTimes::of(timed)).collect();
    let mut strangers: Vec<i64> = vec![0; paths.len()];
    for (at, path) in paths.iter().enumerate() {
        for timed in *path {
            let mut net = timed.net(bias(timed.device));
            if is_counted(at) && timed.calls > timed.recorded as f64 {
                // The calls were not chosen at random, so that their times tell nothing of the others'.
                net.weighted_squares = f64::INFINITY;
            }
            times[at].net_ns += net.ns;
            *times[at].own_by_device.entry(timed.device).or_default() += net.ns;
            times[at].net_variance += net.variance(1.0);
            times[at].own_variance += net.variance(1.0);
            strangers[at] += timed.inside as i64;
            if let Some(around) = timed.around {
                strangers[around.index()] -= timed.whole as i64;
                subtract(net, timed.device, around, paths, &mut times);
            }
        }
    }
    for (times, strangers) in times.iter_mut().zip(strangers) {
        // The remaining brackets are those of other threads. It is unknown how much of their time
        // is inside.
        times.is_bound |= strangers.max(0) as u64 > times.recorded / 2;
        times.own_by_device.values_mut().for_each(|ns| *ns = ns.max(0.0));
    }
    times
}

/// Subtracts the time of calls from the functions' own time in the paths around them.
fn subtract(
    net: TimeSums,
    device: DeviceId,
    around: PathId,
    paths: &[&[TimedCalls]],
    times: &mut [EventTimes],
) {
    let (mut at, mut factor) = (around, 1.0_f64);
    for _ in 0..MOST_AROUND {
        let Some((path, of)) = paths.get(at.index()).zip(times.get_mut(at.index())) else { return };
        let counted = counted(path);
        *of.own_by_device.entry(device).or_default() -= factor * counted * net.ns;
        of.own_variance += net.variance(factor * counted);
        factor *= 1.0 - counted;
        // Stops at the first path whose calls are all timed, which is usually the innermost one. A
        // path may be around itself: it also contains the calls of functions without a path of
        // their own.
        match outer(path).filter(|outer| *outer != at && factor.abs() > 1e-9) {
            Some(outer) => at = outer,
            None => return,
        }
    }
}

/// Returns the factor with which to subtract the time of a call inside this path. It is the mean
/// weight of the path's calls, where a lost call has weight 0.
fn counted(path: &[TimedCalls]) -> f64 {
    let all: u64 = path.iter().map(|timed| timed.recorded + timed.lost).sum();
    let calls = path.iter().fold(0.0, |sum, timed| sum + timed.calls);
    if all > 0 { calls / all as f64 } else { 0.0 }
}

/// Returns the path whose brackets enclose most of the calls, if any.
fn outer(path: &[TimedCalls]) -> Option<PathId> {
    let nested = path.iter().filter(|timed| timed.around.is_some());
    nested.max_by_key(|timed| timed.recorded + timed.lost)?.around
}

impl EventTimes {
    /// Returns the figures that do not depend on other paths.
    fn of(path: &[TimedCalls]) -> EventTimes {
        let sum = |of: fn(&TimedCalls) -> u64| path.iter().map(of).sum::<u64>();
        let (mut of_fed, mut of_starved) = (SampleSum::default(), SampleSum::default());
        for timed in path {
            of_fed.add(timed.of_fed);
            of_starved.add(timed.of_starved);
        }
        let is_starved = starved::make_bound(of_fed, of_starved);
        let (recorded, unknown) = (sum(|timed| timed.recorded), sum(|timed| timed.unknown));
        EventTimes {
            recorded,
            calls: path.iter().fold(0.0, |sum, timed| sum + timed.calls),
            is_bound: is_starved || unknown > recorded / 2,
            ..EventTimes::default()
        }
    }

    /// Returns the net time minus the time of the calls inside those brackets.
    pub fn own_ns(&self) -> f64 {
        self.own_by_device.values().fold(0.0, |sum, ns| sum + ns)
    }

    /// Returns `true` if some of the calls also represent untimed ones.
    pub fn is_sampled(&self) -> bool {
        self.calls > self.recorded as f64
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::types::sample::SampleFlags;

    const DEVICE: DeviceId = DeviceId::Cuda(0);
    const FED: SampleFlags =
        SampleFlags { fed: true, queued: false, at_floor: false, nested: false, tracked: false };

    fn sample(ns: f64, inner: u16) -> Sample {
        Sample::new(ns).unwrap().around(Some(inner), Some(0.0)).flagged(FED)
    }

    /// The calls of each path.
    #[derive(Default)]
    struct Bench(Vec<Vec<TimedCalls>>);

    impl Bench {
        fn path(&mut self) -> PathId {
            self.0.push(Vec::new());
            PathId::at(self.0.len() - 1)
        }

        fn record(&mut self, path: PathId, around: Option<PathId>, outcome: Result<Sample, Lost>) {
            let calls = &mut self.0[path.index()];
            let known = calls.iter().position(|timed| timed.is_of(DEVICE, around));
            let at = known.unwrap_or_else(|| {
                calls.push(TimedCalls::new(DEVICE, around));
                calls.len() - 1
            });
            calls[at].record(outcome, true);
        }

        fn settle(&self, bias: Option<Bias>) -> Vec<EventTimes> {
            let paths: Vec<_> = self.0.iter().map(|timed| &timed[..]).collect();
            settle(&paths, |_| bias, |_| false)
        }
    }

    fn own(times: &[EventTimes]) -> Vec<f64> {
        times.iter().map(EventTimes::own_ns).collect()
    }

    #[test]
    fn inner_bracket_is_not_own_time() {
        let mut tree = Bench::default();
        let outer = tree.path();
        let inner = tree.path();
        let elsewhere = tree.path();
        tree.record(inner, Some(outer), Ok(sample(300.0, 0)));
        tree.record(inner, Some(outer), Ok(sample(200.0, 0)));
        tree.record(elsewhere, None, Ok(sample(50.0, 0)));
        tree.record(outer, None, Ok(sample(900.0, 2)));
        let times = tree.settle(None);
        assert_eq!(own(&times), [400.0, 500.0, 50.0]);
        assert!(times.iter().all(|times| !times.is_bound && times.own_variance == 0.0));
        assert_eq!((times[1].recorded, times[1].calls, times[1].net_ns), (2, 2.0, 500.0));
    }

    #[test]
    fn own_time_is_that_of_each_device() {
        let mut tree = Bench::default();
        let (outer, inner) = (tree.path(), tree.path());
        let other = DeviceId::Cuda(1);
        tree.record(inner, Some(outer), Ok(sample(80.0, 0)));
        tree.record(outer, None, Ok(sample(100.0, 1)));
        tree.0[outer.index()].push(TimedCalls::new(other, None));
        tree.0[outer.index()][1].record(Ok(sample(100.0, 0)), true);
        let times = &tree.settle(None)[outer.index()];
        let own: Vec<_> = times.own_by_device.values().copied().collect();
        assert_eq!((times.own_ns(), own), (120.0, vec![20.0, 100.0]));
    }

    #[test]
    fn bias_is_removed_with_what_brackets_inside_add() {
        let bias = Bias { ns: 10.0, ..Bias::NONE };
        let mut tree = Bench::default();
        let path = tree.path();
        for (inner, added_ns) in [(13, 280.0), (0, 0.0)] {
            tree.record(path, None, Ok(sample(1_000.0, 0).around(Some(inner), Some(added_ns))));
        }
        assert_eq!(tree.settle(Some(bias))[0].net_ns, 2_000.0 - 2.0 * 10.0 - 280.0);
        assert_eq!(tree.settle(None)[0].net_ns, 2_000.0 - 280.0);
    }

    #[test]
    fn weights_are_of_both_calls() {
        let mut tree = Bench::default();
        let outer = tree.path();
        let inner = tree.path();
        tree.record(inner, Some(outer), Ok(sample(100.0, 0).weighted(3.0)));
        tree.record(outer, None, Ok(sample(1_000.0, 1).weighted(4.0)));
        let times = tree.settle(None);
        assert_eq!(own(&times), [4.0 * 1_000.0 - 12.0 * 100.0, 300.0]);
        assert_eq!(times[1].own_variance, 3.0 * 2.0 * 100.0 * 100.0);
        let of_outer = 4.0 * 3.0 * 1e6;
        assert_eq!(times[0].own_variance, of_outer + 12.0 * 11.0 * 100.0 * 100.0);
        assert_eq!(times[0].net_variance, of_outer);
    }

    /// Each call is timed at random. The mean over many runs is the true own time.
    #[test]
    fn own_time_is_unbiased_without_some_callers() {
        const RUNS: u32 = 4_000;
        let rates = [0.5, 0.4, 1.0, 0.5];
        let net = [1_000.0, 600.0, 300.0, 100.0];
        let mut random = fastrand::Rng::with_seed(7);
        let mut mean = [0.0; 4];
        let mut known = HashMap::new();
        let mut tree = Bench::default();
        for _ in 0..RUNS {
            let timed: Vec<bool> = rates.iter().map(|rate| random.f64() < *rate).collect();
            // The path of each function, one inside the other.
            let (mut path, mut around) = (None, None);
            for function in (0..4).filter(|at| timed[*at]) {
                path = Some(*known.entry((path, function)).or_insert_with(|| tree.path()));
                let weight = (1.0 / rates[function]) as f32;
                let sample = sample(net[function], 0).weighted(weight);
                tree.record(path.unwrap(), around, Ok(sample));
                around = path;
            }
        }
        let times = tree.settle(None);
        for ((_, function), path) in known {
            mean[function] += times[path.index()].own_ns() / f64::from(RUNS);
        }
        for (mean, own) in mean.into_iter().zip([400.0, 300.0, 200.0, 100.0]) {
            assert!((mean - own).abs() < 25.0, "{mean} for {own}");
        }
    }

    #[test]
    fn time_inside_lost_calls_is_not_subtracted() {
        let mut tree = Bench::default();
        let outer = tree.path();
        let middle = tree.path();
        let inner = tree.path();
        for is_lost in [true, false] {
            tree.record(inner, Some(middle), Ok(sample(100.0, 0)));
            let middle_call = if is_lost { Err(Lost::Failed) } else { Ok(sample(300.0, 1)) };
            tree.record(middle, Some(outer), middle_call);
            tree.record(outer, None, Ok(sample(1_000.0, 2)));
        }
        // The lost call's own time counts as the outer function's.
        assert_eq!(own(&tree.settle(None)), [2_000.0 - 300.0 - 100.0, 200.0, 200.0]);
    }

    /// In a full tree, further functions share the path around them, which is then around itself.
    #[test]
    fn path_inside_of_itself_is_subtracted_once() {
        let mut tree = Bench::default();
        let rest = tree.path();
        for _ in 0..3 {
            tree.record(rest, Some(rest), Ok(sample(100.0, 0)));
            tree.record(rest, None, Ok(sample(1_000.0, 1).weighted(4.0)));
        }
        // Half of the calls have weight 4 and half have weight 1, so an outer call has the mean
        // weight 2.5.
        let own_ns = 3.0 * (4.0 * 1_000.0 + 100.0) - 2.5 * 3.0 * 100.0;
        assert_eq!(own(&tree.settle(None)), [own_ns]);
    }

    #[test]
    fn times_that_may_be_too_long_are_bounds() {
        let starved = SampleFlags { fed: false, ..FED };
        let bound = |samples: &[Sample]| {
            let mut tree = Bench::default();
            let path = tree.path();
            samples.iter().for_each(|sample| tree.record(path, None, Ok(*sample)));
            tree.settle(None)[0].is_bound
        };
        let fed = sample(100.0, 0);
        assert!(!bound(&[fed, fed.flagged(starved)]));
        // The starved sample takes longer than the fed ones.
        assert!(bound(&[fed, fed, fed, sample(300.0, 0).flagged(starved)]));
        assert!(bound(&[fed.flagged(starved); 2]));
        assert!(bound(&[fed, fed.around(None, None), fed.around(None, None)]));
        // Brackets inside that belong to no recorded call.
        assert!(bound(&[sample(100.0, 1); 2]));
        assert!(!bound(&[sample(100.0, 1), fed, fed, fed]));
    }

    #[test]
    fn call_at_the_floor_has_no_time() {
        let mut tree = Bench::default();
        let path = tree.path();
        let at_floor = SampleFlags { at_floor: true, ..FED };
        tree.record(path, None, Ok(sample(100.0, 0).flagged(at_floor)));
        let times = &tree.settle(None)[0];
        assert_eq!((times.recorded, times.net_ns, times.is_bound), (1, 0.0, false));
    }
}
