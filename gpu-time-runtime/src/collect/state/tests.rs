use super::*;
use crate::gpu::fake;
use crate::record::series_counters::SeriesOutcome;
use crate::site::series_id::SeriesIdentity;
use crate::types::attribute::{Cold, Hold};
use crate::types::key::SeriesKey;
use crate::types::sample::{CacheState, Sample};
use crate::types::workload::{Amount, Workload};
use gpu_time_report::Series;

const DEVICE: DeviceId = DeviceId::Cuda(0);
const BIAS: Bias = Bias { ns: 200.0, ..Bias::NONE };

#[derive(Clone, Copy)]
enum Kind {
    Starved,
    Fed,
    Queued,
}

fn biases() -> Biases {
    Biases::fixed(DEVICE, BIAS)
}

/// Reads a site with `count` samples of each kind and time. Each sample has 10,000 bytes.
fn state(samples: &[(u64, Kind, f64)]) -> SiteState {
    state_in_run(samples, 0)
}

/// Reads a site like [`state`], with a run that began before the samples at index `run`.
fn state_in_run(samples: &[(u64, Kind, f64)], run: usize) -> SiteState {
    let site = fake::site();
    let identity = SeriesIdentity::function(DEVICE, CacheState::AsFound, SeriesKey::NONE);
    let mut table = SeriesTable::default();
    let id = site.series_id(identity);
    for (index, &(count, kind, raw_ns)) in samples.iter().enumerate() {
        if index == run {
            site.series()[id.index()].series.begin_run();
        }
        for _ in 0..count {
            let mut sample = Sample::new(raw_ns).unwrap();
            sample.flags.fed = !matches!(kind, Kind::Starved);
            sample.flags.queued = matches!(kind, Kind::Queued);
            let series = table.begin(site, identity);
            let workload = Workload { bytes: Amount::of(&10_000.0), ..Workload::UNKNOWN };
            table.record(&[SeriesOutcome { series, outcome: Ok(sample), workload, place: None }]);
        }
    }
    let timed = samples.iter().map(|(count, ..)| count).sum();
    SiteState::of_table(site, Counts { timed, ..Counts::default() }, &table)
}

#[test]
fn new_series_has_population_of_the_run() {
    let of = |calls: f64| Population { calls, weights: calls, ..Population::default() };
    let mut before = state(&[(10, Kind::Fed, 1_200.0)]);
    let mut now = before.clone();
    (before.population, now.population) = (of(10_000.0), of(11_000.0));
    let site = now.site;
    let cold = site.series_id(SeriesIdentity::function(DEVICE, CacheState::Cold, SeriesKey::NONE));
    now.series.push(SeriesState { id: cold, ..now.series[0].clone() });
    let run = now.since(&before);
    let [new] = &run.views(&biases())[..] else { panic!("one series") };
    assert_eq!((new.info.cache, new.info.population), (CacheState::Cold, Some(of(1_000.0))));
}

/// Reports the later samples twice: since a reading that has the earlier samples, and from a site without
/// them.
fn after_and_alone(earlier: &[(u64, Kind, f64)], later: &[(u64, Kind, f64)]) -> [Series; 2] {
    let all = [earlier, later].concat();
    let [site] = &since(&[state(earlier)], &[state_in_run(&all, earlier.len())], &biases(), 1)[..]
    else {
        panic!("one site")
    };
    [site.series[0].clone(), state(later).report(&biases(), None).series[0].clone()]
}

/// Times below 2 µs are recorded with nanosecond resolution, so the figures are equal.
#[test]
fn difference_equals_report_without_earlier_samples() {
    use Kind::{Fed, Queued, Starved};
    let runs: [&[_]; 4] = [
        &[(60, Starved, 900.0)],
        &[(60, Fed, 1_200.0)],
        &[(60, Queued, 1_260.0)],
        &[(6, Starved, 1_800.0), (40, Queued, 1_260.0), (20, Fed, 1_200.0)],
    ];
    for earlier in runs.map(|run| [run, &[(900, run[0].1, 1_500.0)]].concat()) {
        for later in runs {
            let [run, alone] = after_and_alone(&earlier, later);
            let figures = |series: &Series| {
                (
                    [series.fed, series.starved, series.queued, series.measured, series.timed],
                    (series.upper_bound, series.bias_ns, series.ci95_ns),
                    [series.raw_ns, series.net_ns].map(|stats| stats.unwrap().median),
                    [series.raw_ns, series.net_ns].map(|stats| stats.unwrap().sum.round()),
                    series.histogram.clone(),
                    series.bytes.map(|bytes| (bytes.samples, bytes.total, bytes.gb_per_s)),
                )
            };
            assert_eq!(figures(&run), figures(&alone));
        }
    }
}

/// Threads that record into a site wait only while one series is copied.
#[test]
fn times_are_copied_in_turns() {
    const SERIES: u32 = 5;
    let turns = |samples: u32| {
        let (site, mut table) = (fake::site(), SeriesTable::default());
        for launch in 0..SERIES {
            let function = SeriesIdentity::function(DEVICE, CacheState::AsFound, SeriesKey::NONE);
            let identity = SeriesIdentity { launch: Some(launch), ..function };
            for at in 0..samples {
                // Times range from a nanosecond to an hour: many samples fill most buckets.
                let sample = Sample::new(10f64.powf(12.5 * f64::from(at) / f64::from(samples)));
                let outcome = Ok(sample.unwrap());
                let series = table.begin(site, identity);
                table.record(&[SeriesOutcome {
                    series,
                    outcome,
                    workload: Workload::UNKNOWN,
                    place: None,
                }]);
            }
        }
        let mut state = SiteState::new(site);
        table.counters(0, usize::MAX).iter().for_each(|counters| state.add_brackets(counters));
        let (mut next, mut turns) = (0, Vec::new());
        loop {
            let before = next;
            let has_more = state.copy_times(&mut next);
            turns.push(next - before);
            if !has_more {
                break;
            }
        }
        let report = state.report(&biases(), None);
        let samples = |series: &Series| series.histogram.count();
        (turns, report.series.iter().map(samples).sum::<u64>())
    };
    assert_eq!(turns(3_000), (vec![1; 5], 15_000));
}

#[test]
fn keys_that_need_a_gpu_are_named() {
    let names = |spec: Spec| gpu_keys(&spec);
    assert_eq!(names(Spec::named("plain")), [""; 0]);
    assert_eq!(names(Spec { cold: Some(Cold::Dirty), ..Spec::named("cold") }), ["cold"]);
    let all = Spec {
        cold: Some(Cold::Clean),
        sleep: Some(Hold::UntilEnqueued),
        graph: true,
        ..Spec::named("all")
    };
    assert_eq!(names(all), ["cold", "sleep", "graph"]);
}
