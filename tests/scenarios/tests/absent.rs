//! Machines where nothing can be timed on a GPU: the program runs as if it were not annotated, and
//! the report says why.

use crate::harness::{Run, Scenario, scenario};

/// All twelve calls ran on the CPU.
#[track_caller]
fn on_the_cpu(scenario: Scenario, why: &str) -> Run {
    let run = scenario.run();
    assert_eq!((run.fact("gpu"), run.fact("y")), (0, 12));
    let row = run.row("absent::on_gpu_or_cpu");
    assert_eq!((row.device.as_str(), row.clock.as_str()), ("host", "host"));
    assert_eq!(row.brackets(), (12, 12, 0, 0));
    says(&run, why);
    run
}

/// Why there are no times of a GPU stands in both reports.
#[track_caller]
fn says(run: &Run, why: &str) {
    let timing = &run.report().process.timing;
    assert!(timing.starts_with("off: ") && timing.contains(why), "{timing}");
    assert!(run.stderr.contains("nothing was timed on a GPU: "), "{}", run.stderr);
    assert!(run.stderr.contains(why), "{}", run.stderr);
}

#[test]
fn every_gpu_is_hidden() {
    let scenario = scenario("absent/fallback", &[]).env("CUDA_VISIBLE_DEVICES", "");
    let run = on_the_cpu(scenario, "`CUDA_VISIBLE_DEVICES` hides every GPU");
    assert_eq!(run.fact("driver"), 1);
}

mod simulated {
    use super::*;

    #[test]
    fn there_is_no_driver() {
        let run = on_the_cpu(scenario("absent/fallback", &[]).without_driver(), "no CUDA driver");
        assert_eq!(run.fact("driver"), 0, "this machine has one");
        let run = scenario("absent/handle", &[]).without_driver().run();
        assert_skipped(&run, "no CUDA driver library");
    }

    #[test]
    fn there_is_no_gpu() {
        let scenario = scenario("absent/fallback", &[]).simulated(|sim| sim.devices(0));
        on_the_cpu(scenario, "no call came with a stream on a GPU");
    }

    /// The stream that the program names is not looked at.
    #[track_caller]
    fn assert_skipped(run: &Run, why: &str) {
        assert_eq!(run.fact("number"), 12);
        let site = run.site("absent::with_handle");
        assert_eq!(site.counts(), (12, 0, 12, 0));
        assert!(site.series.is_empty() && run.report().devices.is_empty());
        assert_eq!(run.trace.calls().count(), 0);
        says(run, why);
    }

    /// What the runtime cannot do without, and cudarc calls as well: a program through cudarc could
    /// not run at all.
    #[test]
    fn the_driver_lacks_what_the_program_needs_too() {
        for symbol in [
            "cuCtxGetCurrent",
            "cuCtxSetCurrent",
            "cuDeviceGetAttribute",
            "cuDevicePrimaryCtxRelease_v2",
            "cuDevicePrimaryCtxRetain",
            "cuLaunchKernel",
            "cuModuleGetFunction",
            "cuModuleLoadData",
            "cuStreamCreate",
        ] {
            let run = scenario("absent/handle", &[]).without(symbol).run();
            assert_skipped(&run, &format!("it has no `{symbol}`"));
        }
    }

    /// What the runtime cannot do without, and the program can.
    #[test]
    fn the_driver_lacks_what_timing_needs() {
        for symbol in [
            "cuCtxGetDevice",
            "cuCtxPopCurrent_v2",
            "cuCtxPushCurrent_v2",
            "cuDeviceGetName",
            "cuDeviceGetPCIBusId",
            "cuDevicePrimaryCtxGetState",
            "cuDriverGetVersion",
            "cuEventCreate",
            "cuEventRecord",
            "cuMemAlloc_v2",
            "cuMemHostGetDevicePointer_v2",
            "cuMemHostRegister_v2",
            "cuMemsetD32Async",
            "cuStreamGetCtx",
            "cuStreamIsCapturing",
            "cuThreadExchangeStreamCaptureMode",
        ] {
            let run = works_without(symbol);
            assert_eq!(run.site("absent::increment").counts(), (12, 0, 12, 0));
            says(&run, &format!("it has no `{symbol}`"));
        }
    }

    #[track_caller]
    fn works_without(symbol: &str) -> Run {
        let run = scenario("absent/works", &[symbol]).without(symbol).run();
        assert_eq!((run.fact("found"), run.fact("y")), (0, 12), "{symbol}");
        run
    }

    /// What the runtime has another way for.
    #[test]
    fn the_driver_lacks_what_timing_likes_to_have() {
        for symbol in ["cuCtxGetId", "cuEventElapsedTime", "cuEventElapsedTime_v2"] {
            let run = works_without(symbol);
            assert_eq!(run.site("absent::increment").counts(), (12, 0, 0, 12));
            assert_eq!(run.row("absent::increment").brackets(), (12, 12, 0, 0), "{symbol}");
        }
    }

    /// The two tests above name each function that the runtime calls, but `cuInit`, without which the
    /// simulated driver cannot be loaded.
    #[test]
    fn the_driver_has_everything() {
        let run = scenario("absent/works", &["cuCtxGetId"]).run();
        assert_eq!((run.fact("found"), run.fact("y")), (1, 12));
        assert_eq!(run.report().process.timing, "on");
    }
}
