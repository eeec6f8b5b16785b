//! Tests that a merged report equals the report that a single process would have written.

use gpu_time_report::{
    Bytes, Clock, Elsewhere, ElsewhereReason, KernelTimes, Run, Series, Snapshot, Stats, value,
};
use proptest::prelude::*;

use super::Merge;
use crate::fixtures::{gpu, report, series, site};
use crate::opened_calls::opened;

mod devices;
mod opened;

fn merged(reports: &[Snapshot]) -> Snapshot {
    let mut merge = Merge::default();
    // Write and read each report, as merging files does.
    for report in reports {
        let read = Snapshot::from_json(report.to_json().as_bytes()).unwrap();
        assert_eq!(merge.add(&read), Ok(()));
    }
    merge.finish()
}

fn one(pid: u32, series: Series) -> Snapshot {
    report(pid, vec![gpu("cuda:0", "H200")], vec![site("f", 1, vec![series])])
}

fn only(snapshot: &Snapshot) -> &Series {
    &snapshot.sites[0].series[0]
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

/// A report whose samples contain an unknown number of others makes that of both unknown.
#[test]
fn brackets_inside_are_known_if_all_reports_know_them() {
    let of = |pid, nested, inner: Option<f64>| {
        let inner_brackets = inner.map(|mean| value!(Launches { min: 0, mean, max: 4 }));
        let series = series("cuda:0", &[4000.0; 4], &[9000.0; 4], 1000.0);
        one(pid, value!(Series { nested, inner_brackets, ..series }))
    };
    let inner = |others: &[Snapshot]| only(&merged(others)).inner_brackets.map(|inner| inner.mean);
    let [known, more, none, unknown] =
        [of(1, 4, Some(2.0)), of(2, 4, Some(4.0)), of(3, 0, None), of(4, 4, None)];
    assert_eq!(inner(&[known.clone(), more]), Some(3.0));
    assert_eq!(inner(&[none, known.clone()]), Some(2.0));
    assert_eq!(inner(&[known.clone(), unknown.clone()]), None);
    assert_eq!(inner(&[unknown, known]), None);
}

#[test]
fn provenance_is_kept_if_reports_agree() {
    let of = |pid, label: &str, host: &str, uuid: &str| {
        let report = one(pid, series("cuda:0", &[4000.0; 3], &[], 1000.0));
        let mut process = report.process.clone();
        process.program_version = Some("1.4.0".to_owned());
        (process.label, process.host) = (Some(label.to_owned()), Some(host.to_owned()));
        let device = value!(Device { uuid: Some(uuid.to_owned()), ..gpu("cuda:0", "H200") });
        Snapshot::new(process, vec![device], report.sites.to_vec())
    };
    let same = merged(&[of(1, "a", "node", "GPU-1"), of(2, "a", "node", "GPU-1")]);
    let process = &same.process;
    assert_eq!((process.label.as_deref(), process.host.as_deref()), (Some("a"), Some("node")));
    assert_eq!(process.program_version.as_deref(), Some("1.4.0"));
    assert_eq!(same.devices[0].uuid.as_deref(), Some("GPU-1"));
    assert_eq!(process.warnings, [""; 0]);
    let other = merged(&[same, of(3, "b", "other", "GPU-2")]);
    let process = &other.process;
    assert_eq!((process.label.as_deref(), process.host.as_deref()), (None, None));
    assert_eq!(process.program_version.as_deref(), Some("1.4.0"));
    let gpus = other.devices.iter().map(|device| (&*device.id, device.uuid.as_deref()));
    let gpus: Vec<_> = gpus.collect();
    assert_eq!(gpus, [("cuda:0/1", Some("GPU-1")), ("cuda:0/2", Some("GPU-2"))]);
    assert!(matches!(&process.warnings[..], [labels] if labels.ends_with("labels: a, b")));
    let hosts: Vec<_> =
        process.merged.iter().filter_map(|process| process.host.as_deref()).collect();
    assert_eq!(hosts, ["node", "node", "other"]);
}

#[test]
fn counts_and_work_are_summed() {
    let with = |timed: u64, in_flight: u64, bytes: Option<Bytes>| {
        let times = vec![4000.0; (timed - in_flight) as usize];
        value!(Series { timed, in_flight, bytes, ..series("cuda:0", &times, &[], 1000.0) })
    };
    let bytes = |samples: u64, per_call: f64, gb_per_s: f64| {
        value!(Bytes {
            samples,
            per_call: Some(per_call),
            total: per_call * samples as f64,
            gb_per_s: Some(gb_per_s),
            peak_share: None,
        })
    };
    let (few, many) = (bytes(7, 6e3, 2.0), bytes(20, 6e3, 2.0));
    let both = merged(&[one(1, with(9, 2, Some(few))), one(2, with(20, 0, Some(many)))]);
    let series = only(&both);
    assert_eq!((series.timed, series.in_flight, series.measured), (29, 2, 27));
    assert_eq!(both.inconsistencies(), [""; 0]);
    let rate = series.bytes.unwrap();
    assert_eq!((rate.samples, rate.total, rate.per_call), (27, 27.0 * 6e3, Some(6e3)));
    assert_eq!(rate.gb_per_s, Some(2.0));
    let site = &both.sites[0];
    assert_eq!((site.calls, site.warmup, site.timed), (35, 6, 29));
    assert_eq!((site.holds_released, site.holds_expired), (1_000, 4));
    // If the work per call differs, the rate is total work over total time: 42 kB in 21 µs and 60
    // kB in 10 µs.
    let other = bytes(20, 3e3, 6.0);
    let both = merged(&[one(1, with(7, 0, Some(few))), one(2, with(20, 0, Some(other)))]);
    let rate = only(&both).bytes.unwrap();
    assert_eq!((rate.per_call, rate.gb_per_s), (None, Some(102.0 / 31.0)));
}

#[test]
fn merging_a_merged_report_keeps_processes() {
    let report = |pid| one(pid, series("cuda:0", &[5000.0], &[], 0.0));
    let two = merged(&[report(7), report(5)]);
    let three = merged(&[two, report(9)]);
    let process = &three.process;
    let pids: Vec<u32> = process.merged.iter().map(|process| process.pid).collect();
    assert_eq!(pids, [7, 5, 9]);
    assert_eq!((process.wall_ns, process.name.as_str()), (6_000_000_000, "app"));
    assert_eq!(process.started, report(5).process.started);
    assert!(three.to_string().contains(" merged, 6.000 s from "), "{three}");
}

#[test]
fn timing_is_off_only_if_off_in_every_report() {
    let with = |off: Option<&str>| {
        let mut report = report(1, vec![], vec![]);
        report.process.off = off.map(str::to_owned);
        report
    };
    let off = |reports: &[Snapshot]| merged(reports).process.off.clone();
    assert_eq!(off(&[with(Some("no driver")), with(None)]), None);
    assert_eq!(off(&[with(None), with(Some("no driver"))]), None);
    assert_eq!(off(&[with(Some("no driver")), with(Some("`GPU_TIME=off`"))]).unwrap(), "no driver");
}

#[test]
fn estimate_errors_add_in_quadrature() {
    let of = |total: f64, error: f64| {
        let (total, error) = (Some(total), Some(error));
        let series = series("cuda:0", &[4000.0; 3], &[], 1000.0);
        one(
            1,
            value!(Series { estimated_total_ns: total, estimated_total_error_ns: error, ..series }),
        )
    };
    let both = merged(&[of(1e6, 3e4), of(2e6, 4e4)]);
    let estimate = (only(&both).estimated_total_ns, only(&both).estimated_total_error_ns);
    assert_eq!(estimate, (Some(3e6), Some(5e4)));
}

#[test]
fn net_times_use_bias_of_each_launch_count() {
    let of = |ns: f64, min: u32, max: u32| {
        let mean = f64::from(min + max) / 2.0;
        let series = series("cuda:0", &[ns; 10], &[], 500.0 * mean);
        let net_ns = series.net_ns.filter(|_| min == max);
        let launches = Some(value!(Launches { min, mean, max }));
        one(1, value!(Series { bias_ns: Some(500.0), net_ns, launches, ..series }))
    };
    let both = merged(&[of(1500.0, 1, 1), of(2500.0, 3, 3)]);
    let net = only(&both).net_ns.unwrap();
    assert_eq!((net.median, net.max, net.stddev, net.sum), (1000.0, 1000.0, 0.0, 20_000.0));
    assert_eq!((only(&both).bias_ns, only(&both).launches.unwrap().mean), (Some(500.0), 2.0));
    let varied = merged(&[both, of(3000.0, 1, 3)]);
    assert_eq!((only(&varied).net_ns.as_ref(), only(&varied).net_sum_ns), (None, Some(40_000.0)));
}

/// Returns the process ids and the raw medians of the runs of the only series.
fn runs(snapshot: &Snapshot) -> Vec<(u32, f64)> {
    let pid = |place: u32| snapshot.process.merged[place as usize].pid;
    only(snapshot).runs.iter().map(|run| (pid(run.process), run.raw_median_ns)).collect()
}

/// Returns a merged report with other runs.
fn with_runs(report: &Snapshot, change: impl Fn(&mut Vec<Run>)) -> Snapshot {
    let mut sites = report.sites.to_vec();
    change(&mut sites[0].series[0].runs);
    Snapshot::new(report.process.clone(), report.devices.to_vec(), sites)
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
    let run = only(&stepwise).runs[2];
    assert_eq!((run.fed, run.starved, run.raw_mean_ns), (20, 2, 5000.0));
    assert_eq!((run.net_median_ns, run.ci95_ns), (Some(4000.0), Some([5000.0, 5000.0])));
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

#[test]
fn run_of_unlisted_process_is_refused() {
    let of = |pid: u32| one(pid, series("cuda:0", &[3000.0; 9], &[], 0.0));
    let forged = with_runs(&merged(&[of(1), of(2)]), |runs| runs[1].process = 2);
    assert!(Merge::default().add(&forged).unwrap_err().contains(" process "));
}

#[test]
fn counts_saturate() {
    let full = value!(Series { timed: u64::MAX, ..series("cuda:0", &[5.0], &[], 0.0) });
    assert_eq!(only(&merged(&[one(1, full.clone()), one(2, full)])).timed, u64::MAX);
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
