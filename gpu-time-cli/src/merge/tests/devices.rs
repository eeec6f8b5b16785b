//! Tests of merged devices: their phases, and the processes that used them.

use super::*;
use crate::merge::device::SHARED;

#[test]
fn processes_that_shared_a_gpu_are_noticed() {
    // Each runs for two seconds, and the next one starts a second later.
    let of = |pid, uuid: Option<&str>| {
        let device = value!(Device { uuid: uuid.map(str::to_owned), ..gpu("cuda:0", "H200") });
        report(pid, vec![device], vec![])
    };
    let warnings = |reports: &[Snapshot]| {
        let device = merged(reports).devices[0].clone();
        assert_eq!(device.shared, !device.warnings.is_empty());
        device.warnings
    };
    let [first, second, third] = [1, 2, 3].map(|pid| of(pid, Some("GPU-1")));
    assert_eq!(warnings(&[first.clone(), second.clone()]), [SHARED]);
    assert!(warnings(&[first.clone(), third.clone()]).is_empty());
    assert!(warnings(&[first.clone(), of(2, Some("GPU-2"))]).is_empty());
    assert!(warnings(&[of(1, None), of(2, None)]).is_empty());
    let apart = merged(&[first, third]);
    assert_eq!(warnings(&[apart, second]), [SHARED]);
}

/// Returns a report with this many windows of 20 ms, in which the device was busy for this share of
/// the time.
fn with_windows(pid: u32, windows: u64, busy: f64, busy_error: Option<f64>) -> Snapshot {
    let total_ns = windows as f64 * 20e6;
    let outside = value!(PhaseKernel {
        name: "outside".to_owned(),
        count: windows,
        total_ns: 1e6 * windows as f64,
        share: 0.05 / busy,
        per_s: 50.0,
    });
    let coverage = value!(Coverage {
        windows,
        incomplete: 1,
        missed: 0,
        total_ns,
        covered_ns: 1e9,
        busy,
        busy_error,
        idle: 1.0 - busy,
        idle_error: busy_error,
        attributed: busy / 2.0,
        attributed_error: busy_error,
        not_annotated_error: busy_error,
        kernels: vec![outside],
    });
    let gpu = value!(Device { coverage: Some(coverage), ..gpu("cuda:0", "H200") });
    report(pid, vec![gpu], vec![])
}

/// Returns a report with the same figures of a process that ran for another time.
fn with_wall(report: &Snapshot, wall_ns: u64) -> Snapshot {
    let mut report = report.clone();
    report.process.wall_ns = wall_ns;
    for coverage in report.devices.iter_mut().filter_map(|device| device.coverage.as_mut()) {
        coverage.covered_ns = wall_ns as f64;
    }
    report
}

/// The shares are of wall time, so how many windows each process opened does not matter.
#[test]
fn windows_are_weighted_by_wall_time() {
    let (long, short) = (with_windows(1, 10, 0.4, None), with_windows(2, 30, 0.8, None));
    let [long, short] = [with_wall(&long, 9_000_000_000), with_wall(&short, 1_000_000_000)];
    let last = with_wall(&with_windows(3, 500, 0.7, None), 10_000_000_000);
    let without = one(4, series("cuda:0", &[1_000.0], &[], 0.0));
    let busy = |all: &Snapshot| all.devices[0].coverage.as_ref().unwrap().busy;
    let first = merged(&[long.clone(), short.clone()]);
    assert!((busy(&first) - 0.44).abs() < 1e-9, "{}", busy(&first));
    for all in [merged(&[first, last.clone()]), merged(&[long, without, short, last])] {
        assert!((busy(&all) - 0.57).abs() < 1e-9, "{}", busy(&all));
    }
}

/// Merging in steps gives the same figures, whichever devices each process used.
#[test]
fn devices_know_their_processes() {
    let on = |pid, id: &str, busy| {
        let of = with_windows(pid, 10, busy, Some(0.01));
        let (id, uuid) = (id.to_owned(), Some(format!("GPU of {id}")));
        report(pid, vec![value!(Device { id, uuid, ..of.devices[0].clone() })], vec![])
    };
    // All of them run at the same time.
    let [a, b, c] = [on(1, "cuda:0", 0.4), on(2, "cuda:1", 0.5), on(2, "cuda:0", 0.8)];
    let b = with_wall(&b, 900_000_000_000);
    let cpu = report(4, Vec::new(), Vec::new());
    let ab = merged(&[a.clone(), b.clone()]);
    let steps = merged(&[merged(std::slice::from_ref(&ab)), merged(&[cpu.clone(), c.clone()])]);
    let at_once = merged(&[a, b, cpu, c]);
    assert_eq!(steps.devices, at_once.devices);
    assert!(ab.devices.iter().all(|device| !device.shared), "{ab:?}");
    let [first, second] = &at_once.devices[..] else { panic!() };
    assert_eq!((&first.used_by[..], &second.used_by[..]), (&[0, 3][..], &[1][..]));
    assert!(first.shared && !second.shared && first.windows_from.is_none());
    assert!((first.coverage.as_ref().unwrap().busy - 0.6).abs() < 1e-9);
}

#[test]
fn windows_are_pooled() {
    let all = merged(&[with_windows(1, 10, 0.4, Some(0.03)), with_windows(2, 30, 0.8, Some(0.02))]);
    let pooled = all.devices[0].coverage.as_ref().unwrap();
    assert_eq!((pooled.windows, pooled.incomplete), (40, 2));
    assert!((pooled.busy - 0.6).abs() < 1e-9 && pooled.busy_error.unwrap() < 0.02, "{pooled:?}");
    let [outside] = &pooled.kernels[..] else { panic!("{pooled:?}") };
    assert_eq!((outside.count, outside.per_s), (40, 50.0));
    assert!((outside.share - 0.05 / 0.6).abs() < 1e-9, "{outside:?}");
    // One report has too few phases for an error.
    let all = merged(&[with_windows(1, 10, 0.4, Some(0.03)), with_windows(2, 2, 0.8, None)]);
    assert_eq!(all.devices[0].coverage.as_ref().unwrap().busy_error, None);
}

#[test]
fn report_without_a_complete_window_tells_nothing() {
    let gpu = with_windows(1, 0, 1.0, None).devices[0].clone();
    let coverage = value!(Coverage {
        busy: 0.0,
        attributed: 0.0,
        missed: 3,
        kernels: Vec::new(),
        ..gpu.coverage.clone().unwrap()
    });
    let without = report(1, vec![value!(Device { coverage: Some(coverage), ..gpu })], vec![]);
    let all = merged(&[without.clone(), with_windows(2, 10, 0.4, Some(0.03))]);
    let found = all.devices[0].coverage.as_ref().unwrap();
    assert_eq!((found.busy, found.idle, found.busy_error), (0.4, 0.6, Some(0.03)));
    assert_eq!((found.windows, found.incomplete, found.missed), (10, 2, 3));
    let from = all.devices[0].windows_from;
    assert_eq!(from.map(|from| (from.with, from.of)), Some((1, 2)));
    let all = merged(&[without.clone(), without]);
    let found = all.devices[0].coverage.as_ref().unwrap();
    assert_eq!((found.windows, found.missed, all.devices[0].windows_from), (0, 6, None));
}

#[test]
fn windows_of_one_report_are_kept() {
    let report = with_windows(1, 10, 0.4, Some(0.03));
    let without = one(2, series("cuda:0", &[1_000.0], &[], 0.0));
    let all = merged(&[without, report.clone()]);
    assert_eq!(all.devices[0].coverage, report.devices[0].coverage);
}

#[test]
fn windows_of_some_reports_say_so() {
    let without = |pid| one(pid, series("cuda:0", &[1_000.0], &[], 0.0));
    let with = |pid| with_windows(pid, 10, 0.4, Some(0.03));
    let said = |all: &Snapshot| {
        let table = all.to_string();
        let line = table.lines().find(|line| line.contains(" phases of ")).unwrap();
        // The number of incomplete phases, and the part of the reports that have any.
        let (_, said) = line.split_once(" in total, ").unwrap();
        let (incomplete, reports) = said.split_once(')').unwrap();
        let incomplete = incomplete.split(' ').next().unwrap().parse::<u32>().ok();
        (incomplete, reports.trim_start_matches(", ").trim_end_matches(" reports").to_owned())
    };
    let two = merged(&[without(1), with(2)]);
    assert_eq!(said(&two), (Some(1), "in 1 of 2".to_owned()));
    let all =
        merged(&[two, without(3), merged(&[with(4), with(5)]), merged(&[without(6), without(7)])]);
    assert_eq!(said(&all), (Some(3), "in 3 of 7".to_owned()));
    assert_eq!(said(&merged(&[with(1), with(2)])), (Some(2), String::new()));
}

#[test]
fn different_devices_with_same_id_are_kept_apart() {
    let on = |name: &str, ns: f64| {
        let site = site("f", 1, vec![series("cuda:0", &[ns; 9], &[], 0.0)]);
        report(1, vec![gpu("cuda:0", name)], vec![site])
    };
    let both = merged(&[on("H200", 1000.0), on("A100", 2000.0), on("H200", 1000.0)]);
    let devices: Vec<_> = both.devices.iter().map(|d| (d.id.as_str(), d.name.as_str())).collect();
    assert_eq!(devices, [("cuda:0/1", "A100"), ("cuda:0/2", "H200")]);
    let more = merged(&[both, on("H200", 1000.0)]);
    let series: Vec<_> =
        more.sites[0].series.iter().map(|s| (s.device.as_str(), s.measured)).collect();
    assert_eq!(series, [("cuda:0/1", 9), ("cuda:0/2", 27)]);
}

/// Each rank calls its own GPU `cuda:0`, and a program that sees all of them calls it something else.
#[test]
fn gpus_are_told_apart_by_uuid() {
    let on = |pid, devices: &[(&str, &str)]| {
        let gpus = devices
            .iter()
            .map(|&(id, uuid)| value!(Device { uuid: Some(uuid.to_owned()), ..gpu(id, "H200") }));
        let series = devices.iter().map(|(id, _)| series(id, &[1000.0; 9], &[], 0.0)).collect();
        report(pid, gpus.collect(), vec![site("f", 1, series)])
    };
    let found = |all: &Snapshot| {
        let device = |id: &str| all.devices.iter().find(|device| device.id == id).unwrap().clone();
        let row = |series: &Series| {
            let device = device(&series.device);
            (device.id, device.uuid.unwrap(), device.used_by, series.measured)
        };
        let mut rows: Vec<_> = all.sites[0].series.iter().map(row).collect();
        rows.sort();
        rows
    };
    let expected = |rows: [(&str, &str, &[u32], u64); 2]| {
        rows.map(|(id, uuid, used_by, count)| (id.into(), uuid.into(), used_by.to_vec(), count))
    };
    let [one, two] = [on(1, &[("cuda:0", "B")]), on(4, &[("cuda:0", "A")])];
    let ranks = merged(&[one, two]);
    let both = [("cuda:0/1", "A", &[1][..], 9), ("cuda:0/2", "B", &[0][..], 9)];
    assert_eq!(found(&ranks), expected(both));
    let all = merged(&[ranks, on(9, &[("cuda:0", "A"), ("cuda:1", "B")])]);
    let both = [("cuda:0/1", "A", &[1, 2][..], 18), ("cuda:0/2", "B", &[0, 2][..], 18)];
    assert_eq!(found(&all), expected(both));
}

/// A report from elsewhere lists a GPU by two ids.
#[test]
fn gpu_that_is_listed_twice_is_not_shared() {
    let of = |id: &str| value!(Device { uuid: Some("A".to_owned()), ..gpu(id, "H200") });
    let twice = report(1, vec![of("cuda:0"), of("cuda:1")], vec![]);
    let all = merged(&[twice, report(9, vec![of("cuda:0")], vec![])]);
    let [device] = &all.devices[..] else { panic!("{:?}", all.devices) };
    assert!(!device.shared && device.warnings.is_empty(), "{device:?}");
}

/// Two ranks on two hosts, and a third one on the GPU of the first.
#[test]
fn gpus_have_the_host_and_the_label_of_their_processes() {
    let rank = |pid, host: &str, label: &str, uuid: &str| {
        let gpu = value!(Device { uuid: Some(uuid.to_owned()), ..gpu("cuda:0", "H200") });
        let series = series("cuda:0", &[1000.0; 9], &[], 0.0);
        let mut rank = report(pid, vec![gpu], vec![site("f", 1, vec![series])]);
        let process = &mut rank.process;
        (process.host, process.label) = (Some(host.to_owned()), Some(label.to_owned()));
        rank
    };
    let ranks =
        [rank(1, "n1", "rank 0", "A"), rank(2, "n2", "rank 1", "B"), rank(3, "n1", "rank 2", "A")];
    let lines = |ranks: &[Snapshot]| {
        let table = merged(ranks).to_string();
        let lines =
            table.lines().filter(|line| line.starts_with("cuda:0") && line.contains("H200"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(lines(&ranks), ["cuda:0/1: H200, n1", "cuda:0/2: H200, n2, rank 1"]);
    assert_eq!(lines(&ranks[..1]), ["cuda:0: H200"]);
}

/// Calls without GPU work may run before the program has a context.
#[test]
fn rows_of_unknown_device_are_kept_apart() {
    let on = |pid, devices: &[&str]| {
        let series = devices.iter().map(|device| series(device, &[1000.0; 9], &[], 0.0)).collect();
        report(pid, vec![gpu("cuda:0", "H200")], vec![site("f", 1, series)])
    };
    let both = merged(&[on(1, &["cuda:?", "cuda:0"]), on(2, &["cuda:0"])]);
    let more = merged(&[on(3, &["cuda:0"]), both, on(4, &["cuda:?"])]);
    let series: Vec<_> =
        more.sites[0].series.iter().map(|s| (s.device.as_str(), s.measured)).collect();
    assert_eq!(series, [("cuda:0", 27), ("cuda:?", 18)]);
    assert_eq!(more.devices.len(), 1);
    let refused = Merge::default().add(&on(1, &["cuda:1"]));
    assert!(refused.is_err_and(|why| why.contains(" device ")));
}

/// The first and the last report have a kernel that is far down in the sum of the first ones.
#[test]
fn kernels_outside_are_ranked_over_all_reports() {
    let with_kernels = |pid: u32, own: std::ops::Range<u32>, shared: Option<f64>| {
        let mut report = with_windows(pid, 10, 0.5, Some(0.01));
        let kernel = |name: String, share: f64| value!(PhaseKernel { name, count: 1, share });
        let kernels = own.map(|at| kernel(format!("own_{at}"), 0.04));
        let shared = shared.map(|share| kernel("shared".to_owned(), share));
        let coverage = report.devices[0].coverage.as_mut().unwrap();
        coverage.kernels = kernels.chain(shared).collect();
        report
    };
    let all = merged(&[
        with_kernels(1, 0..15, Some(0.03)),
        with_kernels(2, 20..35, None),
        with_kernels(3, 40..55, None),
        with_kernels(4, 60..75, Some(0.03)),
    ]);
    let found = &all.devices[0].coverage.as_ref().unwrap().kernels;
    assert_eq!((found.len(), found[0].name.as_str(), found[0].count), (16, "shared", 2));
}

/// A report with more devices could not be read.
#[test]
fn no_more_devices_are_merged_than_are_read() {
    let of = |pid, first: usize, count: usize| {
        let device = |at: usize| {
            let id = format!("cuda:{at}");
            value!(Device { uuid: Some(format!("GPU-{at}")), ..gpu(&id, "H200") })
        };
        report(pid, (first..first + count).map(device).collect(), vec![])
    };
    let mut merge = Merge::default();
    assert_eq!(merge.add(&of(1, 0, Snapshot::MAX_DEVICES)), Ok(()));
    assert!(merge.add(&of(2, Snapshot::MAX_DEVICES, 1)).is_err());
}
