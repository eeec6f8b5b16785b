//! Tests for every kind of stream.

use crate::harness::{Run, assert_lasts, is_real, scenario};

#[test]
fn several_streams() {
    let run = scenario("streams/several", &[]).run();
    assert_eq!(run.row("streams::timed").brackets(), (40, 40, 0, 0));
    assert_lasts(run.row("streams::timed"), 20_000.0);
}

/// Asserts that every device has its own warm-up, row and L2.
#[track_caller]
fn assert_devices(run: &Run) {
    let devices = run.fact("devices");
    let site = run.site("streams::on_device");
    assert_eq!(site.counts(), (10 * devices, 3 * devices, 0, 7 * devices));
    for device in 0..devices {
        let id = format!("cuda:{device}");
        let rows = || site.series.iter().filter(|row| row.device == id);
        assert_eq!(rows().count(), 2, "a launch and a sum");
        for row in rows() {
            assert_eq!((row.brackets(), row.cache.as_str()), ((7, 7, 0, 0), "cold"));
            assert_lasts(row, 20_000.0);
        }
        let device = run.report().devices.iter().find(|device| device.id == id).unwrap();
        assert!(device.flush_bytes.is_some() && device.event_floor_ns.is_some(), "{device:?}");
        // On some GPUs, the event constant alternates between two values, which causes a warning.
        let has_moved = |warning: &str| is_real() && warning.starts_with("the event bias moved");
        assert!(device.warnings.iter().all(|warning| has_moved(warning)), "{device:?}");
    }
}

#[test]
fn all_devices() {
    assert_devices(&scenario("streams/devices", &[]).run());
}

/// Only cudarc's types and `GpuStream` name a handle, whatever methods and traits the program has.
#[test]
fn lookalikes_name_no_handle() {
    let run = scenario("streams/own", &[]).run();
    let lookalike = run.site("streams::own::on_lookalike");
    assert_eq!(lookalike.counts(), (8, 0, 8, 0));
    let [warning] = lookalike.warnings.as_slice() else { panic!("{:?}", lookalike.warnings) };
    assert!(warning.contains("streams::own::Lookalike` "), "{warning}");
    assert!(warning.ends_with("`GpuStream` for it"), "{warning}");
    let pooled = run.site("streams::own::on_pooled");
    assert_eq!((pooled.counts(), pooled.warnings.len()), ((8, 0, 0, 8), 0));
    assert_lasts(run.row("streams::own::on_pooled"), 20_000.0);
}

#[test]
fn null_per_thread_and_raw_streams() {
    let run = scenario("streams/special", &[]).run();
    // Warm-up counts calls per device, regardless of the thread.
    let per_thread = run.site("streams::on_per_thread");
    assert_eq!(per_thread.counts(), (36, 2, 0, 34));
    for row in [per_thread.row(), per_thread.launch(0)] {
        assert_eq!((row.brackets(), row.cache.as_str()), ((34, 34, 0, 0), "cold"));
        assert_lasts(row, 20_000.0);
    }
    // Two threads share the NULL stream. A call inside another thread's bracket is not flushed, and
    // that bracket is marked as nested. Brackets without the mark take as long as their kernel.
    let null = run.site("streams::on_null");
    assert_eq!(null.counts(), (36, 2, 0, 34));
    for launch in [None, Some(0)] {
        let rows: Vec<_> = null.rows(launch).collect();
        let begun: u64 = rows.iter().map(|row| row.brackets().1).sum();
        assert_eq!(begun, 34, "{rows:?}");
        assert!(rows.iter().any(|row| row.cache == "cold" && row.measured >= 10), "{rows:?}");
        for row in rows {
            assert!(["cold", "as-found"].contains(&row.cache.as_str()), "{row:?}");
            assert!(row.raw().min >= 20_000.0, "{row:?}");
            if row.nested == 0 {
                assert_lasts(row, 20_000.0);
            }
        }
    }
    let raw = run.site("streams::on_raw");
    assert_eq!(raw.counts(), (240, 200, 0, 40));
    assert_eq!(raw.row().brackets(), (40, 40, 0, 0));
    assert_lasts(raw.row(), 20_000.0);
    let held = run.site("held by a struct");
    assert_eq!(held.row().brackets(), (12, 12, 0, 0));
}

#[test]
fn missing_stream_uses_host_clock() {
    let run = scenario("streams/optional", &[]).run();
    let site = run.site("streams::maybe");
    assert_eq!(site.counts(), (20, 4, 0, 16));
    let on = |device: &str| site.rows(None).find(|row| row.device == device).unwrap();
    assert_eq!((on("host").brackets(), on("host").clock.as_str()), ((8, 8, 0, 0), "host"));
    assert_eq!((on("host").fed, on("host").cache.as_str()), (8, "as-found"));
    assert_eq!((on("cuda:0").brackets(), on("cuda:0").cache.as_str()), ((8, 8, 0, 0), "cold"));
    let by_host = run.site("streams::by_host");
    assert_eq!(by_host.counts(), (20, 2, 0, 18));
    assert_eq!((by_host.row().fed, by_host.row().device.as_str()), (18, "host"));
    assert!(by_host.row().raw().min >= 1e6);
    assert_eq!(run.report().process.off, None);
}

/// cudarc's own waits and records are inside every bracket, and the report says so.
#[test]
fn event_tracking() {
    let run = scenario("streams/tracked", &[]).run();
    let row = run.row("streams::with_slices");
    assert_eq!((row.brackets(), row.tracked), ((20, 20, 0, 0), 20));
    assert!(run.stderr.contains("20 tracked"), "{}", run.stderr);
    let run = scenario("streams/several", &[]).run();
    assert_eq!(run.row("streams::timed").tracked, 0);
}

#[test]
fn stream_dropped_inside_function() {
    let run = scenario("streams/dropped", &[]).run();
    let body = run.row("streams::drops_in_body");
    assert_eq!((body.timed, body.measured, body.lost("stream")), (20, 10, 10));
    let launches = run.site("streams::drops_in_launch");
    for row in [launches.row(), launches.launch(0)] {
        assert_eq!((row.timed, row.measured, row.lost("stream")), (20, 10, 10));
    }
}

/// The number of pending brackets is limited, and those beyond the limit are counted as lost.
#[test]
fn more_pending_than_events() {
    let run = scenario("streams/many_pending", &[]).run();
    // Launches and calls have separate limits.
    let site = run.site("streams::timed");
    for row in [site.launch(0), site.row()] {
        assert_eq!((row.timed, row.measured + row.lost("events")), (3_001, 3_001));
        // At least as many are measured as fit into one stream's queue.
        assert!((1_000..2_500).contains(&row.measured), "{row:?}");
    }
}

/// The time for which the host keeps the GPU waiting inside a bracket.
const HOST_NS: f64 = 50_000.0;

/// Asserts that no bracket on a new stream counts as fed because of work on a destroyed stream. Only on some GPUs, the
/// first kernel on a new stream waits inside its bracket for that work, for so long that the host does not matter.
#[track_caller]
fn assert_starved(run: &Run) {
    let row = run.row("streams::waiting");
    assert_eq!((row.measured, row.fed + row.starved), (20, 20), "{row:?}");
    let least_ns = if row.fed == 0 { HOST_NS } else { 100.0 * HOST_NS };
    assert!(row.fed <= u64::from(is_real()) && row.raw().min >= least_ns, "{row:?}");
}

/// The H200's driver reuses the handle each time.
#[test]
fn stream_destroyed_with_work_pending() {
    assert_starved(&scenario("streams/reused", &[]).run());
}

mod simulated {
    use super::*;

    #[test]
    fn handle_reused_while_work_is_pending() {
        let run = scenario("streams/reused", &[]).untraced();
        let run = run.simulated(|sim| sim.model("reuses_streams=1")).run();
        assert_eq!(run.fact("reused"), 20);
        assert_starved(&run);
    }

    #[test]
    fn two_devices() {
        let run = scenario("streams/devices", &[]).simulated(|sim| sim.devices(2)).run();
        assert_eq!(run.fact("devices"), 2);
        assert_devices(&run);
    }
}

#[test]
fn default_stream_times_functions_that_name_none() {
    // Runs without CUPTI, which a machine with a GPU may have.
    let run = scenario("streams/default", &[]).env("GPU_TIME_RECORD", "off").run();
    let site = run.site("streams::unnamed");
    assert_eq!(site.counts(), (31, 0, 0, 31));
    let rows = |clock: &str| {
        let rows: Vec<_> = site.series.iter().filter(|row| row.clock == clock).collect();
        assert_eq!(rows.len(), 1, "{clock}: {rows:?}");
        rows[0]
    };
    let (events, host) = (rows("events"), rows("host"));
    assert_eq!(events.brackets(), (26, 26, 0, 0));
    assert_lasts(events, 20_000.0);
    assert_eq!((host.device.as_str(), host.measured), ("host", 5));
}

#[test]
fn default_stream_replaces_the_clock_of_kernels() {
    let run = scenario("streams/default", &[]).with_cupti().run();
    let site = run.site("streams::unnamed");
    assert_eq!(site.counts(), (31, 0, 0, 31));
    let clocks = |clock: &str| -> Vec<_> {
        let rows = site.series.iter().filter(|row| row.clock == clock);
        rows.map(|row| (row.timed, row.measured, row.opened)).collect()
    };
    assert_eq!(clocks("events"), [(26, 26, 0)]);
    assert_eq!(clocks("kernels"), [(5, 0, 5)]);
}

#[test]
fn removed_default_stream_is_lost() {
    let run = scenario("streams/default_dropped", &[]).run();
    let site = run.site("streams::replacing");
    assert_eq!(site.counts(), (3, 0, 0, 3));
    assert_eq!(site.row().lost["stream"], 3);
}
