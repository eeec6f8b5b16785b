//! Tests for scripted failures, removed functions, and drivers without a device.
#![allow(unsafe_code)] // calls the driver's C interface

mod support;

use std::ffi::{c_char, c_void};
use std::process::Command;
use std::ptr;

use cudarc::driver::sys;
use gpu_time_sim_driver::SimDriver;
use support::*;

#[test]
fn scripted_call_fails_without_effect() {
    const SCRIPT: &str = "cuEventRecord:2=700;cuEventQuery:2+=719; cuCtxSynchronize:*=999";
    let outcome = child!().sim(|sim| sim.faults(SCRIPT)).run(|| {
        start();
        let (stream, event) = (stream(), event());
        // SAFETY: the simulated driver checks handles.
        let record = || unsafe { sys::cuEventRecord(event, stream) as i32 };
        assert_eq!([record(), record(), record()], [0, 700, 0]);
        assert_eq!([query(event), query(event), query(event)], [600, 719, 719]);
        // SAFETY: the call has no preconditions.
        unsafe {
            fails(999, sys::cuCtxSynchronize());
            fails(999, sys::cuCtxSynchronize());
        }
    });
    assert_eq!(outcome.trace.commands().filter(|command| command.kind == "record").count(), 2);
    assert_eq!(outcome.trace.calls().filter(|call| call.scripted).count(), 5);
}

#[test]
fn fault_counts_span_threads() {
    child!().sim(|sim| sim.faults("cuEventRecord:100=2")).run(|| {
        start();
        let failures: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        start();
                        let (stream, event) = (stream(), event());
                        // SAFETY: the simulated driver checks handles.
                        let record = || unsafe { sys::cuEventRecord(event, stream) as i32 };
                        (0..50).filter(|_| record() == 2).count()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(failures, 1);
    });
}

#[test]
fn removed_function_is_not_found() {
    child!().without(&["cuCtxGetId", "cuEventElapsedTime_v2"]).run(|| {
        start();
        let library = library();
        type Function = unsafe extern "C" fn() -> i32;
        // SAFETY: the functions are looked up but not called.
        let has = |name: &str| unsafe { library.get::<Function>(name).is_ok() };
        assert!(!has("cuCtxGetId") && !has("cuEventElapsedTime_v2"));
        assert!(has("cuCtxGetFlags") && has("cuEventElapsedTime"));
        // The driver's own lookup finds the older version.
        let mut found: *mut c_void = ptr::null_mut();
        let mut lookup = |name: &std::ffi::CStr| {
            // SAFETY: the pointer is valid for a result, and the name ends in NUL.
            unsafe {
                sys::cuGetProcAddress_v2(name.as_ptr(), &mut found, 13_000, 0, ptr::null_mut())
                    as i32
            }
        };
        assert_eq!(lookup(c"cuCtxGetId"), 500);
        assert_eq!(lookup(c"cuEventElapsedTime"), 0);
        // SAFETY: only the address is used.
        let older = unsafe { *library.get::<*mut c_void>(c"cuEventElapsedTime").unwrap() };
        assert_eq!(found, older);
    });
    let dir = tempfile::tempdir().unwrap();
    let error = SimDriver::install_without(dir.path(), &["cuNothing"]).unwrap_err();
    assert!(error.to_string().ends_with(" export `cuNothing`"));
}

#[test]
fn hung_stream_never_progresses() {
    let outcome =
        child!().sim(|sim| sim.faults("stream:hang=2").model("hang_limit_ms=200")).run(|| {
            start();
            let (kernels, good, hung) = (Kernels::load(), stream(), stream());
            let (event, good_event) = (event(), event());
            launch(kernels.empty, hung, &mut []);
            record(event, hung);
            record(good_event, good);
            sync(good);
            assert_eq!((query(good_event), query(event)), (0, 600));
            advance(1 << 40);
            assert_eq!(query(event), 600);
            let started = std::time::Instant::now();
            // SAFETY: the simulated driver checks handles.
            fails(719, unsafe { sys::cuStreamSynchronize(hung) });
            assert!(started.elapsed().as_millis() >= 200);
            // The queue fills up without progress.
            for _ in 0..1_500 {
                record(event, hung);
            }
            assert_eq!(query(event), 600);
        });
    assert_eq!(outcome.trace.notes("hang").count(), 1);
    assert!(outcome.trace.notes("queue_full").count() > 0);
}

#[test]
fn invalid_script_aborts() {
    for (configure, message) in [
        (
            (|sim| sim.faults("cuEventRecord=700")) as fn(SimDriver) -> SimDriver,
            "invalid fault `cuEventRecord=700`: expected `function:n=code` or `stream:hang=n`",
        ),
        (|sim| sim.model("event_us=1"), "unknown constant `event_us`"),
        (
            |sim| sim.model("event_ns=soon"),
            "invalid value `soon` for `event_ns`: expected a whole number",
        ),
    ] {
        let outcome = child!().sim(configure).run_unchecked(|| {
            start();
        });
        assert!(!outcome.status.success());
        assert!(outcome.stderr.contains(message), "{}", outcome.stderr);
    }
}

/// Returns the results of `cuInit` and `cuDeviceGetCount` in a child with this environment.
fn init(test: &str, configure: impl FnOnce(&mut Command)) -> String {
    const CHILD: &str = "SIM_DRIVER_INIT_CHILD";
    if std::env::var_os(CHILD).is_some() {
        let mut count = -1;
        // SAFETY: the pointer is valid for a result.
        let (init, devices) =
            unsafe { (sys::cuInit(0) as i32, sys::cuDeviceGetCount(&mut count) as i32) };
        eprintln!("init {init} devices {devices} {count} end");
        std::process::exit(0);
    }
    let dir = tempfile::tempdir().unwrap();
    let sim = SimDriver::install(dir.path()).unwrap().devices(2);
    let mut command = Command::new(std::env::current_exe().unwrap());
    sim.apply(&mut command).args([test, "--exact", "--nocapture"]).env(CHILD, "1");
    configure(&mut command);
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    stderr[stderr.find("init").unwrap()..stderr.find(" end").unwrap()].to_owned()
}

#[test]
fn driver_without_opt_in_has_no_device() {
    assert_eq!(init(this_test!(), |_| {}), "init 0 devices 0 2");
    let unset = |command: &mut Command| {
        command.env_remove("GPU_TIME_TEST_SIM");
    };
    assert_eq!(init(this_test!(), unset), "init 100 devices 3 -1");
}

#[test]
fn visible_devices_hides_devices() {
    let with = |name: &'static str, value: &'static str| {
        init(this_test!().trim_end_matches("::{{closure}}"), move |command| {
            command.env(name, value);
        })
    };
    assert_eq!(with("GPU_TIME_TEST_SIM_DEVICES", "0"), "init 100 devices 3 -1");
    assert_eq!(with("CUDA_VISIBLE_DEVICES", ""), "init 100 devices 3 -1");
    assert_eq!(with("CUDA_VISIBLE_DEVICES", "1"), "init 0 devices 0 1");
    assert_eq!(with("CUDA_VISIBLE_DEVICES", "1,0,-1"), "init 0 devices 0 2");
}

#[test]
fn error_names() {
    child!().run(|| {
        let mut name: *const c_char = ptr::null();
        // SAFETY: the pointer is valid for a result, which is a static string.
        unsafe {
            ok(sys::cuGetErrorName(sys::CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, &mut name));
            let name = std::ffi::CStr::from_ptr(name);
            assert_eq!(name, c"CUDA_ERROR_STREAM_CAPTURE_IMPLICIT");
        }
    });
}
