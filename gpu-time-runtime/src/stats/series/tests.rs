use crate::base::fixtures::bytes_kept;
use crate::stats::series::*;
use crate::types::sample::{Lost, SampleFlags};
use proptest::prelude::*;

fn sample(raw_ns: f64, fed: bool) -> Sample {
    with(raw_ns, |sample| sample.flags.fed = fed)
}

fn with(raw_ns: f64, mark: impl FnOnce(&mut Sample)) -> Sample {
    let mut sample = Sample::new(raw_ns).unwrap();
    mark(&mut sample);
    sample
}

pub(crate) fn info(bias_ns: Option<f64>) -> SeriesInfo {
    SeriesInfo {
        device: "cuda:0".to_owned(),
        launch: None,
        measure: Measure::Sum,
        cache: CacheState::AsFound,
        clock: Clock::Events,
        graph: false,
        start_ns: 0,
        key: None,
        population: None,
        repeats: false,
        counted: false,
        looks: None,
        bias: bias_ns.map(|ns| Bias { ns, ..Bias::NONE }),
    }
}

fn report(samples: &[Sample], bias_ns: Option<f64>) -> report::Series {
    let (series, tally) = recorded(samples);
    series.times().report(info(bias_ns), &tally)
}

fn recorded(samples: &[Sample]) -> (SeriesData, Tally) {
    let (mut series, mut tally) = (SeriesData::new(), Tally::default());
    samples.iter().for_each(|&sample| record(&mut series, &mut tally, sample));
    (series, tally)
}

/// Records a sample, and counts it like the recording thread does.
pub(crate) fn record(series: &mut SeriesData, tally: &mut Tally, sample: Sample) {
    tally.counts.begin();
    tally.counts.end(Ok(sample));
    series.record(sample);
    tally.sums = series.sums();
    tally.inner = series.inner();
}

/// Returns a fed sample with other brackets inside, each of which adds 100 ns.
fn around(raw_ns: f64, inner: u16) -> Sample {
    with(raw_ns, |sample| {
        (sample.flags.fed, sample.flags.nested) = (true, true);
        *sample = sample.around(Some(inner), Some(100.0 * f64::from(inner)));
    })
}

#[test]
fn what_brackets_inside_add_is_removed_from_each_sample() {
    let samples = [sample(5000.0, true), around(5300.0, 3), around(7000.0, 20)];
    let report = report(&samples, Some(1000.0));
    let net = report.net_ns.unwrap();
    assert_eq!((net.min, net.max, net.sum), (4000.0, 4000.0, 12_000.0));
    assert_eq!((report.bias_ns, report.raw_ns.unwrap().max), (Some(1000.0), 5000.0));
    let inner = report.inner_brackets.unwrap();
    assert_eq!((inner.min, inner.max), (0, 20));
}

#[test]
fn brackets_inside_are_known_if_few_samples_lack_them() {
    let unknown = around(5000.0, 3).around(None, None);
    let mut samples = vec![around(5000.0, 3); 99];
    samples.push(unknown);
    let inner = |samples: &[Sample]| report(samples, None).inner_brackets.map(|inner| inner.max);
    assert_eq!(inner(&samples), Some(3));
    samples.push(unknown);
    assert_eq!(inner(&samples), None);
    // Starved samples are bounds in any case, and those beside them stay exact.
    let starved = with(5000.0, |s| (s.flags.nested, s.inner) = (true, Some(3)));
    assert_eq!([inner(&[starved]), inner(&[starved, sample(5000.0, true)])], [None, Some(0)]);
    assert_eq!(inner(&[sample(5000.0, true)]), None);
    // Nothing is known of what these add, even if some of it is of a queue.
    assert_eq!(inner(&[around(5000.0, 3).around(Some(3), None)]), None);
}

/// Samples before the first one with brackets inside are no part of a later run.
#[test]
fn run_knows_the_brackets_inside_its_own_samples() {
    let (mut series, mut tally) = recorded(&vec![sample(5000.0, true); 1000]);
    let before = tally;
    let mut run = vec![around(5000.0, 3); 5];
    let inner = |tally: &Tally| tally.since(&before).removed_inner().map(PerSample::report);
    run.drain(..).for_each(|sample| record(&mut series, &mut tally, sample));
    assert_eq!(inner(&tally).map(|inner| inner.mean), Some(3.0));
    let unknown = around(5000.0, 3).around(None, None);
    record(&mut series, &mut tally, unknown);
    assert_eq!(inner(&tally), None);
}

/// A sum that is starved as a whole is a bound.
#[test]
fn nothing_is_removed_from_starved_sums() {
    let mut sum = Sample::nothing();
    sum.add(around(5000.0, 3));
    assert_eq!(sum.alone_ns(), 4700.0);
    sum.add(sample(5000.0, false));
    sum.add(around(5000.0, 3));
    assert_eq!(sum.alone_ns(), 15_000.0);
    sum.add(around(5000.0, 3).around(None, None));
    assert_eq!(sum.added_ns, None);
}

#[test]
fn what_a_queue_adds_is_removed_from_queued_samples_only() {
    let queued = with(9000.0, |s| {
        (s.flags.fed, s.flags.queued) = (true, true);
        *s = s.around(Some(0), Some(600.0));
    });
    let report = report(&[queued, sample(8400.0, true)], Some(1000.0));
    let net = report.net_ns.unwrap();
    assert_eq!((report.queued, net.min, net.max), (1, 7400.0, 7400.0));
}

#[test]
fn percentiles_cover_fed_samples_and_sum_covers_all() {
    let report = report(&[sample(5000.0, true), sample(9000.0, false)], Some(1000.0));
    let (raw, net) = (report.raw_ns.unwrap(), report.net_ns.unwrap());
    assert_eq!((raw.median, raw.max, raw.mean, raw.sum), (5000.0, 5000.0, 5000.0, 14_000.0));
    assert_eq!((net.median, net.sum), (4000.0, 12_000.0));
    assert!(report.histogram.iter().eq([(5001.5, 1)]));
    assert_eq!((report.measured, report.fed, report.starved, report.upper_bound), (2, 1, 1, false));
}

#[test]
fn starved_samples_alone_are_upper_bound() {
    let report = report(&[sample(9000.0, false)], None);
    assert!(report.upper_bound);
    assert_eq!(report.raw_ns.unwrap().median, 9000.0);
    assert_eq!(report.net_ns.as_ref(), None);
}

#[test]
fn sample_at_floor_is_only_counted() {
    let floor = with(1280.0, |s| {
        (s.flags.fed, s.flags.at_floor, s.flags.nested, s.flags.tracked) = (true, true, true, true)
    });
    let report = report(&[floor], Some(0.0));
    assert_eq!((report.measured, report.at_floor, report.fed), (1, 1, 0));
    assert_eq!((report.nested, report.tracked), (1, 1));
    assert_eq!(
        (report.raw_ns.as_ref(), report.ci95_ns, report.launches.as_ref()),
        (None, None, None)
    );
    assert_eq!((report.net_ns.as_ref(), report.net_sum_ns), (None, None));
}

#[test]
fn sum_subtracts_bias_per_launch() {
    let sum = |raw_ns, brackets| with(raw_ns, |s| (s.flags.fed, s.brackets) = (true, brackets));
    let same = report(&[sum(9000.0, 3), sum(12_000.0, 3)], Some(1000.0));
    let net = same.net_ns.unwrap();
    assert_eq!((net.min, net.max, net.sum), (6000.0, 9000.0, 15_000.0));

    assert_eq!(same.net_sum_ns, Some(15_000.0));
}

#[test]
fn varying_launch_count_has_net_sum_only() {
    let sum = |raw_ns, brackets| with(raw_ns, |s| (s.flags.fed, s.brackets) = (true, brackets));
    // Subtracting the mean of three biases would make the first sample 0 instead of 1000.
    let samples = [sum(2000.0, 1), sum(12_000.0, 5)];
    let varied = report(&samples, Some(1000.0));
    assert_eq!((varied.net_ns.as_ref(), varied.net_sum_ns), (None, Some(8000.0)));
    let raw = varied.raw_ns.unwrap();
    assert_eq!((raw.min, raw.max, raw.sum), (2000.0, 12_000.0, 14_000.0));
    let launches = varied.launches.unwrap();
    assert_eq!((launches.min, launches.mean, launches.max), (1, 3.0, 5));

    // Launches in starved samples count too.
    let starved = with(9000.0, |s| s.brackets = 2);
    let mixed = report(&[sum(2000.0, 1), starved], Some(1000.0));
    assert_eq!((mixed.net_ns.as_ref(), mixed.net_sum_ns), (None, Some(8000.0)));

    assert_eq!(report(&samples, Some(1e6)).net_sum_ns, Some(0.0));
    assert_eq!(report(&samples, None).net_sum_ns, None);
}

#[test]
fn copy_excludes_later_samples() {
    let (mut series, tally) = recorded(&[sample(5000.0, true)]);
    let times = series.times();
    series.record(sample(9000.0, true));
    let report = times.report(info(None), &tally);
    assert_eq!((report.measured, report.raw_ns.unwrap().sum), (1, 5000.0));
    assert_eq!(report.timeline.as_ref().unwrap().slots.len(), 1);
    assert_eq!(report.timeline.as_ref().unwrap().slots[0].count, 1);
}

#[test]
fn interval_widens_with_each_counted_look() {
    let mut random = fastrand::Rng::with_seed(1);
    let (mut series, mut tally) = recorded(&[]);
    let mut look = |samples| {
        for _ in 0..samples {
            let sample = sample(20_000.0 + 200.0 * random.f64(), true);
            record(&mut series, &mut tally, sample);
        }
        series.look();
        let report = series.times().report(info(None), &tally);
        let [low, high] = report.ci95_ns.unwrap();
        (report.looks, high - low)
    };
    let (first, again) = (look(1_000), look(10));
    assert_eq!((first.0, again.0), (1, 1));
    let second = look(1_000);
    assert_eq!(second.0, 2);
    // With one look, twice as many samples would make the interval narrower by a factor of √2.
    assert!(second.1 > 0.85 * first.1, "{first:?} {second:?}");
}

#[test]
fn run_has_the_dependence_of_its_own_samples() {
    let (mut series, mut tally) = recorded(&[sample(10_000.0, true); 600]);
    let earlier = series.times();
    series.begin_run();
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..600 {
        let sample = sample(20_000.0 + 200.0 * random.f64(), true);
        record(&mut series, &mut tally, sample);
    }
    let independent = |times: SampleTimes| times.report(info(None), &tally).independent().unwrap();
    let (whole, run) = (series.times(), series.times().since(&earlier));
    let (whole, run) = (independent(whole), independent(run));
    assert!(whole < 20.0 && (300.0..=600.0).contains(&run), "{whole} {run}");
}

/// Records three calls in each of these phases, all of which take as long as the phase's number says. A phase stands
/// for ten.
fn in_phases(phases: u64) -> report::Series {
    let (mut series, mut tally) = (SeriesData::new(), Tally::default());
    let mut population = Population::default();
    for number in 1..=phases {
        let draw = OpeningDraw { number, weight: 10.0 };
        for _ in 0..3 {
            let sample = Sample::new(1e3 * (1 + number % 4) as f64).unwrap().weighted(10.0);
            let figures = CallFigures::default();
            series.record_opened(&figures, 10.0, sample, Clock::Kernels, Workload::UNKNOWN, draw);
            tally.counts.begin();
            tally.counts.end_opened(None);
            population.weights += 10.0;
            population.variance += 90.0;
        }
    }
    population.calls = population.weights;
    tally.sums = series.sums();
    let info = SeriesInfo { clock: Clock::Kernels, population: Some(population), ..info(None) };
    series.times().report(info, &tally)
}

/// The calls of a phase were chosen together.
#[test]
fn error_of_recorded_calls_is_that_of_their_phases() {
    let report = in_phases(400);
    assert_eq!(report.estimated_total_ns, Some(400.0 * 30.0 * 2_500.0));
    // The times of a phase vary by 1,118 ns.
    let error_ns = (400.0 * 10.0 * 9.0_f64).sqrt() * 3.0 * 1_118.0;
    let found_ns = report.estimated_total_error_ns.unwrap();
    assert!((found_ns / error_ns - 1.0).abs() < 0.05, "{found_ns}, not {error_ns}");
    assert_eq!(in_phases(4).unknown_error, Some(UnknownError::Few));
}

#[test]
fn counted_and_repeated_calls_have_no_error() {
    let of = |counted, repeats| {
        let (series, tally) = recorded(&[sample(5_000.0, true).weighted(2.0); 6_000]);
        let population =
            Population { calls: 12e3, weights: 12e3, variance: 12e3, is_estimated: false };
        let info = SeriesInfo { counted, repeats, population: Some(population), ..info(None) };
        let report = series.times().report(info, &tally);
        (
            report.estimated_total_error_ns.is_some(),
            report.unknown_error.map(UnknownError::name).map(str::to_owned),
        )
    };
    assert_eq!(of(false, false), (true, None));
    assert_eq!(of(true, false), (false, Some("counted".to_owned())));
    assert_eq!(of(false, true), (false, Some("repeated".to_owned())));
}

#[test]
fn million_samples_fit_in_256_kib() {
    // From a nanosecond to more than an hour, spaced logarithmically.
    let spread = |i: u32| sample(10f64.powf(f64::from(i) / 77_000.0), i.is_multiple_of(2));
    let (series, tally) = recorded(&(0..1_000_000).map(spread).collect::<Vec<_>>());
    let (bytes, _) = bytes_kept(|| series.clone());
    assert!((1..=256 << 10).contains(&bytes), "{bytes}");
    let report = series.times().report(info(None), &tally);
    assert_eq!((report.measured, report.fed, report.starved), (1_000_000, 500_000, 500_000));
}

#[test]
fn memory_grows_with_the_samples() {
    let (empty, mut series) = bytes_kept(SeriesData::new);
    assert_eq!(empty, 0);
    assert!(size_of::<SeriesData>() <= 640, "{}", size_of::<SeriesData>());
    let mut grown = |samples: &[f64]| {
        let record = || samples.iter().for_each(|&ns| series.record(sample(ns, true)));
        bytes_kept(record).0
    };
    // The index of the buckets, one page of buckets, one slot of the course, and the batches.
    let batches = size_of::<report::Batches>() as i64;
    assert_eq!(grown(&[5_000.0]), 2 * 440 + 256 + 32 + batches);
    assert_eq!(grown(&[5_000.0, 5_010.0, 5_020.0]), 0);
    // Three more pages: two are needed now, and doubling the capacity allocates one in advance.
    assert_eq!(grown(&[5_300.0, 5_600.0]), 3 * 256);
    assert_eq!(grown(&[5_900.0]), 0);
    let (copied, _) = bytes_kept(|| series.clone());
    assert_eq!(copied, 2 * 440 + 4 * 256 + 32 + batches);
}

proptest! {
    #[test]
    fn counts_add_up(
        samples in prop::collection::vec((0.0f64..1e9, any::<[bool; 4]>()), 0..200),
        lost in prop::collection::vec(0..Lost::ALL.len(), 0..20),
        in_flight in 0u64..9,
    ) {
        let (mut series, mut counts) = (SeriesData::new(), [BracketCounts::default(); 3]);
        // Three threads, each with its own counts.
        for (at, &(raw_ns, [fed, at_floor, nested, tracked])) in samples.iter().enumerate() {
            let sample = with(raw_ns, |s| {
                s.flags = SampleFlags { fed, queued: false, at_floor, nested, tracked };
            });
            counts[at % 3].begin();
            counts[at % 3].end(Ok(sample));
            series.record(sample);
        }
        for &reason in &lost {
            counts[0].begin();
            counts[0].end(Err(Lost::ALL[reason]));
        }
        (0..in_flight).for_each(|_| counts[1].begin());
        let mut tally = Tally { counts: counts[0], sums: series.sums(), inner: series.inner() };
        counts[1..].iter().for_each(|counts| tally.counts.add(counts));
        let report = series.times().report(info(Some(2000.0)), &tally);

        let timed = (samples.len() + lost.len()) as u64 + in_flight;
        prop_assert_eq!((report.timed, report.in_flight), (timed, in_flight));
        prop_assert_eq!(report.inconsistencies().count(), 0);
        let count = |which: usize| samples.iter().filter(|(_, marks)| marks[which]).count() as u64;
        prop_assert_eq!((report.at_floor, report.nested, report.tracked), (count(1), count(2), count(3)));
        prop_assert_eq!(report.lost.total(), lost.len() as u64);
        prop_assert_eq!(report.raw_ns.is_some(), report.fed + report.starved > 0);
    }
}
