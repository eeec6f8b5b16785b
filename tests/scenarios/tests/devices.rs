//! Tests with several devices in one process: each has its own row, whichever thread makes the
//! calls and whatever is exchanged between the devices.

use crate::harness::{Run, Scenario, assert_lasts, scenario};

fn devices(name: &str) -> Scenario {
    scenario(&format!("devices/{name}"), &[]).chrome_trace()
}

/// Asserts that a function has the same number of brackets on each device, none of them lost, and
/// that the Chrome trace has a process for each device.
#[track_caller]
fn assert_shared(run: &Run, name: &str, brackets: u64) {
    let (site, devices) = (run.site(name), run.fact("devices"));
    assert_eq!(site.timed, brackets);
    for device in 0..devices {
        let id = format!("cuda:{device}");
        let rows: Vec<_> = site.series.iter().filter(|row| row.device == id).collect();
        let expected = if site.scope == "launches" { 2 } else { 1 };
        assert_eq!(rows.len(), expected, "{id}: {rows:?}");
        for row in rows {
            let each = brackets / devices;
            assert_eq!(row.brackets(), (each, each, 0, 0), "{id}");
        }
        let is_of_device = |process: &str| process == id || process.starts_with(&format!("{id} "));
        let slices = run.chrome_trace().of(name);
        let slices = slices.iter().filter(|slice| is_of_device(&slice.process)).count();
        assert_eq!(slices as u64, brackets / devices, "{id}");
    }
    run.chrome_trace().check_report(run.report());
    assert_eq!(run.report().devices.len() as u64, devices);
    assert!(run.report().devices.iter().all(|device| device.event_floor_ns.is_some()));
    assert_eq!(run.report().warnings(), [""; 0]);
}

fn alternating(run: &Run) {
    for name in ["devices::launched", "devices::around"] {
        assert_shared(run, name, 80);
        for row in &run.site(name).series {
            assert_lasts(row, 20_000.0);
        }
    }
}

#[test]
fn one_thread_alternates_devices() {
    alternating(&devices("alternating").run());
}

fn threads(run: &Run) {
    for name in ["devices::launched", "devices::around"] {
        assert_shared(run, name, 80);
        assert!(run.site(name).series.iter().all(|row| row.raw().min >= 20_000.0));
    }
}

#[test]
fn two_threads_share_devices() {
    threads(&devices("threads").run());
}

/// The bracket belongs to the stream's device, regardless of the copy's destination.
fn peer_copy(run: &Run) {
    assert_shared(run, "devices::sent", 20);
    assert_eq!(run.fact("arrived"), 2);
    for row in &run.site("devices::sent").series {
        assert!(row.raw().min > 20_000.0, "{row:?}");
    }
}

#[test]
fn copy_between_devices() {
    peer_copy(&devices("peer_copy").run());
}

/// The bracket includes the wait for the other device.
fn foreign_event(run: &Run) {
    let row = run.row("devices::after");
    assert_eq!(row.brackets(), (20, 20, 0, 0));
    assert_eq!(row.device, format!("cuda:{}", run.fact("devices") - 1));
    run.chrome_trace().check_report(run.report());
}

#[test]
fn wait_for_event_of_other_device() {
    let run = devices("foreign_event").run();
    foreign_event(&run);
    if run.fact("devices") == 2 {
        // Three milliseconds on the other device, minus the millisecond for which the bracket's own
        // stream was busy beforehand.
        let raw = run.row("devices::after").raw();
        assert!(raw.min > 1_500_000.0 && raw.median < 2_500_000.0, "{raw:?}");
    }
}

mod simulated {
    use super::*;
    use gpu_time_sim_driver::formula::{fed_pair_ns, peer_copy_ns, spin_ns};

    fn on_two(name: &str) -> Run {
        let run = devices(name).simulated(|sim| sim.devices(2)).run();
        assert_eq!(run.fact("devices"), 2);
        run.chrome_trace().check_model(&run.trace);
        run
    }

    #[test]
    fn calls_on_two_devices() {
        alternating(&on_two("alternating"));
        threads(&on_two("threads"));
    }

    #[test]
    fn copy_time_matches_link_model() {
        let run = on_two("peer_copy");
        peer_copy(&run);
        let expected = fed_pair_ns(&[spin_ns(20_000), peer_copy_ns(run.fact("bytes"))]) as f64;
        for row in &run.site("devices::sent").series {
            assert_eq!(row.fed, 10, "{row:?}");
            assert!((row.raw().min - expected).abs() < 1.0, "{expected}: {row:?}");
            assert!((row.raw().max - expected).abs() < 1.0, "{expected}: {row:?}");
        }
    }

    #[test]
    fn wait_for_event_of_other_device() {
        let run = on_two("foreign_event");
        foreign_event(&run);
        let raw = run.row("devices::after").raw();
        assert!(raw.min > 1_900_000.0 && raw.max < 2_100_000.0, "{raw:?}");
        // This is a known blind spot of the rule for fed samples: the host was far ahead, and the
        // GPU waited for another GPU.
        assert_eq!(run.row("devices::after").fed, 20);
    }

    /// Uses the same device twice, as on a machine with a single device.
    #[test]
    fn one_device_plays_both_parts() {
        alternating(&devices("alternating").run());
        threads(&devices("threads").run());
        peer_copy(&devices("peer_copy").run());
        foreign_event(&devices("foreign_event").run());
    }
}
