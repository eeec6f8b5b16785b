//! Tests for the bias subtracted from raw times: its source, its error, and that measuring it
//! disturbs nothing else.

use crate::harness::scenario;

#[test]
fn bias_is_measured_in_process() {
    let run = scenario("exact/fed", &[]).run();
    let device = &run.report().devices[0];
    let (floor, held) = (device.event_floor_ns.unwrap(), device.event_held_empty_ns.unwrap());
    assert!(floor < held && held < floor + 10_000.0, "{device:?}");
    assert!(device.event_queued_empty_ns.is_some_and(|ns| ns > floor), "{device:?}");
}

/// The kernels that the runtime launches for this measurement belong to no call.
#[test]
fn cupti_measures_empty_kernel_where_calls_are_opened() {
    let run = scenario("kernels/events", &[]).with_cupti().run();
    let device = &run.report().devices[0];
    assert_eq!(device.event_bias_source.as_deref(), Some("cupti"), "{device:?}");
    let base = device.event_held_empty_ns.unwrap() - device.event_bias_ns.unwrap();
    assert!((200.0..3_000.0).contains(&base), "{device:?}");
    for row in ["kernels::by_events", "kernels::first_and_some"] {
        let kernels = &run.row(row).kernels.kernels;
        assert!(kernels.iter().all(|kernel| kernel.name == "spin_ns"), "{kernels:?}");
    }
}

mod simulated {
    use std::fs;
    use std::path::Path;

    use gpu_time_sim_cupti::{SimCupti, Version};
    use gpu_time_sim_driver::SimDriver;
    use gpu_time_sim_driver::formula::{EMPTY_NS, fed_pair_ns};

    use crate::harness::report::Device;
    use crate::harness::{Run, Scenario, scenario};

    /// The number of pairs in a calibration: held ones during the ramp, queued ones, and held ones
    /// that count. A later check has no queued pairs.
    const RAMP: usize = 100;
    const QUEUED: usize = 32;
    const SAMPLES: usize = 200;
    const CHECKED: usize = 64;
    /// Brackets around 6 and around 24 kernels, each five times, with and without a pair around
    /// each kernel.
    const INNER: usize = 5 * 2 * (6 + 24);
    /// The first launch of the empty kernel, which loads it.
    const LOADING: usize = 1;
    /// The number of nanoseconds that the model adds to a pair with a long queue behind it.
    const EXTRA: u64 = 608;
    /// The error of the bias table.
    const TABLE: u64 = 64;
    /// The resolution of event times.
    const STEP: u64 = 32;

    fn fed() -> Scenario {
        scenario("exact/fed", &[])
    }

    fn modelled(model: &str) -> Scenario {
        fed().simulated(|sim| sim.model(model))
    }

    fn faulty(fault: &str) -> Scenario {
        fed().simulated(|sim: SimDriver| sim.faults(fault))
    }

    fn device(run: &Run) -> &Device {
        &run.report().devices[0]
    }

    /// Creates a scenario that opens calls, on a device that is not in the bias table.
    fn opening(cupti: SimCupti) -> Scenario {
        let model = "compute_capability=80";
        let events = scenario("kernels/events", &[]).simulated(|sim| sim.model(model));
        events.on_cupti(cupti).env("GPU_TIME_RECORD", "20ms/1s")
    }

    /// Stores a calibration for the device and driver of a run, as `gpu-time calibrate` does.
    fn store(cache: &Path, of: &Run, driver: Option<&str>, empty_kernel_ns: f64) {
        let device = device(of);
        let release = fs::read_to_string("/sys/module/nvidia/version").ok();
        let release = release.as_deref().map(str::trim).or(device.driver.as_deref());
        let file = serde_json::json!({ "gpus": [{
            "name": device.name,
            "capability": "8.0",
            "uuid": "6770752d74696d652d73696d2d300000",
            "driver": driver.or(release),
            "cupti_version": 130_000,
            "empty_kernel_ns": empty_kernel_ns,
            "error_ns": 16.0,
        }] });
        write(cache, &file.to_string());
    }

    fn write(cache: &Path, text: &str) {
        fs::create_dir_all(cache.join("gpu-time")).unwrap();
        fs::write(cache.join("gpu-time/calibration.json"), text).unwrap();
    }

    /// Asserts the bias, its source and its error, to the nanosecond.
    #[track_caller]
    fn assert_bias(run: &Run, ns: u64, source: &str, error: Option<u64>) {
        assert_bias_of(run, "exact::one", ns, source, error);
    }

    #[track_caller]
    fn assert_bias_of(run: &Run, row: &str, ns: u64, source: &str, error: Option<u64>) {
        let device = device(run);
        let round = |ns: Option<f64>| ns.map(|ns| ns.round() as u64);
        assert_eq!(device.event_bias_source.as_deref(), Some(source), "{device:?}");
        assert_eq!(round(device.event_bias_ns), Some(ns), "{device:?}");
        assert_eq!(round(device.event_bias_error_ns), error, "{device:?}");
        let row = run.row(row);
        let removed = row.raw().median - row.net_ns.as_ref().unwrap().median;
        assert!((removed - ns as f64).abs() < 0.6, "{removed}: {device:?}");
    }

    #[track_caller]
    fn assert_warns(run: &Run, what: &str) {
        let warnings = &device(run).warnings;
        assert!(warnings.iter().any(|warning| warning.contains(what)), "{warnings:?}");
    }

    /// Returns how often the runtime's empty kernel was launched.
    fn empty_launches(run: &Run) -> usize {
        run.trace.kernels("gpu_time_empty").count()
    }

    #[test]
    fn slow_event_record_does_not_raise_floor() {
        let run = modelled("cost.cuEventRecord=2000");
        let floor_ns = device(&run.run()).event_floor_ns;
        assert!(floor_ns.is_some_and(|ns| (ns - 1_280.0).abs() < 0.1), "{floor_ns:?}");
    }

    /// The pairs recorded when the context is registered fail, but those behind holds do not.
    #[test]
    fn floor_from_held_pairs_alone() {
        let run = fed()
            .simulated(|sim| sim.model("compute_capability=80").faults("cuEventRecord:1=1"))
            .run();
        assert_eq!(device(&run).event_floor_ns.map(f64::round), Some(1_280.0));
        assert_bias(&run, 1_280, "floor", Some(fed_pair_ns(&[EMPTY_NS]) - 1_280 + EXTRA + STEP));
    }

    #[test]
    fn bias_from_table() {
        let run = fed().run();
        let held = fed_pair_ns(&[EMPTY_NS]);
        assert_bias(&run, held - EMPTY_NS, "table", Some(EXTRA + TABLE + STEP));
        assert_eq!(device(&run).warnings, [""; 0]);
        let figures = [device(&run).event_held_empty_ns, device(&run).event_queued_empty_ns];
        let figures = figures.map(|ns| ns.unwrap().round() as u64);
        assert_eq!(figures, [held, held + EXTRA]);
        assert!(run.stderr.contains("bias 2.207 µs (table, ±704 ns)"), "{}", run.stderr);
        assert!(run.stderr.contains(" Nsight Systems"), "{}", run.stderr);
        // The calibration runs when the context is registered, and the check at the end of the
        // process.
        let calibrated = LOADING + RAMP + QUEUED + SAMPLES + INNER;
        assert_eq!(empty_launches(&run), calibrated + LOADING + RAMP + CHECKED);
    }

    #[test]
    fn device_without_table_entry_uses_floor() {
        let run = modelled("compute_capability=80").run();
        let added = fed_pair_ns(&[EMPTY_NS]) - 1_280;
        assert_bias(&run, 1_280, "floor", Some(added + EXTRA + STEP));
        assert_eq!(device(&run).warnings, [""; 0]);
        assert!(device(&run).event_held_empty_ns.is_some());
        assert!(run.stderr.contains("GPU_TIME_BIAS=cupti:"), "{}", run.stderr);
    }

    /// The stream accepts fewer commands than a long queue has. The additional bias is then assumed
    /// to be that of an H200.
    #[test]
    fn short_queue_assumes_h200_extra() {
        let run = modelled("queue_depth=20").run();
        assert_bias(&run, 2_207, "table", Some(700 + TABLE + STEP));
        assert_eq!(device(&run).event_queued_empty_ns, None);
        let run = modelled("queue_depth=20,compute_capability=80").run();
        let added = fed_pair_ns(&[EMPTY_NS]) - 1_280;
        assert_bias(&run, 1_280, "floor", Some(added + 700 + STEP));
    }

    /// Held and queued pairs read the same number of steps.
    #[test]
    fn long_clock_steps_add_to_error() {
        let run = modelled("step_ns=1000").run();
        assert_eq!(device(&run).event_step_ns, Some(1_000.0));
        assert_bias(&run, 4_000 - EMPTY_NS, "table", Some(TABLE + 1_000));
    }

    #[test]
    fn bias_from_user() {
        let run = fed().env("GPU_TIME_BIAS", "2us").run();
        assert_bias(&run, 2_000, "user", None);
        let run = modelled("compute_capability=80").env("GPU_TIME_BIAS", "cupti:600ns").run();
        assert_bias(&run, fed_pair_ns(&[EMPTY_NS]) - 600, "cupti", Some(EXTRA + STEP));
        assert_eq!(device(&run).warnings, [""; 0]);
        let run = fed().env("GPU_TIME_BIAS", "cupti:9us").run();
        assert_bias(&run, 0, "cupti", Some(EXTRA + STEP));
        assert_warns(&run, "a pair of events measures only 2.752 µs around one");
    }

    #[test]
    fn bias_from_cupti_in_process() {
        let held = fed_pair_ns(&[EMPTY_NS]);
        let row = "kernels::first_and_some";
        for script in ["", "late=3,records=5", "reversed,records=7"] {
            let run = opening(SimCupti::default().script(script)).run();
            assert_bias_of(&run, row, held - EMPTY_NS, "cupti", Some(EXTRA + STEP));
            assert_eq!(device(&run).warnings, [""; 0]);
        }
        // This version records until the exit, and slows the brackets down.
        let endless = opening(SimCupti::new(Version::V12_4)).run();
        assert_bias_of(&endless, row, held - EMPTY_NS, "cupti", Some(EXTRA + STEP + 300));
        let given = opening(SimCupti::default()).env("GPU_TIME_BIAS", "cupti:600ns").run();
        assert_bias_of(&given, row, held - 600, "cupti", Some(EXTRA + STEP));
        let calibrated = LOADING + RAMP + QUEUED + SAMPLES + INNER;
        assert_eq!(empty_launches(&given), calibrated + LOADING + RAMP + CHECKED);
        let off = opening(SimCupti::default()).env("GPU_TIME_RECORD", "off").run();
        assert_eq!(device(&off).event_bias_source.as_deref(), Some("floor"));
    }

    #[test]
    fn functions_without_a_stream_let_cupti_measure_the_bias() {
        for order in ["events first", "events last"] {
            let run = scenario("cupti/mixed", &[order])
                .simulated(|sim| sim.model("compute_capability=80"))
                .with_cupti()
                .run();
            assert_eq!(device(&run).event_bias_source.as_deref(), Some("cupti"), "{order}");
        }
    }

    #[test]
    fn device_is_measured_later_beside_another() {
        let run = scenario("cupti/mixed_devices", &[]).simulated(|sim| sim.devices(2)).with_cupti();
        let run = run.run();
        let sources = run.report().devices.iter().map(|device| device.event_bias_source.as_deref());
        assert_eq!(sources.collect::<Vec<_>>(), [Some("cupti"); 2]);
    }

    /// Returns the error of the bias, the number of fed calls, and the median net time of the calls.
    fn beside(alone: &str, beside: &str) -> (Option<u64>, u64, f64) {
        let run = scenario("cupti/beside", &[alone, beside])
            .simulated(|sim| sim.model("recorded_kernel_ns=300"))
            .with_cupti()
            .run();
        let row = run.row("cupti::held");
        let median = row.net_ns.as_ref().unwrap().median;
        (device(&run).event_bias_error_ns.map(|ns| ns.round() as u64), row.fed, median)
    }

    #[test]
    fn brackets_beside_an_opened_call_are_starved() {
        let alone = beside("100", "0");
        assert!(alone.1 >= 98, "{alone:?}");
        assert_eq!(alone.0, Some(EXTRA + STEP));
        assert_eq!(beside("100", "80"), alone);
    }

    /// No record has times.
    #[test]
    fn useless_records_leave_bias_from_table() {
        let cupti = || SimCupti::default().script("zero=1");
        let warning = "CUPTI gave ";
        let run = scenario("kernels/events", &[]).on_cupti(cupti()).warns(warning);
        let run = run.env("GPU_TIME_RECORD", "on").run();
        assert_eq!(device(&run).event_bias_source.as_deref(), Some("table"));
    }

    /// Functions inside the opened call are timed by its records, and recording would slow down the
    /// pairs.
    #[test]
    fn no_calibration_during_opened_call() {
        // The first call is recorded, and it is unlikely that a phase begins soon after it.
        let run = scenario("kernels/brackets_inside", &[]).with_cupti();
        let run = run.env("GPU_TIME_RECORD", "1ms/1h").run();
        // After the opened call, CUPTI is in use.
        assert_eq!(device(&run).event_bias_source.as_deref(), Some("cupti"));
        let launches: Vec<u64> =
            run.trace.kernels("spin_ns").map(|spin| spin.enqueued_ns).collect();
        let first = run.trace.kernels("gpu_time_empty").next().unwrap();
        // There are two kernels in the opened call, and one outside.
        assert_eq!(launches.len(), 3);
        assert!(launches[1] < first.enqueued_ns && first.enqueued_ns < launches[2], "{first:?}");
    }

    /// CUPTI comes after everything that is timed, whatever the budget, and only if no earlier run has stored its time.
    #[test]
    fn first_run_measures_empty_kernel_at_its_end() {
        for budget in ["off", "1%"] {
            let folder = tempfile::tempdir().unwrap();
            let cache = folder.path().to_str().unwrap();
            let run = || {
                let unknown = modelled("compute_capability=80").on_cupti(SimCupti::default());
                unknown.env("XDG_CACHE_HOME", cache).env("GPU_TIME_BUDGET", budget).run()
            };
            let (first, second) = (run(), run());
            let held = fed_pair_ns(&[EMPTY_NS]);
            assert_bias(&first, held - EMPTY_NS, "cupti", Some(EXTRA + STEP));
            assert_bias(&second, held - EMPTY_NS, "cupti", Some(EXTRA + STEP));
            for run in [&first, &second] {
                assert_eq!(device(run).warnings, [""; 0]);
            }
            assert!(empty_launches(&first) > empty_launches(&second));
            // The end of the first run has the launches that the second lacks.
            let last = |run: &Run| run.trace.kernels("spin_ns").last().unwrap().enqueued_ns;
            let before = |run: &Run| {
                let empty = run.trace.kernels("gpu_time_empty");
                empty.filter(|empty| empty.enqueued_ns < last(run)).count()
            };
            assert_eq!(before(&first), before(&second));
            assert_eq!(first.report().process.kernels, None);
        }
    }

    #[test]
    fn empty_kernel_is_not_measured_if_that_is_not_wanted() {
        let source = |scenario: Scenario| {
            let run = scenario.on_cupti(SimCupti::default()).run();
            device(&run).event_bias_source.clone()
        };
        let unknown = || modelled("compute_capability=80");
        let [floor, user] = ["floor", "user"].map(|source| Some(source.to_owned()));
        assert_eq!(source(unknown().env("GPU_TIME_RECORD", "off")), floor);
        assert_eq!(source(unknown().env("GPU_TIME_BIAS", "2us")), user);
    }

    #[test]
    fn bias_from_stored_calibration() {
        let unknown = || modelled("compute_capability=80");
        let (held, first) = (fed_pair_ns(&[EMPTY_NS]), unknown().run());
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().to_str().unwrap();
        let with_stored = || unknown().env("XDG_CACHE_HOME", cache);

        store(folder.path(), &first, None, 600.0);
        let run = with_stored().run();
        assert_bias(&run, held - 600, "cupti", Some(EXTRA + STEP + 16));
        assert_eq!(device(&run).warnings, [""; 0]);
        // The user's setting takes precedence.
        let run = with_stored().env("GPU_TIME_BIAS", "2us").run();
        assert_bias(&run, 2_000, "user", None);

        // A stored calibration that the pairs contradict is not used.
        store(folder.path(), &first, None, 9_000.0);
        assert_eq!(device(&with_stored().run()).event_bias_source.as_deref(), Some("floor"));
    }

    #[test]
    fn unreadable_calibration_warns_where_it_is_needed() {
        let unknown = || modelled("compute_capability=80");
        let first = unknown().run();
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().to_str().unwrap();
        let stored = folder.path().join("gpu-time/calibration.json");
        let ignored = |why| format!("the calibration in `{}` is ignored ({why}", stored.display());

        store(folder.path(), &first, Some("1.0"), 600.0);
        let run = unknown().env("XDG_CACHE_HOME", cache).run();
        // Of another driver. The end of a run with CUPTI measures what the file lacks.
        assert_eq!(device(&run).event_bias_source.as_deref(), Some("floor"));
        assert_eq!(device(&run).warnings, [""; 0]);

        write(folder.path(), "{");
        let run = unknown().env("XDG_CACHE_HOME", cache).run();
        assert_warns(&run, &ignored("invalid: "));
        for better in [unknown().env("GPU_TIME_BIAS", "2us"), opening(SimCupti::default())] {
            let run = better.env("XDG_CACHE_HOME", cache).run();
            assert_eq!(device(&run).warnings, [""; 0]);
        }
    }

    /// The constant moves while samples are taken, so they disagree and are taken again.
    #[test]
    fn inconsistent_samples_are_retaken() {
        let run = fed().run();
        let middle = LOADING + RAMP + QUEUED + SAMPLES / 2;
        let at = run.trace.kernels("gpu_time_empty").nth(middle).unwrap().start_ns;
        let moved = modelled(&format!("event_drift_ns=320,event_drift_at_ns={at}")).run();
        assert_bias(
            &moved,
            fed_pair_ns(&[EMPTY_NS]) + 320 - EMPTY_NS,
            "table",
            Some(EXTRA - 320 + TABLE + STEP),
        );
        assert_eq!(empty_launches(&moved), empty_launches(&run) + SAMPLES);
        assert_eq!(device(&moved).warnings, [""; 0]);
    }

    #[test]
    fn moving_constant_warns() {
        let (short, long) = (64, 96);
        let with = |drift| format!("event_drift_ns={drift},event_drift_at_ns=90000000");
        assert_eq!(device(&modelled(&with(short)).run()).warnings, [""; 0]);
        let run = modelled(&with(long)).run();
        assert_warns(&run, "the event bias moved by +96 ns");
        // The initial value stays in force.
        assert_eq!(device(&run).event_bias_ns.map(f64::round), Some(2_207.0));
    }

    /// On some H200s the constant alternates between two values.
    #[test]
    fn alternating_constant_moves_if_both_values_do() {
        let with = |drift| {
            let drift = format!("event_drift_ns={drift},event_drift_at_ns=90000000");
            modelled(&format!("event_twin_ns=224,{drift}")).run()
        };
        let still = with(0);
        assert_eq!(device(&still).warnings, [""; 0]);
        let at = still.trace.kernels("gpu_time_empty").last().unwrap().start_ns;
        assert!(at > 90_000_000, "the check comes before the constant moves: {at}");
        assert_warns(&with(2_000), "the event bias moved by +2");
    }

    /// The check is made in the middle of a report, after the program's last launch.
    #[test]
    fn failed_check_warns() {
        let launches = |run: &Run| run.trace.calls().filter(|c| c.name == "cuLaunchKernel").count();
        let nth = launches(&fed().run()) - CHECKED;
        let run = faulty(&format!("cuLaunchKernel:{nth}=1")).run();
        assert_bias(&run, 2_207, "table", Some(EXTRA + TABLE + STEP));
        let what = "could not check whether the event bias moved while the program ran (driver \
                    error 1)";
        assert_warns(&run, what);
    }

    /// Pairs read a single value at first, but two values that are far apart during the check.
    #[test]
    fn inconclusive_check_warns() {
        let run = modelled("event_twin_ns=3000,event_twin_at_ns=90000000").run();
        assert_warns(&run, "while the program ran (the measured times differ too much)");
    }

    #[test]
    fn failed_calibration_uses_empty_pair() {
        for fault in ["cuMemHostRegister_v2:*=2", "cuModuleLoadData:9+=2"] {
            let run = faulty(fault).run();
            assert_bias(&run, 1_280, "floor", Some(1_625 + STEP));
            assert_warns(&run, "could not be calibrated");
        }
        let run = fed().env("CUDA_LAUNCH_BLOCKING", "1").run();
        assert_eq!(device(&run).event_bias_source.as_deref(), Some("floor"));
        assert_warns(&run, "makes every launch wait for its kernel");
        assert_eq!(empty_launches(&run), 0);
    }

    /// The launch that fails at first succeeds at the end.
    #[test]
    fn failed_calibration_is_retried_at_report() {
        let run = faulty("cuLaunchKernel:40=1").run();
        assert_bias(&run, 2_207, "table", Some(EXTRA + TABLE + STEP));
        assert_eq!(device(&run).warnings, [""; 0]);
    }

    /// The calibration's stream makes no progress.
    #[test]
    fn stalled_calibration_is_abandoned() {
        let run = scenario("exit/unread", &[]).simulated(|sim| sim.faults("stream:hang=3")).run();
        let device = device(&run);
        assert_eq!(device.event_bias_source.as_deref(), Some("floor"), "{device:?}");
        assert_warns(&run, "could not be calibrated (the GPU was busy)");
    }

    #[test]
    fn destroyed_context_keeps_its_bias() {
        let run = scenario("exit/context_reset", &[]).run();
        assert_eq!(device(&run).event_bias_source.as_deref(), Some("table"));
    }

    /// The context is registered inside a capture, and calibrated by the first call after the
    /// capture.
    #[test]
    fn no_calibration_during_capture() {
        let run = scenario("capture/first_calls", &[]).run();
        assert_eq!(device(&run).event_bias_source.as_deref(), Some("table"));
        let end =
            run.trace.calls().find(|call| call.name == "cuStreamEndCapture").unwrap().after_ns;
        let first = run.trace.kernels("gpu_time_empty").next().unwrap();
        assert!(first.enqueued_ns > end, "{first:?}");
        assert_eq!(empty_launches(&run), 2 * (LOADING + RAMP) + QUEUED + SAMPLES + INNER + CHECKED);
    }

    /// A context registered inside a bracket on another device is calibrated by the next call.
    #[test]
    fn no_calibration_during_bracket() {
        let run = scenario("streams/device_inside", &[]).simulated(|sim| sim.devices(2)).run();
        for device in &run.report().devices {
            assert_eq!(device.event_bias_source.as_deref(), Some("table"), "{device:?}");
        }
        let around = run.trace.elapsed();
        let around = around
            .iter()
            .find(|pair| pair.between(&run.trace).iter().any(|c| c.name == "spin_ns"))
            .unwrap();
        let (start, stop) = (around.start.enqueued_ns, around.stop.enqueued_ns);
        let inside = |enqueued: u64| start < enqueued && enqueued < stop;
        let empty_launches: Vec<u64> =
            run.trace.kernels("gpu_time_empty").map(|empty| empty.enqueued_ns).collect();
        assert!(empty_launches.iter().all(|&enqueued| !inside(enqueued)));
        let before = empty_launches.iter().filter(|&&enqueued| enqueued < start).count();
        let calibrated = LOADING + RAMP + QUEUED + SAMPLES + INNER;
        assert_eq!(
            (before, empty_launches.len()),
            (calibrated, 2 * (calibrated + LOADING + RAMP + CHECKED))
        );
    }
}
