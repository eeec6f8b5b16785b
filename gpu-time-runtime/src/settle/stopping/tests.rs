use std::time::Duration;

use super::*;
use crate::collect::devices::Biases;
use crate::collect::state::{self, SiteState};
use crate::record::series_counters::{SeriesOutcome, SeriesTable};
use crate::site::{callsite::CallSite, counters::Counts, series_id::SeriesIdentity};
use crate::types::sample::{CacheState, Lost, Sample};
use crate::types::{attribute::Spec, device::DeviceId, key::SeriesKey, workload::Workload};

/// A series, described by its brackets' outcomes.
#[derive(Clone, Default)]
struct TestSeries {
    fed: Vec<f64>,
    starved: Vec<f64>,
    at_floor: u64,
    lost: u64,
    in_flight: u64,
    cache: Option<CacheState>,
}

#[test]
fn progress_is_described() {
    let verdict = Verdict { settled: 2, unmet: Vec::new() };
    let line = verdict.line(120, Duration::from_millis(1_250));
    assert_eq!(line, "2 of 2 settled, 120 calls, 1.2 s");
}

fn fed(times: impl IntoIterator<Item = u32>) -> TestSeries {
    TestSeries { fed: times.into_iter().map(f64::from).collect(), ..TestSeries::default() }
}

fn starved(times: impl IntoIterator<Item = u32>) -> TestSeries {
    TestSeries { starved: fed(times).fed, ..TestSeries::default() }
}

impl TestSeries {
    fn record(&self, table: &mut SeriesTable, site: &'static CallSite) {
        let cache = self.cache.unwrap_or(CacheState::AsFound);
        let identity = SeriesIdentity::function(DeviceId::Cuda(0), cache, SeriesKey::NONE);
        let mut record = |outcome| {
            let series = table.begin(site, identity);
            table.record(&[SeriesOutcome {
                series,
                outcome,
                workload: Workload::UNKNOWN,
                place: None,
            }]);
        };
        let sample = |ns: f64, fed: bool, at_floor: bool| {
            let mut sample = Sample::new(ns).unwrap();
            (sample.flags.fed, sample.flags.at_floor) = (fed, at_floor);
            Ok(sample)
        };
        self.fed.iter().for_each(|&ns| record(sample(ns, true, false)));
        self.starved.iter().for_each(|&ns| record(sample(ns, false, false)));
        (0..self.at_floor).for_each(|_| record(sample(1_280.0, true, true)));
        (0..self.lost).for_each(|_| record(Err(Lost::Failed)));
        (0..self.in_flight).for_each(|_| _ = table.begin(site, identity));
    }
}

fn call_site(name: &'static str) -> &'static CallSite {
    Box::leak(Box::new(CallSite::new(Spec::named(name))))
}

fn site(name: &'static str, warmup: u64, series: &[TestSeries]) -> SiteState {
    let site = call_site(name);
    let mut table = SeriesTable::default();
    series.iter().for_each(|test| test.record(&mut table, site));
    SiteState::of_table(site, Counts { warmup, ..Counts::default() }, &table)
}

fn report(site: SiteState) -> Site {
    site.report(&Biases::new(None), None)
}

/// The resolution of event times on an H200.
fn step_ns(device: &str) -> Option<f64> {
    (device == "cuda:0").then_some(32.0)
}

fn verdict(before: Vec<SiteState>, now: Vec<SiteState>) -> Verdict {
    Verdict::of(&Settle::default(), &state::since(&before, &now, &Biases::new(None), 1), step_ns)
}

/// Evaluates a run that has one series.
fn alone(settle: Settle, series: TestSeries) -> Option<UnmetReason> {
    let verdict = Verdict::of(&settle, &[report(site("f", 0, &[series]))], step_ns);
    assert_eq!(verdict.len(), 1);
    verdict.unmet.first().map(|unmet| unmet.reason.clone())
}

/// Returns `count` times, evenly spaced from `low` to `high`, in random order.
fn spread(count: u32, low: u32, high: u32) -> impl Iterator<Item = u32> {
    let mut times: Vec<u32> = (0..count).map(|i| low + (high - low) * i / (count - 1)).collect();
    fastrand::Rng::with_seed(1).shuffle(&mut times);
    times.into_iter()
}

const DEFAULT: Settle = Settle {
    margin: 0.005,
    min_samples: 50,
    min_time: Duration::ZERO,
    timeout: Duration::ZERO,
    cold: None,
    graph: None,
};

#[test]
fn constant_time_settles_with_enough_samples() {
    assert_eq!(alone(DEFAULT, fed([10_000; 49])), Some(UnmetReason::Few(50)));
    assert_eq!(alone(DEFAULT, fed([10_000; 50])), None);
    // Fewer than 20 samples have no interval, even if none are required.
    let few = DEFAULT.min_samples(0);
    assert_eq!(alone(few, fed([10_000; 19])), Some(UnmetReason::Few(20)));
    assert_eq!(alone(few, fed([10_000; 20])), None);
}

#[test]
fn wide_interval_does_not_settle() {
    // The interpolated ranks 40.6 and 60.4 of 100 are 20 % of the range apart.
    let times = || fed(spread(100, 90_000, 110_000));
    assert_eq!(alone(DEFAULT, times()), Some(UnmetReason::Wide(0.005)));
    assert_eq!(alone(DEFAULT.margin(0.05), times()), None);
    // A hundred times as many samples narrow the interval to a tenth.
    assert_eq!(alone(DEFAULT, fed(spread(10_000, 90_000, 110_000))), None);
    // The margin: 19.8 steps of 202 ns in 100 µs, halved.
    let found = unmet::margin(&report(site("f", 0, &[times()])).series[0]).unwrap();
    assert!((found - 0.0200).abs() < 0.001, "{found}");
}

#[test]
fn interval_of_one_step_settles() {
    let two = |apart: u32| fed((0..100).map(move |i| 2_720 + apart * (i % 2)));
    assert_eq!(alone(DEFAULT, two(32)), None);
    assert_eq!(alone(DEFAULT, two(64)), Some(UnmetReason::Wide(0.005)));
    // Above 1 ms, the histogram is coarser than the clock: 8,192 ns at 2.5 ms.
    let long = |apart: u32| fed((0..100).map(move |i| 2_500_000 + apart * (i % 2)));
    let strict = DEFAULT.margin(1e-4);
    assert_eq!(alone(strict, long(8_192)), None);
    assert_eq!(alone(strict, long(16_384)), Some(UnmetReason::Wide(1e-4)));
}

/// Returns the reason why a run with these times does not settle. `time` returns the time of a
/// call, to which noise of 1 % is added.
fn of_calls(time: impl Fn(u32) -> f64) -> Option<UnmetReason> {
    let mut random = fastrand::Rng::with_seed(1);
    alone(DEFAULT, fed((0..6_000).map(|i| (time(i) * (0.99 + 0.02 * random.f64())) as u32)))
}

#[test]
fn drift_does_not_settle() {
    assert_eq!(of_calls(|_| 20_000.0), None);
    let Some(UnmetReason::Drift(change)) = of_calls(|i| 20_000.0 + f64::from(i) / 30.0) else {
        panic!("it drifts")
    };
    assert!((0.005..0.015).contains(&change), "{change}");
}

#[test]
fn lasting_modes_do_not_settle() {
    let mode = |i| if i / 1_000 % 2 == 0 { 20_000.0 } else { 23_600.0 };
    let Some(UnmetReason::Modes(apart)) = of_calls(mode) else { panic!("there are two modes") };
    assert!((0.15..0.2).contains(&apart), "{apart}");
}

#[test]
fn few_independent_samples_do_not_settle() {
    let mut random = fastrand::Rng::with_seed(2);
    let levels: Vec<f64> = (0..12).map(|_| 20_000.0 + 1_000.0 * random.f64()).collect();
    let Some(UnmetReason::Dependent(independent)) = of_calls(|i| levels[i as usize / 500]) else {
        panic!("500 calls in a row are alike")
    };
    assert!(independent < 25.0, "{independent}");
}

#[test]
fn starved_samples_count_without_fed_ones() {
    assert_eq!(alone(DEFAULT, starved([10_000; 50])), None);
    let mixed = TestSeries { fed: vec![10_000.0; 9], ..starved([10_000; 500]) };
    assert_eq!(alone(DEFAULT, mixed), Some(UnmetReason::Few(50)));
}

#[test]
fn empty_brackets_settle() {
    let idle = |at_floor| TestSeries { at_floor, ..TestSeries::default() };
    assert_eq!(alone(DEFAULT, idle(49)), Some(UnmetReason::Few(50)));
    assert_eq!(alone(DEFAULT, idle(50)), None);
}

#[test]
fn lost_brackets_end_the_run() {
    let lost = |lost, in_flight| TestSeries { lost, in_flight, ..TestSeries::default() };
    assert_eq!(alone(DEFAULT, lost(49, 0)), Some(UnmetReason::Few(50)));
    assert_eq!(alone(DEFAULT, lost(50, 1)), Some(UnmetReason::Few(50)));
    assert_eq!(alone(DEFAULT, lost(50, 0)), Some(UnmetReason::Lost(50)));
    let given_up = verdict(vec![], vec![site("f", 0, &[lost(50, 0)])]);
    assert!(given_up.is_over() && !given_up.is_empty());
    let both = vec![site("f", 0, &[lost(50, 0)]), site("g", 0, &[fed([10_000; 9])])];
    assert!(!verdict(vec![], both).is_over());
}

#[test]
fn series_settle_by_samples_of_the_run() {
    let old = || vec![site("f", 3, &[fed([10_000; 60])]), site("g", 0, &[fed([10_000; 9])])];
    assert!(verdict(old(), old()).is_empty());

    // Samples recorded before the run do not count.
    let mut now = old();
    now[0] = site("f", 3, &[fed([10_000; 109])]);
    let touched = verdict(old(), now.clone());
    assert_eq!((touched.settled, touched.unmet.len()), (0, 1));
    assert_eq!((&*touched.unmet[0].site, touched.unmet[0].samples), ("f", 49));
    assert_eq!(touched.unmet[0].series, "cuda:0");
    now[0] = site("f", 3, &[fed([10_000; 110])]);
    assert_eq!((verdict(old(), now.clone()).settled, verdict(old(), now).len()), (1, 1));
}

#[test]
fn earlier_samples_of_other_kind_do_not_count() {
    let sites = |fed_count, starved_count| {
        let starved = starved(vec![30_000; starved_count]);
        vec![site("f", 0, &[TestSeries { fed: vec![10_000.0; fed_count], ..starved }])]
    };
    for (before, short, enough) in [((60, 0), (60, 49), (60, 50)), ((0, 60), (49, 60), (50, 60))] {
        let run = |(fed, starved)| verdict(sites(before.0, before.1), sites(fed, starved));
        let [unmet] = &run(short).unmet[..] else { panic!("{before:?}") };
        assert_eq!((unmet.samples, unmet.margin), (49, Some(0.0)));
        assert_eq!(run(enough), Verdict { settled: 1, unmet: vec![] });
    }
}

#[test]
fn cache_states_settle_separately() {
    let cold = |count| TestSeries { cache: Some(CacheState::Cold), ..fed(vec![20_000; count]) };
    let before = vec![site("f", 0, &[fed([10_000; 60]), cold(1)])];
    let now = vec![site("f", 0, &[fed([10_000; 60]), cold(41)])];
    let touched = verdict(before, now);
    let [unmet] = &touched.unmet[..] else { panic!("{touched:?}") };
    assert_eq!((&*unmet.series, unmet.samples), ("cuda:0, cold", 40));
    assert_eq!(unmet.margin, Some(0.0));
}

#[test]
fn warmup_and_unsampled_calls_do_not_settle() {
    let before = vec![site("f", 1, &[])];
    let warming = verdict(before.clone(), vec![site("f", 2, &[])]);
    assert!(!warming.is_over());
    assert_eq!(warming.unmet[0].reason, UnmetReason::Warmup);

    let sampled = |unsampled, sample_rate| {
        let before = vec![site("f", 0, &[])];
        let mut now = site("f", 0, &[]);
        now.calls.unsampled = unsampled;
        now.site.set_rate(sample_rate);
        verdict(before, vec![now])
    };
    assert_eq!(sampled(99, 0.01).unmet[0].reason, UnmetReason::Unsampled);
    assert!(sampled(0, 0.01).is_empty() && sampled(99, 0.0).is_empty());
    // Another device's warm-up does not count if there are series.
    let now = vec![site("f", 9, &[fed([10_000; 50])])];
    assert_eq!(verdict(before, now), Verdict { settled: 1, unmet: vec![] });
}

#[test]
fn site_registered_during_run_is_judged() {
    let now = vec![site("f", 0, &[]), site("new", 0, &[fed([10_000; 50])])];
    assert_eq!(verdict(vec![site("f", 0, &[])], now).settled, 1);
}
