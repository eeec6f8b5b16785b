//! Tests of merged recorded calls and their kernels.

use gpu_time_report::{Detail, Terminal};

use super::*;

/// Returns the report of a process with these recorded calls and some calls timed by events.
fn with_opened(pid: u32, times: Option<KernelTimes>) -> Snapshot {
    let series = series("cuda:0", &[4000.0; 9], &[], 0.0);
    let timed = 9 + times.as_ref().map_or(0, |times| times.opened);
    one(pid, value!(Series { timed, kernel_times: times, ..series }))
}

#[test]
fn opened_calls_and_kernels_are_added_up() {
    let work = |count, why| Elsewhere::new("late".to_owned(), count, 100.0 * count as f64, why);
    let mut few = opened(4, &[("a", 2, 4000.0), ("b", 1, 1000.0)]);
    few.elsewhere = vec![work(1, ElsewhereReason::OtherStream)];
    let mut many = opened(12, &[("c", 1, 9000.0), ("a", 2, 6000.0)]);
    (many.streams, many.kernels[0].grid) = (Some(3), [7, 1, 1]);
    many.elsewhere =
        vec![work(2, ElsewhereReason::OtherStream), work(5, ElsewhereReason::AfterStop)];
    let both = merged(&[with_opened(1, Some(few)), with_opened(2, Some(many))]);
    assert_eq!(both.inconsistencies(), [""; 0]);
    let series = only(&both);
    assert_eq!((series.timed, series.measured, series.opened()), (34, 18, 16));
    let times = series.kernel_times.as_ref().unwrap();
    assert_eq!((times.streams, times.zero_times), (Some(3), 2));
    assert_eq!(times.kernels_per_call, Some(3.0));
    let kernels: Vec<_> = times
        .kernels
        .iter()
        .map(|kernel| (kernel.name.as_str(), kernel.count, kernel.per_call, kernel.total_ns))
        .collect();
    assert_eq!(
        kernels,
        [("a", 32, 2.0, 10_000.0), ("c", 12, 21.0 / 34.0, 9_000.0), ("b", 4, 13.0 / 34.0, 1_000.0)],
        "the opened calls represent all of the 13 and 21 that were timed"
    );
    let of_call = [2.0 * 10_000.0 / 32.0, 21.0 / 34.0 * 750.0, 13.0 / 34.0 * 250.0];
    let share = of_call[0] / of_call.iter().sum::<f64>();
    assert!((times.kernels[0].share - share).abs() < 1e-9);
    // Only kernels of one report keep their percentiles.
    let known = times.kernels.iter().map(|kernel| kernel.time_ns.is_some());
    assert_eq!(known.collect::<Vec<_>>(), [false, true, true]);
    assert_eq!((times.busy_ns.as_ref(), series.host_ns.as_ref()), (None, None));
    let elsewhere: Vec<_> =
        times.elsewhere.iter().map(|work| (work.why.name(), work.count, work.total_ns)).collect();
    assert_eq!(elsewhere, [("other-stream", 3, 300.0), ("after-stop", 5, 500.0)]);
    let table = both.to_table(Terminal::default(), Detail::All);
    assert!(table.contains("    16 recorded: 3 kernels, 3 streams\n"), "{table}");
}

/// Each process's kernels per call count for all of its calls, however few of them it opened.
#[test]
fn kernels_per_call_are_weighted_by_all_calls() {
    let of = |pid, opened_calls, unsampled, kernels| {
        let series = series("cuda:0", &[], &[], 0.0);
        let times = Some(opened(opened_calls, &[("a", kernels, 9e3)]));
        let series = value!(Series { timed: opened_calls, kernel_times: times, ..series });
        let mut site = site("f", 1, vec![series]);
        (site.unsampled, site.skipped) = (unsampled, unsampled);
        site.calls += unsampled;
        report(pid, vec![gpu("cuda:0", "H200")], vec![site])
    };
    let all = of(1, 1000, 0, 2);
    let some = of(2, 90, 8910, 12);
    let more = of(3, 10, 9990, 1);
    for both in
        [merged(&[all.clone(), some.clone(), more.clone()]), merged(&[merged(&[all, some]), more])]
    {
        assert_eq!(both.inconsistencies(), [""; 0]);
        let times = only(&both).kernel_times.as_ref().unwrap();
        let expected = (2.0 * 1e3 + 12.0 * 9e3 + 1.0 * 10e3) / 20e3;
        assert!((times.kernels_per_call.unwrap() - expected).abs() < 1e-9, "{times:?}");
        assert!((times.kernels[0].per_call - expected).abs() < 1e-9, "{times:?}");
    }
}

#[test]
fn kernels_with_other_launch_configurations_are_kept_apart() {
    let mut other = opened(4, &[("a", 2, 4000.0)]);
    other.kernels[0].block = [128, 1, 1];
    let both =
        merged(&[with_opened(1, Some(opened(4, &[("a", 1, 9e3)]))), with_opened(2, Some(other))]);
    let kernels = &only(&both).kernel_times.as_ref().unwrap().kernels;
    let blocks: Vec<_> = kernels.iter().map(|kernel| (kernel.block[0], kernel.count)).collect();
    assert_eq!(blocks, [(64, 4), (128, 8)]);
}

#[test]
fn reports_without_opened_calls_change_nothing() {
    let times = opened(4, &[("a", 2, 4000.0)]);
    let [with, without] = [Some(times.clone()), None].map(|times| with_opened(7, times));
    for reports in [[with.clone(), without.clone()], [without, with]] {
        assert_eq!(only(&merged(&reports)).kernel_times.as_ref(), Some(&times));
    }
}

#[test]
fn kernels_beyond_the_limit_become_one() {
    let names: Vec<String> = (0..200).map(|i| format!("kernel_{i}")).collect();
    let of = |from: usize| {
        let kernels: Vec<_> =
            names[from..from + 150].iter().map(|name| (&**name, 1, 10.0 + from as f64)).collect();
        opened(2, &kernels)
    };
    let renamed = |mut times: KernelTimes, by: &str| {
        times.kernels.iter_mut().for_each(|kernel| kernel.name += by);
        times
    };
    let three = merged(&[
        with_opened(1, Some(of(0))),
        with_opened(2, Some(renamed(of(50), "_b"))),
        with_opened(3, Some(renamed(of(30), "_c"))),
    ]);
    let times = only(&three).kernel_times.as_ref().unwrap();
    assert_eq!(times.kernels.len(), 256);
    let other = times.kernels.last().unwrap();
    // There are 450 kernels with 2 launches each.
    assert_eq!(
        (other.name.as_str(), other.count, other.grid),
        ("<other>", 2 * (450 - 255), [0; 3])
    );
    let total: f64 = times.kernels.iter().map(|kernel| kernel.total_ns).sum();
    assert_eq!(total, 150.0 * (10.0 + 60.0 + 40.0));
    let shares: f64 = times.kernels.iter().map(|kernel| kernel.share).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{shares}");
}

/// With the clock `kernels`, the busy times have a histogram.
#[test]
fn busy_times_of_the_clock_kernels_keep_their_percentiles() {
    let of = |pid, ns: &[f64]| {
        let of_events = series("cuda:0", ns, &[], 0.0);
        let count = ns.len() as u64;
        let mut times = opened(count, &[("a", 1, 9e3)]);
        times.busy_ns = of_events.raw_ns;
        let (measured, fed, kernel_times) = (0, 0, Some(times));
        one(pid, value!(Series { clock: Clock::Kernels, measured, fed, kernel_times, ..of_events }))
    };
    let both = merged(&[of(1, &[1000.0; 3]), of(2, &[2000.0, 3000.0])]);
    assert_eq!(both.inconsistencies(), [""; 0]);
    let series = only(&both);
    let busy = series.kernel_times.as_ref().unwrap().busy_ns.unwrap();
    assert_eq!(Some(busy), series.raw_ns);
    assert_eq!((busy.median, busy.max, busy.sum), (1000.0, 3000.0, 8000.0));
    assert_eq!((series.opened(), series.measured, series.upper_bound), (5, 0, false));
}
