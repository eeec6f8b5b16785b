use std::time::Duration;

use fastrand::Rng;

use super::*;
use crate::types::record_mode::PhasePlan;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;

/// A launch of a simulated program.
struct Launch {
    enqueued_ns: u64,
    start_ns: u64,
    end_ns: u64,
    is_attributed: bool,
}

/// The way in which a program enqueues kernels of 20 to 100 µs.
#[derive(Clone, Copy, Debug)]
enum Queue {
    /// The program waits for each kernel.
    Shallow,
    /// The program enqueues kernels that run for this time in all, and then waits for them.
    Deep(u64),
}

/// Simulates a program on one stream for `total_ns`. The GPU is busy for about the fraction `busy` of that
/// time. Returns the launches, the exact busy share, and the exact share of attributed time. One launch in
/// three is attributed.
fn program(busy: f64, queue: Queue, total_ns: u64, rng: &mut Rng) -> (Vec<Launch>, f64, f64) {
    let mut launches = Vec::new();
    let (mut host, mut gpu, mut busy_ns, mut attributed_ns) = (0, 0, 0, 0);
    while host < total_ns {
        let batch_ns = match queue {
            Queue::Shallow => 1,
            Queue::Deep(ns) => rng.u64(ns / 2..ns * 3 / 2),
        };
        let began_ns = host;
        let mut work_ns = 0;
        while work_ns < batch_ns {
            host += 4 * US;
            let time_ns = rng.u64(20 * US..100 * US);
            let start_ns = gpu.max(host + 2 * US);
            gpu = start_ns + time_ns;
            work_ns += time_ns;
            let is_attributed = rng.u8(0..3) == 0;
            launches.push(Launch { enqueued_ns: host, start_ns, end_ns: gpu, is_attributed });
            busy_ns += time_ns;
            attributed_ns += if is_attributed { time_ns } else { 0 };
        }
        // Waits for the work, and then does something else until the busy share is as requested.
        host = gpu.max(began_ns + (work_ns as f64 / busy) as u64);
    }
    let share = |ns: u64| ns as f64 / host.max(gpu) as f64;
    (launches, share(busy_ns), share(attributed_ns))
}

/// Estimates the coverage from simulated windows after random pauses, like those of the runtime's
/// thread. A window records the launches that are enqueued in it.
fn estimate(
    launches: &[Launch],
    [length_ns, period_ns, total_ns]: [u64; 3],
    rng: &mut Rng,
) -> report::Coverage {
    let plan = PhasePlan::new(Duration::from_nanos(length_ns), Duration::from_nanos(period_ns));
    let mut pause = |most: f64| plan.unwrap().pause(rng.f64() * most).as_nanos() as u64;
    let mut sums = CoverageSums::default();
    let mut next = pause(0.5);
    while next + length_ns <= total_ns {
        let from = next;
        next += length_ns + pause(1.0);
        let first = launches.partition_point(|launch| launch.enqueued_ns < from);
        let last = launches.partition_point(|launch| launch.enqueued_ns < from + length_ns);
        let record = |launch: &Launch| WindowWork {
            device: 0,
            start_ns: launch.start_ns,
            end_ns: launch.end_ns,
            name: "k",
            site: launch.is_attributed.then_some(1),
        };
        let mut works: Vec<_> = launches[first..last].iter().map(record).collect();
        sums.add(length_ns, true, &mut works);
    }
    sums.report(0, f64::INFINITY).unwrap()
}

/// The true share is within two errors of the estimate in 19 of 20 runs, for each kind of program.
/// Windows are shorter than the deepest queue takes to run. Of 200 runs of one program, 190 are
/// expected to be right; at least 184 must be, to allow for chance.
#[test]
fn true_share_is_within_two_errors_in_19_of_20_runs() {
    const RUNS: u64 = 200;
    let windows = [4 * MS, 100 * MS, 4 * S];
    let (mut all, mut held) = (0, 0);
    for busy in [0.3, 0.7, 0.95] {
        for queue in [Queue::Shallow, Queue::Deep(MS), Queue::Deep(8 * MS)] {
            let mut of_program = [0; 3];
            for seed in 0..RUNS {
                let mut rng = Rng::with_seed(seed);
                let (launches, truth, attributed) = program(busy, queue, windows[2], &mut rng);
                let found = estimate(&launches, windows, &mut rng);
                let holds = |share: f64, error: Option<f64>, truth: f64| {
                    u64::from((share - truth).abs() <= 2.0 * error.unwrap())
                };
                of_program[0] += holds(found.busy, found.busy_error, truth);
                of_program[1] += holds(found.attributed, found.attributed_error, attributed);
                let outside = truth - attributed;
                of_program[2] += holds(found.not_annotated(), found.not_annotated_error, outside);
            }
            println!("{busy} {queue:?}: {of_program:?}");
            assert!(of_program.iter().all(|held| *held >= 184), "{busy} {queue:?}: {of_program:?}");
            all += 3 * RUNS;
            held += of_program.iter().sum::<u64>();
        }
    }
    assert!(20 * held >= 19 * all, "{held} of {all}");
}

/// Half of the run is recorded as a whole, and the GPU idles. A tenth of the other half is, and the GPU is busy.
#[test]
fn drawn_windows_stand_for_what_the_others_leave() {
    let mut sums = CoverageSums::default();
    for window in 0..5 {
        sums.add(100 * MS, false, &mut []);
        let busy = work(0, window * S, window * S + 10 * MS, true);
        sums.add(10 * MS, true, &mut [busy]);
    }
    let found = sums.report(0, 1.0).unwrap();
    assert!((found.busy - 0.5).abs() < 1e-9 && (found.idle - 0.5).abs() < 1e-9, "{found:?}");
    assert_eq!((found.windows, found.total_ns, found.covered_ns), (10, 550e6, 1e9));
}

fn work(device: u32, start_ns: u64, end_ns: u64, is_attributed: bool) -> WindowWork {
    WindowWork { device, start_ns, end_ns, name: "k", site: is_attributed.then_some(1) }
}

#[test]
fn shares_are_of_all_windows() {
    let mut sums = CoverageSums::default();
    sums.add(100, true, &mut [work(0, 1_000, 1_040, true), work(0, 1_030, 1_060, false)]);
    sums.add(300, true, &mut [work(1, 50, 60, false)]);
    let first = sums.report(0, f64::INFINITY).unwrap();
    assert_eq!((first.windows, first.total_ns.round()), (2, 400.0));
    let close = |one: f64, other: f64| (one - other).abs() < 1e-9;
    // Overlapping work counts once, and a window without work counts as idle.
    assert!(close(first.busy, 0.15) && close(first.idle, 0.85) && close(first.attributed, 0.1));
    let outside = first.kernels.iter().find(|kernel| !kernel.annotated).unwrap();
    assert_eq!((&*outside.name, outside.count, outside.total_ns), ("k", 1, 30.0));
    assert!(close(outside.share, 0.5) && close(outside.per_s, 2.5e6));
    assert!(close(sums.report(1, f64::INFINITY).unwrap().busy, 0.025));
    let unused = sums.report(7, f64::INFINITY).unwrap();
    assert_eq!((unused.busy, unused.idle), (0.0, 1.0));
}

/// A kernel on one stream runs from one part of a phase without an end into the next, in which another stream is busy.
#[test]
fn work_of_two_adjacent_windows_counts_once() {
    let busy_s = |is_drawn| {
        let mut sums = CoverageSums::default();
        let mut first = [work(0, 0, 10, false), work(0, 40, 160, true)];
        sums.add(100, is_drawn, &mut first);
        sums.keep_running(first.to_vec(), 100);
        // The first of these began in a pause of the others.
        let mut second = [work(0, 20, 30, true), work(0, 110, 150, true), work(0, 170, 190, false)];
        sums.add(100, is_drawn, &mut second);
        let coverage = sums.report(0, 200e-9).unwrap();
        [coverage.busy, coverage.attributed].map(|share| (200.0 * share).round())
    };
    assert_eq!(busy_s(false), [10.0 + 120.0 + 10.0 + 20.0, 120.0 + 10.0]);
    // Random windows stand for others as well, and are far apart.
    assert_eq!(busy_s(true), [200.0, 170.0]);
}

/// The work outside of functions is the same in each window, whatever functions do.
#[test]
fn error_of_work_outside_is_its_own() {
    let mut sums = CoverageSums::default();
    for window in 1..=5_u64 {
        let attributed = work(0, 0, 10 * window, true);
        sums.add(100, true, &mut [attributed, work(0, 10 * window, 10 * window + 20, false)]);
    }
    let found = sums.report(0, f64::INFINITY).unwrap();
    assert!((found.not_annotated() - 0.2).abs() < 1e-9, "{found:?}");
    assert!(found.busy_error > Some(0.05) && found.not_annotated_error < Some(1e-6), "{found:?}");
}

#[test]
fn few_windows_have_no_error() {
    let mut sums = CoverageSums::default();
    assert_eq!(sums.report(0, f64::INFINITY), None);
    for window in 1..=5_u64 {
        sums.add(100, true, &mut [work(0, 0, 10 * window, true)]);
        let found = sums.report(0, f64::INFINITY).unwrap();
        assert_eq!(found.busy_error.is_some(), window == 5);
        assert_eq!(
            (found.idle_error, found.attributed_error),
            (found.busy_error, found.busy_error)
        );
    }
    // The windows are 10 to 50 % busy: the standard error is 7.07 %, and t with 4 degrees of
    // freedom is 2.776.
    let error = sums.report(0, f64::INFINITY).unwrap().busy_error.unwrap();
    assert!((error - 0.070_710_7 * 1.416_5).abs() < 1e-4, "{error}");
}

#[test]
fn equal_windows_have_no_spread() {
    let mut sums = CoverageSums::default();
    for window in 1..=40 {
        let length_ns = 20 * MS + window * US;
        sums.add(length_ns, true, &mut [work(0, 5, 5 + length_ns / 2, true)]);
    }
    let found = sums.report(0, f64::INFINITY).unwrap();
    assert!((found.busy - 0.5).abs() < 1e-6 && found.busy_error.unwrap() < 1e-6, "{found:?}");
}

/// A deep queue can bring more work into a window than fits into its time.
#[test]
fn share_is_at_most_one() {
    let mut sums = CoverageSums::default();
    sums.add(100, true, &mut [work(0, 0, 250, true)]);
    let found = sums.report(0, f64::INFINITY).unwrap();
    assert_eq!((found.busy, found.idle, found.attributed), (1.0, 0.0, 1.0));
}

/// One in four windows is unknown: the share may be anything from 30 to 55 %.
#[test]
fn error_allows_for_any_work_in_unknown_windows() {
    let mut sums = CoverageSums::default();
    (0..30).for_each(|_| sums.add(20 * MS, true, &mut [work(0, 0, 8 * MS, true)]));
    (0..5).for_each(|_| sums.add_incomplete(20 * MS, true));
    (0..5).for_each(|_| sums.add_missed(20 * MS));
    let found = sums.report(0, f64::INFINITY).unwrap();
    assert_eq!((found.windows, found.incomplete, found.missed), (30, 5, 5));
    let error = found.busy_error.unwrap();
    assert!((2.0 * error - 0.15).abs() < 0.005, "{error}");
    // The part that is not annotated is between 0 and 25 %.
    let error = found.not_annotated_error.unwrap();
    assert!((2.0 * error - 0.25).abs() < 0.01, "{error}");
}

/// Several streams may be busy at once. Half of the work is outside of functions.
#[test]
fn parts_of_a_capped_share_keep_their_proportions() {
    let mut sums = CoverageSums::default();
    for part in [MS, 2 * MS, 3 * MS, 2 * MS, 2 * MS] {
        let half = |from: u64, is_attributed| work(0, from * MS, from * MS + part, is_attributed);
        sums.add(2 * MS, true, &mut [half(0, true), half(10, false)]);
    }
    let found = sums.report(0, f64::INFINITY).unwrap();
    let close = |one: f64, other: f64| (one - other).abs() < 1e-9;
    assert!(close(found.busy, 1.0) && close(found.attributed, 0.5), "{found:?}");
    assert!(close(found.not_annotated(), 0.5), "{found:?}");
    // The share of either half is that of all, and so is its spread.
    let errors = [found.busy_error, found.attributed_error, found.not_annotated_error];
    let [busy, attributed, outside] = errors.map(Option::unwrap);
    assert!(close(attributed, busy / 2.0) && close(outside, attributed), "{found:?}");
}

#[test]
fn incomplete_windows_are_counted_alone() {
    let mut sums = CoverageSums::default();
    sums.add_incomplete(100, true);
    let found = sums.report(0, f64::INFINITY).unwrap();
    assert_eq!((found.windows, found.incomplete), (0, 1));
    assert_eq!((found.busy, found.idle, found.busy_error), (0.0, 0.0, None));
}

#[test]
fn kernels_of_both_kinds_of_windows_are_bounded() {
    let mut sums = CoverageSums::default();
    for (is_drawn, prefix) in [(false, "a"), (true, "b")] {
        let name = |i: u64| -> &'static str { format!("{prefix}{i}").leak() };
        let work =
            |i: u64| WindowWork { name: name(i), ..work(0, 1_000 * i, 1_000 * i + 500, false) };
        sums.add(20 * MS, is_drawn, &mut (0..40).map(work).collect::<Vec<_>>());
    }
    assert_eq!(sums.report(0, 10.0).unwrap().kernels.len(), 16);
}

/// Beside those that were drawn.
#[test]
fn incomplete_requested_window_leaves_the_others_as_they_are() {
    let mut sums = CoverageSums::default();
    for at in 0..100 {
        sums.add(20 * MS, true, &mut [work(0, at * S, at * S + (5 + at % 10) * MS, false)]);
    }
    let [busy, error] = {
        let known = sums.report(0, 100.0).unwrap();
        [known.busy, known.busy_error.unwrap()]
    };
    sums.add_incomplete(500 * MS, false);
    let found = sums.report(0, 100.0).unwrap();
    assert_eq!((found.windows, found.incomplete), (100, 1));
    assert!((found.busy - busy).abs() < 1e-9, "{found:?}");
    assert!((found.busy_error.unwrap() - error).abs() < 0.01 * error, "{found:?}");
}

#[test]
fn only_work_that_may_run_later_is_kept() {
    let mut sums = CoverageSums::default();
    sums.keep_running(vec![work(0, 0, MS, false), work(0, 0, 250 * MS, false)], 200 * MS);
    assert_eq!(sums.last.len(), 1);
}
