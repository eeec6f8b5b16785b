//! Tests in which each of the runtime's driver calls fails: the program behaves as it would without
//! the failure, and the report shows what was lost.

mod simulated {
    use std::collections::BTreeMap;

    use gpu_time_sim_driver::trace::Trace;

    use crate::harness::report::Report;
    use crate::harness::{SMALL_L2, Scenario, scenario};

    /// The driver functions that the runtime calls, whether or not the program calls them too.
    const CALLED: [&str; 31] = [
        "cuCtxGetCurrent",
        "cuCtxGetDevice",
        "cuCtxGetId",
        "cuCtxGetLimit",
        "cuCtxPopCurrent_v2",
        "cuCtxPushCurrent_v2",
        "cuDeviceGetAttribute",
        "cuDeviceGetName",
        "cuDeviceGetPCIBusId",
        "cuDeviceGetUuid_v2",
        "cuDevicePrimaryCtxGetState",
        "cuDevicePrimaryCtxRelease_v2",
        "cuDevicePrimaryCtxRetain",
        "cuDriverGetVersion",
        "cuEventCreate",
        "cuEventElapsedTime_v2",
        "cuEventRecord",
        "cuLaunchKernel",
        "cuMemAlloc_v2",
        "cuMemFreeAsync",
        "cuMemHostGetDevicePointer_v2",
        "cuMemHostRegister_v2",
        "cuMemsetD32Async",
        "cuModuleGetFunction",
        "cuModuleLoadData",
        "cuStreamCreate",
        "cuStreamGetAttribute",
        "cuStreamGetCtx",
        "cuStreamIsCapturing",
        "cuStreamSynchronize",
        "cuThreadExchangeStreamCaptureMode",
    ];

    /// Driver functions that the runtime calls in nearly every timed call.
    const OFTEN: [&str; 10] = [
        "cuCtxGetCurrent",
        "cuCtxGetId",
        "cuCtxPopCurrent_v2",
        "cuCtxPushCurrent_v2",
        "cuEventElapsedTime_v2",
        "cuEventRecord",
        "cuLaunchKernel",
        "cuStreamGetCtx",
        "cuStreamIsCapturing",
        "cuStreamSynchronize",
    ];

    /// For each function, returns which of its calls in the process were made by the runtime. The
    /// program's own calls are between marks.
    fn uses(trace: &Trace) -> BTreeMap<&str, Vec<usize>> {
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        let mut uses: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let mut is_own = false;
        for call in trace.calls() {
            match call.name.as_str() {
                "cuProfilerStart" => is_own = true,
                "cuProfilerStop" => is_own = false,
                name => {
                    let nth = seen.entry(name).or_default();
                    *nth += 1;
                    if !is_own {
                        uses.entry(name).or_default().push(*nth);
                    }
                }
            }
        }
        uses
    }

    /// Uses a small L2, which can be flushed quickly.
    fn program(faults: &str) -> Scenario {
        scenario("faults/program", &[]).simulated(|sim| sim.model(SMALL_L2).faults(faults))
    }

    /// Returns `true` if the report shows a failure: something lost, a warning, or an unknown
    /// value.
    fn shows_failure(report: &Report) -> bool {
        let unknown = report.devices.iter().any(|device| {
            device.name.is_empty()
                || device.driver.is_none()
                || device.l2_bytes.is_none()
                || device.event_floor_ns.is_none()
        });
        let lost = report.total(|row| row.all_lost());
        lost > 0 || !report.warnings().is_empty() || unknown
    }

    /// Returns the number of samples in each series, with the series' L2 state.
    fn samples(report: &Report) -> Vec<(&str, Option<u32>, &str, u64)> {
        let rows =
            report.sites.iter().flat_map(|site| site.series.iter().map(move |row| (site, row)));
        rows.map(|(site, row)| {
            let launch = row.launch.as_ref().map(|launch| launch.index);
            (site.name.as_str(), launch, row.cache.as_str(), row.measured)
        })
        .collect()
    }

    /// Returns `true` if each launch was held, or the report says that it was not. The first call
    /// is not held, and on a slow host, holds may be missed while the runtime learns how long they
    /// must be.
    fn are_held(report: &Report) -> bool {
        let row = report.site("faults::launches").launch(0);
        row.fed + row.all_lost() >= 120
    }

    /// Makes the first, the second and the hundredth use fail, and then all uses.
    fn fails_with(code: i32) {
        let whole = program("").run();
        assert!(!shows_failure(whole.report()), "{:?}", whole.report().warnings());
        assert!(are_held(whole.report()));
        let uses = uses(&whole.trace);
        let called: Vec<&str> = uses.keys().copied().collect();
        assert_eq!(called, CALLED);
        for name in OFTEN {
            assert!(uses[name].len() >= 100, "{name}: {}", uses[name].len());
        }
        let mut cases = 0;
        for (name, uses) in uses {
            let nth = |n: usize| uses.get(n - 1).map(|nth| format!("{name}:{nth}={code}"));
            let always = format!("{name}:{}+={code}", uses[0]);
            for fault in [nth(1), nth(2), nth(100), Some(always)].into_iter().flatten() {
                let run = program(&fault).untraced().run();
                assert_eq!(run.fact("launches"), run.fact("expected"), "{fault}");
                for site in run.report().sites.iter().filter(|site| site.calls > 0) {
                    assert_eq!(site.counts(), (130, 0, 0, 130), "{fault}");
                }
                // An event recorded in a capture fails with the same error.
                let is_as_captured = code == 1 && name == "cuEventElapsedTime_v2";
                for reason in ["failed", "cancelled", "capture", "stream", "thread", "invalid"] {
                    if is_as_captured && reason == "capture" {
                        continue;
                    }
                    assert_eq!(run.report().total(|row| row.lost(reason)), 0, "{fault}: {reason}");
                }
                assert_eq!(run.report().total(|row| row.in_flight), 0, "{fault}");
                if !shows_failure(run.report()) {
                    // The call was retried, or its failure did not matter.
                    assert_eq!(samples(run.report()), samples(whole.report()), "{fault}");
                    assert!(are_held(run.report()), "{fault}: {}", run.stderr);
                }
                cases += 1;
            }
        }
        println!("{cases} faults with code {code}");
    }

    #[test]
    fn invalid_value() {
        fails_with(1);
    }

    #[test]
    fn out_of_memory() {
        fails_with(2);
    }

    #[test]
    fn illegal_address() {
        fails_with(700);
    }

    #[test]
    fn launch_failed() {
        fails_with(719);
    }

    #[test]
    fn unknown_error() {
        fails_with(999);
    }
}
