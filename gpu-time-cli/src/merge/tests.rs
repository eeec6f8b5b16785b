//! Tests that a merged report equals the report that a single process would have written.

use gpu_time_report::{
    Bytes, Clock, Coverage, Device, Elsewhere, ElsewhereReason, Kernel, KernelTimes, Launches,
    Node, PerCall, Process, Run, Series, Snapshot, Source, Stats, Unattributed,
};
use proptest::prelude::*;

use super::Merge;
use crate::fixtures::{gpu, report, series, site};
use crate::opened_calls::opened;

fn merged(reports: &[Snapshot]) -> Snapshot {
    let mut merge = Merge::default();
    // Write and read each report, as merging files does.
    for report in reports {
        let read = Snapshot::from_json(report.to_json().as_bytes()).unwrap();
        assert_eq!(merge.add(&read), Ok(()));
    }
    merge.finish().unwrap()
}

fn one(pid: u32, series: Series) -> Snapshot {
    report(pid, vec![gpu("cuda:0", "H200")], vec![site("f", 1, vec![series])])
}

fn only(snapshot: &Snapshot) -> &Series {
    &snapshot.sites()[0].series()[0]
}

/// Returns `true` if two statistics are equal except for rounding.
fn is_near(one: &Stats, other: &Stats) -> bool {
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-6 * (1.0 + a.abs());
    one.min == other.min
        && one.max == other.max
        && near(one.mean, other.mean)
        && near(one.stddev, other.stddev)
        && near(one.sum, other.sum)
}

fn percentiles(stats: &Stats) -> [f64; 4] {
    [stats.p5, stats.median, stats.p95, stats.p99]
}

#[test]
fn provenance_is_kept_if_reports_agree() {
    let of = |pid, label: &str, host: &str, uuid: &str| {
        let report = one(pid, series("cuda:0", &[4000.0; 3], &[], 1000.0));
        let mut process = report.process().clone();
        process.program_version = Some("1.4.0".to_owned());
        (process.label, process.host) = (Some(label.to_owned()), Some(host.to_owned()));
        let device = Device { uuid: Some(uuid.to_owned()), ..gpu("cuda:0", "H200") };
        Snapshot::new(process, vec![device], report.sites().to_vec())
    };
    let same = merged(&[of(1, "a", "node", "GPU-1"), of(2, "a", "node", "GPU-1")]);
    let process = same.process();
    assert_eq!((process.label(), process.host()), (Some("a"), Some("node")));
    assert_eq!(process.program_version(), Some("1.4.0"));
    assert_eq!(same.devices()[0].uuid(), Some("GPU-1"));
    assert_eq!(process.warnings(), [""; 0]);
    let other = merged(&[same, of(3, "b", "other", "GPU-2")]);
    let process = other.process();
    assert_eq!((process.label(), process.host()), (None, None));
    assert_eq!((process.program_version(), other.devices()[0].uuid()), (Some("1.4.0"), None));
    assert_eq!(process.warnings(), ["the merged reports have different labels: a, b"]);
    let hosts: Vec<_> = process.merged().iter().filter_map(|process| process.host()).collect();
    assert_eq!(hosts, ["node", "node", "other"]);
}

#[test]
fn processes_that_shared_a_gpu_are_noticed() {
    // Each runs for two seconds, and the next one starts a second later.
    let of = |pid, uuid: Option<&str>| {
        let device = Device { uuid: uuid.map(str::to_owned), ..gpu("cuda:0", "H200") };
        report(pid, vec![device], vec![])
    };
    let warnings = |reports: &[Snapshot]| {
        let device = merged(reports).devices()[0].clone();
        assert_eq!(device.shared, !device.warnings().is_empty());
        device.warnings
    };
    let [first, second, third] = [1, 2, 3].map(|pid| of(pid, Some("GPU-1")));
    assert_eq!(warnings(&[first.clone(), second.clone()]), [super::sharing::WARNING]);
    assert!(warnings(&[first.clone(), third.clone()]).is_empty());
    assert!(warnings(&[first.clone(), of(2, Some("GPU-2"))]).is_empty());
    assert!(warnings(&[of(1, None), of(2, None)]).is_empty());
    let apart = merged(&[first, third]);
    assert_eq!(warnings(&[apart, second]), [super::sharing::WARNING]);
}

#[test]
fn counts_and_work_are_summed() {
    let with = |timed: u64, in_flight: u64, bytes: Option<Bytes>| {
        let times = vec![4000.0; (timed - in_flight) as usize];
        Series { timed, in_flight, bytes, ..series("cuda:0", &times, &[], 1000.0) }
    };
    let bytes = |samples: u64, per_call: f64, gb_per_s: f64| Bytes {
        samples,
        per_call: Some(per_call),
        total: per_call * samples as f64,
        gb_per_s: Some(gb_per_s),
        peak_share: None,
    };
    let (few, many) = (bytes(7, 6e3, 2.0), bytes(20, 6e3, 2.0));
    let both = merged(&[one(1, with(9, 2, Some(few))), one(2, with(20, 0, Some(many)))]);
    let series = only(&both);
    assert_eq!((series.timed(), series.in_flight(), series.measured()), (29, 2, 27));
    assert_eq!(both.inconsistencies(), [""; 0]);
    let rate = series.bytes().unwrap();
    assert_eq!((rate.samples(), rate.total(), rate.per_call()), (27, 27.0 * 6e3, Some(6e3)));
    assert_eq!(rate.gb_per_s(), Some(2.0));
    let site = &both.sites()[0];
    assert_eq!((site.calls(), site.warmup(), site.timed()), (35, 6, 29));
    assert_eq!((site.holds_released(), site.holds_expired()), (1_000, 4));
    // If the work per call differs, the rate is total work over total time: 42 kB in 21 µs and 60
    // kB in 10 µs.
    let other = bytes(20, 3e3, 6.0);
    let both = merged(&[one(1, with(7, 0, Some(few))), one(2, with(20, 0, Some(other)))]);
    let rate = only(&both).bytes().unwrap();
    assert_eq!((rate.per_call(), rate.gb_per_s()), (None, Some(102.0 / 31.0)));
}

#[test]
fn merging_a_merged_report_keeps_processes() {
    let report = |pid| one(pid, series("cuda:0", &[5000.0], &[], 0.0));
    let two = merged(&[report(7), report(5)]);
    let three = merged(&[two, report(9)]);
    let process = three.process();
    let pids: Vec<u32> = process.merged().iter().map(|process| process.pid()).collect();
    assert_eq!(pids, [7, 5, 9]);
    assert_eq!((process.wall_ns(), process.name()), (6_000_000_000, "app"));
    assert_eq!(process.started(), report(5).process().started());
    assert!(three.to_string().contains(": 3 reports of app merged, 6.000 s from "), "{three}");
}

#[test]
fn timing_is_off_only_if_off_in_every_report() {
    let with = |off: Option<&str>| {
        let mut report = report(1, vec![], vec![]);
        let json = report.to_json();
        if let Some(why) = off {
            let json = json.replace("\"on\"", &format!("\"off: {why}\""));
            report = Snapshot::from_json(json.as_bytes()).unwrap();
        }
        report
    };
    let off = |reports: &[Snapshot]| merged(reports).process().off().map(str::to_owned);
    assert_eq!(off(&[with(Some("no driver")), with(None)]), None);
    assert_eq!(off(&[with(None), with(Some("no driver"))]), None);
    assert_eq!(off(&[with(Some("no driver")), with(Some("`GPU_TIME=off`"))]).unwrap(), "no driver");
}

#[test]
fn estimate_errors_add_in_quadrature() {
    let of = |total: f64, error: f64| {
        let (total, error) = (Some(total), Some(error));
        let series = series("cuda:0", &[4000.0; 3], &[], 1000.0);
        one(1, Series { estimated_total_ns: total, estimated_total_error_ns: error, ..series })
    };
    let both = merged(&[of(1e6, 3e4), of(2e6, 4e4)]);
    let estimate = (only(&both).estimated_total_ns(), only(&both).estimated_total_error_ns());
    assert_eq!(estimate, (Some(3e6), Some(5e4)));
}

#[test]
fn net_times_use_bias_of_each_launch_count() {
    let of = |ns: f64, min: u32, max: u32| {
        let mean = f64::from(min + max) / 2.0;
        let series = series("cuda:0", &[ns; 10], &[], 500.0 * mean);
        let net_ns = series.net_ns.filter(|_| min == max);
        let launches = Some(Launches { min, mean, max });
        one(1, Series { bias_ns: Some(500.0), net_ns, launches, ..series })
    };
    let both = merged(&[of(1500.0, 1, 1), of(2500.0, 3, 3)]);
    let net = only(&both).net_ns().unwrap();
    assert_eq!((net.median(), net.max(), net.stddev(), net.sum()), (1000.0, 1000.0, 0.0, 20_000.0));
    assert_eq!((only(&both).bias_ns(), only(&both).launches().unwrap().mean()), (Some(500.0), 2.0));
    let varied = merged(&[both, of(3000.0, 1, 3)]);
    assert_eq!((only(&varied).net_ns(), only(&varied).net_sum_ns), (None, Some(40_000.0)));
}

/// Returns a report with this many windows of 20 ms, in which the device was busy for this share of
/// the time.
fn with_windows(pid: u32, windows: u64, busy: f64, busy_error: Option<f64>) -> Snapshot {
    let total_ns = windows as f64 * 20e6;
    let outside = Unattributed {
        name: "outside".to_owned(),
        count: windows,
        total_ns: 1e6 * windows as f64,
        share: 0.05 / busy,
        per_s: 50.0,
    };
    let coverage = Coverage {
        windows,
        incomplete: 1,
        total_ns,
        busy,
        busy_error,
        idle: 1.0 - busy,
        idle_error: busy_error,
        attributed: busy / 2.0,
        attributed_error: busy_error,
        unattributed: vec![outside],
    };
    let gpu = Device { coverage: Some(coverage), ..gpu("cuda:0", "H200") };
    report(pid, vec![gpu], vec![])
}

/// Returns a report with the same figures of a process that ran for another time.
fn with_wall(report: &Snapshot, wall_ns: u64) -> Snapshot {
    let process = Process { wall_ns, ..report.process().clone() };
    Snapshot::new(process, report.devices().to_vec(), report.sites().to_vec())
}

/// The shares are of wall time, so how many windows each process opened does not matter.
#[test]
fn windows_are_weighted_by_wall_time() {
    let (long, short) = (with_windows(1, 10, 0.4, None), with_windows(2, 30, 0.8, None));
    let [long, short] = [with_wall(&long, 9_000_000_000), with_wall(&short, 1_000_000_000)];
    let last = with_wall(&with_windows(3, 500, 0.7, None), 10_000_000_000);
    let without = one(4, series("cuda:0", &[1_000.0], &[], 0.0));
    let busy = |all: &Snapshot| all.devices()[0].coverage().unwrap().busy;
    let first = merged(&[long.clone(), short.clone()]);
    assert!((busy(&first) - 0.44).abs() < 1e-9, "{}", busy(&first));
    for all in [merged(&[first, last.clone()]), merged(&[long, without, short, last])] {
        assert!((busy(&all) - 0.57).abs() < 1e-9, "{}", busy(&all));
    }
}

#[test]
fn windows_are_pooled() {
    let all = merged(&[with_windows(1, 10, 0.4, Some(0.03)), with_windows(2, 30, 0.8, Some(0.02))]);
    let pooled = all.devices()[0].coverage().unwrap();
    assert_eq!((pooled.windows, pooled.incomplete), (40, 2));
    assert!((pooled.busy - 0.6).abs() < 1e-9 && pooled.busy_error.unwrap() < 0.02, "{pooled:?}");
    let [outside] = &pooled.unattributed[..] else { panic!("{pooled:?}") };
    assert_eq!((outside.count, outside.per_s), (40, 50.0));
    assert!((outside.share - 0.05 / 0.6).abs() < 1e-9, "{outside:?}");
    // One report has too few windows for an error.
    let all = merged(&[with_windows(1, 10, 0.4, Some(0.03)), with_windows(2, 2, 0.8, None)]);
    assert_eq!(all.devices()[0].coverage().unwrap().busy_error, None);
}

#[test]
fn windows_of_one_report_are_kept() {
    let report = with_windows(1, 10, 0.4, Some(0.03));
    let without = one(2, series("cuda:0", &[1_000.0], &[], 0.0));
    let all = merged(&[without, report.clone()]);
    assert_eq!(all.devices()[0].coverage(), report.devices()[0].coverage());
}

#[test]
fn windows_of_some_reports_say_so() {
    let without = |pid| one(pid, series("cuda:0", &[1_000.0], &[], 0.0));
    let with = |pid| with_windows(pid, 10, 0.4, Some(0.03));
    let said = |all: &Snapshot| {
        let table = all.to_string();
        let line = table.lines().find(|line| line.contains(" windows of ")).unwrap();
        line.split_once(" in total").unwrap().1.to_owned()
    };
    let two = merged(&[without(1), with(2)]);
    assert_eq!(said(&two), ", 1 more incomplete), in 1 of 2 reports");
    let all =
        merged(&[two, without(3), merged(&[with(4), with(5)]), merged(&[without(6), without(7)])]);
    assert_eq!(said(&all), ", 3 more incomplete), in 3 of 7 reports");
    assert_eq!(said(&merged(&[with(1), with(2)])), ", 2 more incomplete)");
}

#[test]
fn different_devices_with_same_id_are_kept_apart() {
    let on = |name: &str, ns: f64| {
        let site = site("f", 1, vec![series("cuda:0", &[ns; 9], &[], 0.0)]);
        report(1, vec![gpu("cuda:0", name)], vec![site])
    };
    let both = merged(&[on("H200", 1000.0), on("A100", 2000.0), on("H200", 1000.0)]);
    let devices: Vec<_> = both.devices().iter().map(|d| (d.id(), d.name())).collect();
    assert_eq!(devices, [("cuda:0/1", "A100"), ("cuda:0/2", "H200")]);
    let more = merged(&[both, on("H200", 1000.0)]);
    let series: Vec<_> =
        more.sites()[0].series().iter().map(|s| (s.device(), s.measured())).collect();
    assert_eq!(series, [("cuda:0/1", 9), ("cuda:0/2", 27)]);
}

#[test]
fn merge_rejects_report_without_histogram() {
    let first = include_bytes!("../../tests/reports/first.json");
    let read = Snapshot::from_json(first).unwrap();
    assert!(Merge::default().add(&read).unwrap_err().contains("no histograms"));
}

/// Returns the process ids and the raw medians of the runs of the only series.
fn runs(snapshot: &Snapshot) -> Vec<(u32, f64)> {
    let pid = |place: u32| snapshot.process().merged()[place as usize].pid();
    only(snapshot).runs().iter().map(|run| (pid(run.process()), run.raw_median_ns())).collect()
}

/// Returns a merged report with other runs.
fn with_runs(report: &Snapshot, change: impl Fn(&mut Vec<Run>)) -> Snapshot {
    let mut sites = report.sites().to_vec();
    change(&mut sites[0].series[0].runs);
    Snapshot::new(report.process().clone(), report.devices().to_vec(), sites)
}

#[test]
fn merged_report_keeps_figures_of_each_run() {
    let of = |pid: u32, ns: f64| one(pid, series("cuda:0", &[ns; 20], &[9e4; 2], 1000.0));
    let [a, b, c] = [of(5, 3000.0), of(2, 4000.0), of(9, 5000.0)];
    let none = one(4, series("cuda:0", &[], &[], 1000.0));
    let all = merged(&[a.clone(), none.clone(), b.clone(), c.clone()]);
    assert_eq!(runs(&all), [(5, 3000.0), (2, 4000.0), (9, 5000.0)]);
    let stepwise = merged(&[merged(&[a, none]), merged(&[b, c])]);
    assert_eq!(runs(&stepwise), runs(&all));
    let run = only(&stepwise).runs()[2];
    assert_eq!((run.fed(), run.starved(), run.raw_mean_ns()), (20, 2, 5000.0));
    assert_eq!((run.net_median_ns(), run.ci95_ns()), (Some(4000.0), Some([5000.0, 5000.0])));
}

#[test]
fn many_runs_are_kept_at_random_whatever_the_order() {
    let of = |pid: u32| one(pid, series("cuda:0", &[f64::from(pid); 9], &[], 0.0));
    let reports: Vec<_> = (100..300).map(of).collect();
    let kept = runs(&merged(&reports));
    assert_eq!(kept.len(), 64);
    let late = kept.iter().filter(|(pid, _)| *pid >= 200).count();
    assert!((20..44).contains(&late), "{late}");
    let (first, rest) = reports.split_at(90);
    assert_eq!(runs(&merged(&[merged(first), merged(rest)])), kept);
    let mut backwards = runs(&merged(&reports.into_iter().rev().collect::<Vec<_>>()));
    backwards.reverse();
    assert_eq!(backwards, kept);
}

/// Earlier versions merged without keeping single runs.
#[test]
fn merged_report_without_runs_is_merged() {
    let of = |pid: u32| one(pid, series("cuda:0", &[3000.0; 9], &[], 0.0));
    let early = with_runs(&merged(&[of(1), of(2)]), |runs| runs.clear());
    assert_eq!(runs(&merged(&[early, of(3)])), [(3, 3000.0)]);
}

#[test]
fn run_of_unlisted_process_is_refused() {
    let of = |pid: u32| one(pid, series("cuda:0", &[3000.0; 9], &[], 0.0));
    let forged = with_runs(&merged(&[of(1), of(2)]), |runs| runs[1].process = 2);
    assert!(Merge::default().add(&forged).unwrap_err().contains("a process that the report does"));
}

#[test]
fn counts_saturate() {
    let full = Series { timed: u64::MAX, ..series("cuda:0", &[5.0], &[], 0.0) };
    assert_eq!(only(&merged(&[one(1, full.clone()), one(2, full)])).timed(), u64::MAX);
}

#[test]
fn means_that_overflow_are_refused() {
    let mut merge = Merge::default();
    for (pid, busy_ns) in [(1, 1e308), (2, -1e308)] {
        let per_call = Some(PerCall { busy_ns, ..PerCall::default() });
        let path = Node { recorded: 1, calls: 1.0, per_call, ..Node::of(Source::Opened) };
        let report = one(pid, series("cuda:0", &[5.0], &[], 0.0)).with_tree(vec![path]);
        assert_eq!(merge.add(&report), Ok(()));
    }
    let why = merge.finish().unwrap_err();
    assert_eq!(why, "cannot merge the reports: the call tree overflows");
}

/// Returns the report of a process with these opened calls and some calls timed by events.
fn with_opened(pid: u32, times: Option<KernelTimes>) -> Snapshot {
    let series = series("cuda:0", &[4000.0; 9], &[], 0.0);
    let timed = 9 + times.as_ref().map_or(0, |times| times.opened);
    one(pid, Series { timed, kernel_times: times, ..series })
}

#[test]
fn opened_calls_and_kernels_are_added_up() {
    let work = |count, why| Elsewhere {
        name: "late".to_owned(),
        count,
        total_ns: 100.0 * count as f64,
        why,
    };
    let mut few = opened(4, &[("a", 2, 4000.0), ("b", 1, 1000.0)]);
    few.elsewhere = vec![work(1, ElsewhereReason::OtherStream)];
    let mut many = opened(12, &[("c", 1, 9000.0), ("a", 2, 6000.0)]);
    (many.streams, many.kernels[0].grid) = (Some(3), [7, 1, 1]);
    many.elsewhere =
        vec![work(2, ElsewhereReason::OtherStream), work(5, ElsewhereReason::AfterStop)];
    let both = merged(&[with_opened(1, Some(few)), with_opened(2, Some(many))]);
    assert_eq!(both.inconsistencies(), [""; 0]);
    let series = only(&both);
    assert_eq!((series.timed(), series.measured(), series.opened()), (34, 18, 16));
    let times = series.kernel_times().unwrap();
    assert_eq!((times.streams(), times.zero_times()), (Some(3), 2));
    assert_eq!(times.kernels_per_call(), Some(3.0));
    let kernels: Vec<_> = times
        .kernels()
        .iter()
        .map(|kernel| (kernel.name(), kernel.count(), kernel.per_call(), kernel.total_ns()))
        .collect();
    assert_eq!(
        kernels,
        [("a", 32, 2.0, 10_000.0), ("c", 12, 21.0 / 34.0, 9_000.0), ("b", 4, 13.0 / 34.0, 1_000.0)],
        "the opened calls represent all of the 13 and 21 that were timed"
    );
    let of_call = [2.0 * 10_000.0 / 32.0, 21.0 / 34.0 * 750.0, 13.0 / 34.0 * 250.0];
    let share = of_call[0] / of_call.iter().sum::<f64>();
    assert!((times.kernels()[0].share() - share).abs() < 1e-9);
    // Only kernels of one report keep their percentiles.
    let known = times.kernels().iter().map(|kernel| kernel.time_ns().is_some());
    assert_eq!(known.collect::<Vec<_>>(), [false, true, true]);
    assert_eq!((times.busy_ns(), series.host_ns()), (None, None));
    let elsewhere: Vec<_> =
        times.elsewhere().iter().map(|work| (work.why(), work.count(), work.total_ns())).collect();
    assert_eq!(elsewhere, [("other-stream", 3, 300.0), ("after-stop", 5, 500.0)]);
    assert!(both.to_string().contains("    16 opened: 3 kernels, 3 streams\n"), "{both}");
}

/// Each process's kernels per call count for all of its calls, however few of them it opened.
#[test]
fn kernels_per_call_are_weighted_by_all_calls() {
    let of = |pid, opened_calls, unsampled, kernels| {
        let series = series("cuda:0", &[], &[], 0.0);
        let times = Some(opened(opened_calls, &[("a", kernels, 9e3)]));
        let series = Series { timed: opened_calls, kernel_times: times, ..series };
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
        let times = only(&both).kernel_times().unwrap();
        let expected = (2.0 * 1e3 + 12.0 * 9e3 + 1.0 * 10e3) / 20e3;
        assert!((times.kernels_per_call().unwrap() - expected).abs() < 1e-9, "{times:?}");
        assert!((times.kernels()[0].per_call() - expected).abs() < 1e-9, "{times:?}");
    }
}

#[test]
fn kernels_with_other_launch_configurations_are_kept_apart() {
    let mut other = opened(4, &[("a", 2, 4000.0)]);
    other.kernels[0].block = [128, 1, 1];
    let both =
        merged(&[with_opened(1, Some(opened(4, &[("a", 1, 9e3)]))), with_opened(2, Some(other))]);
    let kernels = only(&both).kernel_times().unwrap().kernels();
    let blocks: Vec<_> = kernels.iter().map(|kernel| (kernel.block()[0], kernel.count())).collect();
    assert_eq!(blocks, [(64, 4), (128, 8)]);
}

#[test]
fn reports_without_opened_calls_change_nothing() {
    let times = opened(4, &[("a", 2, 4000.0)]);
    let [with, without] = [Some(times.clone()), None].map(|times| with_opened(7, times));
    for reports in [[with.clone(), without.clone()], [without, with]] {
        assert_eq!(only(&merged(&reports)).kernel_times(), Some(&times));
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
    let times = only(&three).kernel_times().unwrap();
    assert_eq!(times.kernels().len(), 256);
    let other = times.kernels().last().unwrap();
    // There are 450 kernels with 2 launches each.
    assert_eq!((other.name(), other.count(), other.grid()), ("<other>", 2 * (450 - 255), [0; 3]));
    let total: f64 = times.kernels().iter().map(Kernel::total_ns).sum();
    assert_eq!(total, 150.0 * (10.0 + 60.0 + 40.0));
    let shares: f64 = times.kernels().iter().map(Kernel::share).sum();
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
        one(pid, Series { clock: Clock::Kernels, measured, fed, kernel_times, ..of_events })
    };
    let both = merged(&[of(1, &[1000.0; 3]), of(2, &[2000.0, 3000.0])]);
    assert_eq!(both.inconsistencies(), [""; 0]);
    let series = only(&both);
    let busy = *series.kernel_times().unwrap().busy_ns().unwrap();
    assert_eq!(Some(&busy), series.raw_ns());
    assert_eq!((busy.median(), busy.max(), busy.sum()), (1000.0, 3000.0, 8000.0));
    assert_eq!((series.opened(), series.measured(), series.upper_bound()), (5, 0, false));
}

/// The fed and the starved times of one process. Either may be empty.
type Times = (Vec<f64>, Vec<f64>);

fn times() -> impl Strategy<Value = Times> {
    let time = || prop_oneof![1500.0f64..9000.0, 1e4f64..2e6];
    (prop::collection::vec(time(), 0..60), prop::collection::vec(time(), 0..9))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn equal_biases_merge_like_a_single_process(
        parts in prop::collection::vec(times(), 1..6),
    ) {
        let report = |(pid, (fed, starved)): (usize, &Times)| {
            one(pid as u32, series("cuda:0", fed, starved, 1200.0))
        };
        let reports: Vec<Snapshot> = parts.iter().enumerate().map(report).collect();
        let all = |which: fn(&Times) -> &Vec<f64>| {
            parts.iter().flat_map(which).copied().collect::<Vec<f64>>()
        };
        let whole = series("cuda:0", &all(|p| &p.0), &all(|p| &p.1), 1200.0);
        let merge = merged(&reports);
        let merged = only(&merge);
        prop_assert_eq!(merge.inconsistencies(), vec![""; 0]);
        prop_assert_eq!((merged.fed, merged.starved), (whole.fed, whole.starved));
        prop_assert_eq!(&merged.histogram, &whole.histogram);
        prop_assert_eq!(merged.ci95_ns, whole.ci95_ns);
        prop_assert_eq!(merged.upper_bound, whole.upper_bound);
        for (ours, theirs) in [(merged.raw_ns, whole.raw_ns), (merged.net_ns, whole.net_ns)] {
            prop_assert_eq!(ours.is_some(), theirs.is_some());
            if let (Some(ours), Some(theirs)) = (ours, theirs) {
                prop_assert!(is_near(&ours, &theirs), "{:?} {:?}", ours, theirs);
                prop_assert_eq!(percentiles(&ours), percentiles(&theirs));
            }
        }
    }

    #[test]
    fn different_biases_are_subtracted_per_report(
        parts in prop::collection::vec((times(), 0..5u32), 2..5),
    ) {
        let bias = |step: u32| 1000.0 + 32.0 * f64::from(step);
        let report = |(pid, ((fed, _), step)): (usize, &(Times, u32))| {
            one(pid as u32, series("cuda:0", fed, &[], bias(*step)))
        };
        let reports: Vec<Snapshot> = parts.iter().enumerate().map(report).collect();
        let mut net: Vec<f64> = parts
            .iter()
            .flat_map(|((fed, _), step)| fed.iter().map(|ns| ns - bias(*step)))
            .collect();
        net.sort_by(f64::total_cmp);
        let truth = series("cuda:0", &net, &[], 0.0);
        let (first, rest) = reports.split_at(1);
        let stepwise = merged(&[merged(first), merged(rest)]);
        for merge in [merged(&reports), stepwise] {
            let (Some(ours), Some(theirs)) = (only(&merge).net_ns, truth.raw_ns) else {
                prop_assert_eq!(only(&merge).raw_ns.is_some(), truth.raw_ns.is_some());
                continue;
            };
            prop_assert!(is_near(&ours, &theirs), "{:?} {:?}", ours, theirs);
            for (ours, percent) in percentiles(&ours).into_iter().zip([5, 50, 95, 99]) {
                let exact = net[(net.len() * percent).div_ceil(100) - 1];
                let error = 1.0 + 2.0 * (32.5 + 0.002 * (exact + 1200.0));
                prop_assert!((ours - exact).abs() <= error, "p{}: {} {}", percent, ours, exact);
            }
        }
    }
}
