//! Tests on machines where no GPU work can be timed: the program behaves as if it were not
//! annotated, and the report gives the reason.

use crate::harness::{Run, Scenario, scenario};

/// Asserts that all twelve calls ran on the CPU.
#[track_caller]
fn assert_on_cpu(scenario: Scenario, why: &str) -> Run {
    let run = scenario.run();
    assert_eq!((run.fact("gpu"), run.fact("y")), (0, 12));
    let row = run.row("absent::on_gpu_or_cpu");
    assert_eq!((row.device.as_str(), row.clock.as_str()), ("host", "host"));
    assert_eq!(row.brackets(), (12, 12, 0, 0));
    assert_reason(&run, why);
    run
}

/// Asserts that both reports give the reason why there are no GPU times.
#[track_caller]
fn assert_reason(run: &Run, why: &str) {
    let off = &run.report().process.off;
    assert!(off.as_ref().is_some_and(|off| off.contains(why)), "{off:?}");
    assert!(run.stderr.contains(why), "{}", run.stderr);
}

#[test]
fn all_gpus_hidden() {
    let scenario = scenario("absent/fallback", &[]).env("CUDA_VISIBLE_DEVICES", "");
    let run = assert_on_cpu(scenario, "`CUDA_VISIBLE_DEVICES` hides every GPU");
    assert_eq!(run.fact("driver"), 1);
}

mod simulated {
    use super::*;

    #[test]
    fn no_driver() {
        let run =
            assert_on_cpu(scenario("absent/fallback", &[]).without_driver(), "no CUDA driver");
        assert_eq!(run.fact("driver"), 0, "this machine has a driver");
        let run = scenario("absent/handle", &[]).without_driver().run();
        assert_skipped(&run, "no CUDA driver library");
    }

    #[test]
    fn no_driver_and_no_call() {
        let run = scenario("exit/never_called", &[]).without_driver().calls_nothing().run();
        let why = " was called, and the CUDA driver (libcuda) was not loaded\n";
        assert!(run.stderr.contains(why), "{}", run.stderr);
    }

    #[test]
    fn no_gpu() {
        let scenario = scenario("absent/fallback", &[]).simulated(|sim| sim.devices(0));
        assert_on_cpu(scenario, "no call came with a stream on a GPU");
    }

    /// Asserts that the calls were skipped without a driver call on the program's stream.
    #[track_caller]
    fn assert_skipped(run: &Run, why: &str) {
        assert_eq!(run.fact("number"), 12);
        let site = run.site("absent::with_handle");
        assert_eq!(site.counts(), (12, 0, 12, 0));
        assert!(site.series.is_empty() && run.report().devices.is_empty());
        assert_eq!(run.trace.calls().count(), 0);
        assert_reason(run, why);
    }

    /// Functions that both the runtime and cudarc require. A program that uses cudarc could not run
    /// at all without them.
    #[test]
    fn driver_without_function_needed_by_cudarc() {
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
            "cuStreamSynchronize",
        ] {
            let run = scenario("absent/handle", &[]).without(symbol).run();
            assert_skipped(&run, &format!("it has no `{symbol}`"));
        }
    }

    /// Functions required by the runtime but not by the program.
    #[test]
    fn driver_without_required_function() {
        for symbol in [
            "cuCtxGetDevice",
            "cuCtxPopCurrent_v2",
            "cuCtxPushCurrent_v2",
            "cuDeviceGetCount",
            "cuDeviceGetName",
            "cuDeviceGetPCIBusId",
            "cuDevicePrimaryCtxGetState",
            "cuDriverGetVersion",
            "cuEventCreate",
            "cuEventDestroy_v2",
            "cuEventRecord",
            "cuMemAlloc_v2",
            "cuMemHostGetDevicePointer_v2",
            "cuMemHostRegister_v2",
            "cuMemHostUnregister",
            "cuMemsetD32Async",
            "cuStreamGetCtx",
            "cuStreamIsCapturing",
            "cuStreamQuery",
            "cuThreadExchangeStreamCaptureMode",
        ] {
            let run = run_without(symbol);
            assert_eq!(run.site("absent::increment").counts(), (12, 0, 12, 0));
            assert_reason(&run, &format!("it has no `{symbol}`"));
        }
    }

    #[track_caller]
    fn run_without(symbol: &str) -> Run {
        let run = scenario("absent/symbols", &[symbol]).without(symbol).run();
        assert_eq!((run.fact("is_exported"), run.fact("y")), (0, 12), "{symbol}");
        run
    }

    /// Functions for which the runtime has a fallback.
    #[test]
    fn driver_without_optional_function() {
        for symbol in
            ["cuCtxGetId", "cuDeviceGetUuid_v2", "cuEventElapsedTime", "cuEventElapsedTime_v2"]
        {
            let run = run_without(symbol);
            assert_eq!(run.site("absent::increment").counts(), (12, 0, 0, 12));
            assert_eq!(run.row("absent::increment").brackets(), (12, 12, 0, 0), "{symbol}");
        }
    }

    /// The positive control. The tests above remove most of the functions that the runtime needs,
    /// but not `cuInit`, without which the simulated driver cannot be loaded.
    #[test]
    fn complete_driver() {
        let run = scenario("absent/symbols", &["cuCtxGetId"]).run();
        assert_eq!((run.fact("is_exported"), run.fact("y")), (1, 12));
        assert_eq!(run.report().process.off, None);
    }
}
