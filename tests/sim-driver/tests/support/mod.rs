//! Test support: child processes with the simulated driver, and short wrappers for driver calls.
#![allow(dead_code)] // each test file uses a part of this module

use std::ffi::{CString, c_void};
use std::process::{Command, ExitStatus, Stdio};
use std::ptr;

use cudarc::driver::sys::{
    self, CUcontext, CUevent, CUfunction, CUgraph, CUgraphExec, CUmodule, CUresult, CUstream,
    CUstreamCaptureMode,
};
use gpu_time_sim_driver::SimDriver;
use gpu_time_sim_driver::trace::Trace;

/// Set in the child process.
const CHILD: &str = "SIM_DRIVER_TEST_CHILD";
/// The child's first output. Without it, a misspelled test name would run no test and pass.
const BEGAN: &str = "child began";

/// Returns the name of the test function that contains the call, as used by the test harness.
macro_rules! this_test {
    () => {{
        fn here() {}
        let name = std::any::type_name_of_val(&here);
        let name = name.strip_suffix("::here").unwrap();
        name.split_once("::").unwrap().1
    }};
}
pub(crate) use this_test;

/// The result of a child process.
pub struct Outcome {
    pub status: ExitStatus,
    pub stderr: String,
    pub trace: Trace,
}

/// Creates the [`Child`] for the test function that contains the call.
macro_rules! child {
    () => {
        $crate::support::Child::new($crate::support::this_test!())
    };
}
pub(crate) use child;

/// Runs a test's body in a child process with a simulated driver.
pub struct Child {
    test: &'static str,
    absent: &'static [&'static str],
    configure: fn(SimDriver) -> SimDriver,
}

impl Child {
    pub fn new(test: &'static str) -> Self {
        Self { test, absent: &[], configure: |sim| sim }
    }

    /// Removes functions from the driver.
    pub fn without(self, absent: &'static [&'static str]) -> Self {
        Self { absent, ..self }
    }

    /// Configures the driver.
    pub fn sim(self, configure: fn(SimDriver) -> SimDriver) -> Self {
        Self { configure, ..self }
    }

    /// Runs `body` in a child process. Panics unless the child succeeds.
    #[track_caller]
    pub fn run(self, body: impl FnOnce()) -> Outcome {
        let outcome = self.run_unchecked(body);
        assert!(outcome.status.success(), "{}\n{}", outcome.status, outcome.stderr);
        outcome
    }

    /// Runs `body` in a child process, which may fail.
    #[track_caller]
    pub fn run_unchecked(self, body: impl FnOnce()) -> Outcome {
        let Self { test, absent, configure } = self;
        if std::env::var_os(CHILD).is_some() {
            eprintln!("{BEGAN}");
            body();
            std::process::exit(0);
        }
        let dir = tempfile::tempdir().unwrap();
        let sim = configure(SimDriver::install_without(dir.path(), absent).unwrap().traced());
        let output = sim
            .apply(&mut Command::new(std::env::current_exe().unwrap()))
            .args([test, "--exact", "--nocapture"])
            .env(CHILD, "1")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(stderr.contains(BEGAN), "`{test}` did not run: {stderr}");
        Outcome { status: output.status, stderr, trace: sim.trace().unwrap() }
    }
}

/// Opens the driver library that the child has loaded.
pub fn library() -> libloading::Library {
    // SAFETY: loading the library does not run any code.
    unsafe { libloading::Library::new("libcuda.so.1").unwrap() }
}

/// Returns the virtual host time.
pub fn now() -> u64 {
    let library = library();
    // SAFETY: the type matches the exported function.
    unsafe { library.get::<unsafe extern "C" fn() -> u64>(c"gpu_time_sim_now").unwrap()() }
}

/// Advances the virtual time.
pub fn advance(ns: u64) {
    let library = library();
    // SAFETY: the type matches the exported function.
    unsafe { library.get::<unsafe extern "C" fn(u64)>(c"gpu_time_sim_advance").unwrap()(ns) }
}

/// Panics unless the call succeeded.
#[track_caller]
pub fn ok(result: CUresult) {
    assert_eq!(result as i32, 0);
}

/// Panics unless the call failed with `code`.
#[track_caller]
pub fn fails(code: i32, result: CUresult) {
    assert_eq!(result as i32, code);
}

/// Initialises the driver and makes the primary context of the first device current.
pub fn start() -> CUcontext {
    let mut context = ptr::null_mut();
    // SAFETY: each pointer is valid for one result.
    unsafe {
        ok(sys::cuInit(0));
        ok(sys::cuDevicePrimaryCtxRetain(&mut context, 0));
        ok(sys::cuCtxSetCurrent(context));
    }
    context
}

/// Creates a non-blocking stream.
pub fn stream() -> CUstream {
    stream_with(1)
}

/// Creates a stream with these flags: 0 for a blocking stream, 1 for a non-blocking one.
pub fn stream_with(flags: u32) -> CUstream {
    let mut stream = ptr::null_mut();
    // SAFETY: the pointer is valid for a result.
    ok(unsafe { sys::cuStreamCreate(&mut stream, flags) });
    stream
}

pub fn event() -> CUevent {
    event_with(0)
}

pub fn event_with(flags: u32) -> CUevent {
    let mut event = ptr::null_mut();
    // SAFETY: the pointer is valid for a result.
    ok(unsafe { sys::cuEventCreate(&mut event, flags) });
    event
}

pub fn record(event: CUevent, stream: CUstream) {
    // SAFETY: the simulated driver checks handles.
    ok(unsafe { sys::cuEventRecord(event, stream) });
}

pub fn query(event: CUevent) -> i32 {
    // SAFETY: the simulated driver checks handles.
    unsafe { sys::cuEventQuery(event) as i32 }
}

pub fn sync(stream: CUstream) {
    // SAFETY: the simulated driver checks handles.
    ok(unsafe { sys::cuStreamSynchronize(stream) });
}

/// Returns the elapsed time in nanoseconds, or the error code.
pub fn elapsed(start: CUevent, stop: CUevent) -> Result<u64, i32> {
    let mut ms = 0.0;
    // SAFETY: the pointer is valid for a result, and the simulated driver checks handles.
    match unsafe { sys::cuEventElapsedTime_v2(&mut ms, start, stop) } as i32 {
        0 => Ok((f64::from(ms) * 1e6).round() as u64),
        code => Err(code),
    }
}

/// Records a new event pair around `work`, waits for the stream, and returns the elapsed time.
#[track_caller]
pub fn measure(stream: CUstream, work: impl FnOnce()) -> u64 {
    let (start, stop) = (event(), event());
    record(start, stream);
    work();
    record(stop, stream);
    sync(stream);
    elapsed(start, stop).unwrap()
}

pub fn begin_capture(stream: CUstream, mode: CUstreamCaptureMode) {
    // SAFETY: the simulated driver checks handles.
    ok(unsafe { sys::cuStreamBeginCapture_v2(stream, mode) });
}

pub fn end_capture(stream: CUstream) -> Result<CUgraph, i32> {
    let mut graph = ptr::null_mut();
    // SAFETY: the pointer is valid for a result.
    match unsafe { sys::cuStreamEndCapture(stream, &mut graph) } as i32 {
        0 => Ok(graph),
        code => Err(code),
    }
}

pub fn instantiate(graph: CUgraph) -> CUgraphExec {
    let mut exec = ptr::null_mut();
    // SAFETY: the pointer is valid for a result.
    ok(unsafe { sys::cuGraphInstantiateWithFlags(&mut exec, graph, 0) });
    exec
}

/// Returns PTX text with these kernels, each given by its name and parameter types.
pub fn ptx(kernels: &[(&str, &[&str])]) -> String {
    let mut text = String::from(".version 8.0\n.target sm_70\n.address_size 64\n");
    for (name, types) in kernels {
        let parameters: Vec<String> = types
            .iter()
            .enumerate()
            .map(|(i, ty)| format!("\t.param .{ty} {name}_param_{i}"))
            .collect();
        text +=
            &format!(".visible .entry {name}(\n{}\n)\n{{\n\tret;\n}}\n", parameters.join(",\n"));
    }
    text
}

pub fn load(ptx: &str) -> CUmodule {
    let text = CString::new(ptx).unwrap();
    let mut module = ptr::null_mut();
    // SAFETY: the text ends in NUL.
    ok(unsafe { sys::cuModuleLoadData(&mut module, text.as_ptr().cast()) });
    module
}

pub fn function(module: CUmodule, name: &str) -> CUfunction {
    let name = CString::new(name).unwrap();
    let mut function = ptr::null_mut();
    // SAFETY: the name ends in NUL.
    ok(unsafe { sys::cuModuleGetFunction(&mut function, module, name.as_ptr()) });
    function
}

/// Kernels that the model implements, and one that it does not.
pub struct Kernels {
    pub empty: CUfunction,
    pub spin_ns: CUfunction,
    pub saxpy: CUfunction,
    pub copy_f4: CUfunction,
    pub flush: CUfunction,
    pub hold: CUfunction,
    /// A kernel that the model does not implement.
    pub unknown: CUfunction,
}

impl Kernels {
    pub fn load() -> Self {
        let module = load(&ptx(&[
            ("empty", &[]),
            ("spin_ns", &["u64"]),
            ("saxpy", &["u32", "f32", "u64", "u64"]),
            ("copy_f4", &["u64", "u64", "u64"]),
            ("gpu_time_flush_read", &["u64", "u64", "u64"]),
            ("gpu_time_hold", &["u64", "u64", "u64", "u64", "u64"]),
            ("unknown", &["u64", "f64"]),
        ]));
        let get = |name| function(module, name);
        Self {
            empty: get("empty"),
            spin_ns: get("spin_ns"),
            saxpy: get("saxpy"),
            copy_f4: get("copy_f4"),
            flush: get("gpu_time_flush_read"),
            hold: get("gpu_time_hold"),
            unknown: get("unknown"),
        }
    }

    pub fn spin(&self, stream: CUstream, ns: u64) {
        launch(self.spin_ns, stream, &mut [arg(&ns)]);
    }

    /// Keeps the stream busy for 1 ms.
    pub fn busy(&self, stream: CUstream) {
        self.spin(stream, 1_000_000);
    }

    pub fn copy(&self, stream: CUstream, from: u64, to: u64, n16: u64) {
        launch(self.copy_f4, stream, &mut [arg(&from), arg(&to), arg(&n16)]);
    }

    pub fn flush(&self, stream: CUstream, buffer: u64, n16: u64, sink: u64) {
        launch(self.flush, stream, &mut [arg(&buffer), arg(&n16), arg(&sink)]);
    }

    /// Holds the stream until `words[0] >= ticket`, or until `max_ns` have passed. In the latter
    /// case, sets `words[1]` to the ticket.
    pub fn hold(&self, stream: CUstream, words: u64, ticket: u64, max_ns: u64) {
        let (expired, cycles) = (words + 8, u64::MAX);
        launch(
            self.hold,
            stream,
            &mut [arg(&words), arg(&ticket), arg(&max_ns), arg(&cycles), arg(&expired)],
        );
    }
}

pub fn arg<T>(value: &T) -> *mut c_void {
    ptr::from_ref(value).cast_mut().cast()
}

pub fn try_launch(function: CUfunction, stream: CUstream, args: &mut [*mut c_void]) -> CUresult {
    // SAFETY: the caller passes the kernel's arguments.
    unsafe {
        sys::cuLaunchKernel(
            function,
            1,
            1,
            1,
            32,
            1,
            1,
            0,
            stream,
            args.as_mut_ptr(),
            ptr::null_mut(),
        )
    }
}

#[track_caller]
pub fn launch(function: CUfunction, stream: CUstream, args: &mut [*mut c_void]) {
    ok(try_launch(function, stream, args));
}

pub fn device_memory(bytes: usize) -> u64 {
    let mut address = 0;
    // SAFETY: the pointer is valid for a result.
    ok(unsafe { sys::cuMemAlloc_v2(&mut address, bytes) });
    address
}

/// Allocates eight words of page-locked memory: the released ticket, the expired ticket, and six
/// spare words.
pub fn words() -> u64 {
    let mut address = ptr::null_mut();
    // SAFETY: the pointer is valid for a result.
    ok(unsafe { sys::cuMemHostAlloc(&mut address, 64, 2) });
    address as u64
}

pub fn set_word(address: u64, value: u64) {
    // SAFETY: the address was returned by `words`.
    unsafe {
        (*(address as *const std::sync::atomic::AtomicU64))
            .store(value, std::sync::atomic::Ordering::Release)
    }
}

pub fn word(address: u64) -> u64 {
    // SAFETY: the address was returned by `words`.
    unsafe {
        (*(address as *const std::sync::atomic::AtomicU64))
            .load(std::sync::atomic::Ordering::Acquire)
    }
}
