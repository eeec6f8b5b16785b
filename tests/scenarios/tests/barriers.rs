//! Tests for times between two barriers (`clock = "sync"`).

use std::collections::BTreeSet;

use crate::harness::report::Series;
use crate::harness::{Run, Scenario, scenario};

fn kinds() -> Scenario {
    scenario("barriers/kinds", &[])
}

/// Returns the function's row with the `sync` clock.
#[track_caller]
fn sync_row<'a>(run: &'a Run, name: &str) -> &'a Series {
    let site = run.site(&format!("barriers::{name}"));
    let rows: Vec<_> = site.rows(None).filter(|row| row.clock == "sync").collect();
    let [row] = rows[..] else { panic!("{:?}", site.series) };
    assert!(row.device.starts_with("cuda:") && row.measure == "span", "{row:?}");
    assert_eq!((row.starved, row.at_floor, row.in_flight), (0, 0, 0), "{row:?}");
    assert_eq!(site.scope, "body");
    row
}

#[test]
fn sync_times_every_kind_of_call() {
    let run = kinds().run();
    for (name, ns) in [("one", 10_000.0), ("on_null", 5_000.0)] {
        let row = sync_row(&run, name);
        assert_eq!(row.brackets(), (10, 10, 0, 0));
        // No bias is subtracted, and earlier work is not included.
        let (raw, net) = (row.raw(), row.net_ns.as_ref().unwrap());
        assert!(raw.min >= ns && raw.median < 500_000.0, "{row:?}");
        assert_eq!((raw.median, raw.sum), (net.median, net.sum));
    }
    let two = sync_row(&run, "two");
    assert_eq!(run.site("barriers::two").counts(), (10, 2, 0, 8));
    assert!(two.raw().min >= 30_000.0, "{two:?}");
    assert_eq!(sync_row(&run, "cold").cache, "cold");

    let site = run.site("barriers::maybe");
    let devices: Vec<_> = site.series.iter().map(|row| (&*row.device, &*row.clock)).collect();
    assert_eq!(devices, [("cuda:0", "sync"), ("host", "host")]);

    let one = sync_row(&run, "one");
    let bytes = one.bytes.as_ref().unwrap();
    assert!((bytes.gb_per_s.unwrap() * one.raw().median - 1e6).abs() < 1.0, "{one:?}");
    assert!(run.stderr.contains("cuda:0 sync"), "{}", run.stderr);
}

#[test]
fn barriers_and_events_nest() {
    let run = kinds().run();
    assert_eq!(sync_row(&run, "outside").nested, 10);
    let inside = run.row("barriers::inside");
    assert_eq!((inside.nested, inside.cache.as_str()), (0, "as-found"));
    let around = run.row("barriers::around");
    assert_eq!((around.measured, around.nested), (10, 10));
    // The host waits inside the bracket.
    assert_eq!(around.fed, 0);
    let barred = sync_row(&run, "barred");
    assert_eq!((barred.nested, barred.cache.as_str()), (0, "as-found"));
}

#[test]
fn environment_overrides_cold_and_warmup() {
    let run = kinds().env("GPU_TIME_COLD", "dirty").env("GPU_TIME_SLEEP", "on").run();
    for name in ["one", "cold", "on_null"] {
        let row = sync_row(&run, name);
        assert_eq!((row.cache.as_str(), row.measured), ("cold-dirty", 10), "{name}");
    }
    // The stream waits for the host at the barrier anyway, so a hold would make no difference.
    assert!(run.site("barriers::one").warnings.is_empty());
    let run = kinds().env("GPU_TIME_COLD", "off").env("GPU_TIME_WARMUP", "4").run();
    assert_eq!(sync_row(&run, "cold").cache, "as-found");
    assert_eq!(run.site("barriers::one").counts(), (10, 4, 0, 6));
}

#[test]
fn barriers_leave_captures_intact() {
    let run = scenario("barriers/capture", &[]).run();
    assert_eq!(run.fact("replayed"), 3);
    let captured = run.site("barriers::captured");
    assert_eq!(captured.total(|row| row.lost("capture")), 3);
    assert_eq!(captured.total(|row| row.measured), 1);
    assert_eq!(run.row("barriers::begins").lost("capture"), 1);
    let elsewhere = sync_row(&run, "elsewhere");
    assert_eq!(elsewhere.brackets(), (8, 8, 0, 0));
    assert_eq!(run.report().warnings(), [""; 0]);
}

#[test]
fn panic_and_dropped_stream_lose_the_sample() {
    let run = scenario("barriers/abandoned", &[]).panics().run();
    assert_eq!(run.row("barriers::unwinds").lost("failed"), 5);
    assert_eq!(run.row("barriers::drops").lost("stream"), 5);
    let one = sync_row(&run, "one");
    assert_eq!((one.measured, one.nested), (5, 0));
}

mod simulated {
    use super::*;
    use gpu_time_sim_driver::formula;

    /// The time is from the end of the first barrier to the moment when the host sees the kernel's
    /// end.
    #[test]
    fn sync_times_match_formula() {
        let run = scenario("barriers/one_function", &[]).run();
        let calls: Vec<_> = run.trace.calls().collect();
        let barriers: Vec<usize> =
            (0..calls.len()).filter(|&i| calls[i].name == "cuStreamSynchronize").collect();
        // The last barrier belongs to the program.
        let expected: Vec<f64> = barriers[..40]
            .chunks(2)
            .map(|pair| {
                let launch = calls[pair[0]..pair[1]]
                    .iter()
                    .find(|call| call.name.starts_with("cuLaunchKernel"))
                    .unwrap();
                let done = formula::seen_ns(launch.after_ns, &[formula::spin_ns(10_000)]);
                assert_eq!(calls[pair[1]].after_ns, done);
                (done - calls[pair[0]].after_ns) as f64
            })
            .collect();
        let row = sync_row(&run, "one");
        assert_eq!(row.measured, 20);
        let raw = row.raw();
        let sum: f64 = expected.iter().sum();
        assert!((raw.sum - sum).abs() < 0.5, "{raw:?}, {sum}");
        assert!((raw.min - expected.iter().copied().fold(f64::MAX, f64::min)).abs() < 0.5);
        assert!((raw.max - expected.iter().copied().fold(0.0, f64::max)).abs() < 0.5);
    }

    /// The copy finds none of its data in the L2, and its time does not include the flush.
    #[test]
    fn flush_is_not_in_the_time() {
        let run = kinds().run();
        let row = sync_row(&run, "cold");
        let copy = formula::cold_copy_ns(15 << 14) as f64;
        // 2.6 µs for a launch, 1.5 µs until the device sees it, 2 µs until the host sees the end.
        assert!(row.raw().min > copy && row.raw().max < copy + 10_000.0, "{copy}: {row:?}");
    }

    #[test]
    fn failed_barrier_loses_its_sample() {
        for (fault, lost) in [
            // One barrier of the first call fails: the first or the second.
            ("cuStreamSynchronize:1=999", 1),
            ("cuStreamSynchronize:2=999", 1),
            ("cuStreamSynchronize:9+=1", 20),
        ] {
            let run =
                scenario("barriers/one_function", &[]).simulated(|sim| sim.faults(fault)).run();
            let row = run.row("barriers::one");
            let first = if lost == 1 { 1 } else { 16 };
            assert_eq!((row.lost("driver"), row.measured), (first, 20 - first), "{fault}");
            assert_eq!(row.all_lost(), first, "{fault}: {row:?}");
        }
    }

    #[test]
    fn context_error_loses_all_later_samples() {
        let run = scenario("barriers/one_function", &[])
            .simulated(|sim| sim.faults("cuStreamSynchronize:4=700"))
            .run();
        let row = run.row("barriers::one");
        assert_eq!((row.lost("context"), row.measured), (19, 1));
    }

    #[test]
    fn barrier_exchanges_capture_mode() {
        const EXCHANGE: &str = "cuThreadExchangeStreamCaptureMode";
        let run = scenario("barriers/capture", &[]).run();
        let threads: BTreeSet<u32> = run.trace.calls().map(|call| call.thread).collect();
        let relaxed = threads.into_iter().map(|thread| {
            let calls = run.trace.calls().filter(|call| call.thread == thread);
            let names: Vec<&str> = calls.map(|call| call.name.as_str()).collect();
            let is_relaxed =
                |names: &&[&str]| **names == [EXCHANGE, "cuStreamSynchronize", EXCHANGE];
            names.windows(3).filter(is_relaxed).count()
        });
        // There are two for each measured call, plus the first barrier of the call that began the
        // capture.
        assert_eq!(relaxed.sum::<usize>(), 2 * (8 + 1) + 1);
    }
}
