//! A program whose own driver calls all succeed, while the runtime's driver calls fail.
//!
//! It launches through a function that the runtime does not call. All of its other driver calls are
//! enclosed by two marks in the trace, so that a test can distinguish them from the runtime's.

use std::ffi::{CStr, c_void};
use std::ptr;

use cudarc::driver::sys::{
    self, CUcontext, CUdeviceptr, CUfunction, CUlaunchConfig, CUresult, CUstream,
    CUstreamCaptureMode,
};
use gpu_time::{GpuStream, NULL_STREAM, RawStream, gpu_timed, raw_stream};
use gpu_time_kernels::workloads;

use crate::scenario::Scenario;
use crate::tally::{self, ran};

pub const SCENARIOS: &[Scenario] = &[("faults/program", program)];

/// The number of calls to each function.
const ROUNDS: u32 = 130;
const LEN: usize = 256;

/// Marks the driver calls of `f` as the program's own.
fn own<R>(f: impl FnOnce() -> R) -> R {
    // SAFETY: takes no arguments. Without a current context the call fails but still appears in the
    // trace.
    unsafe { sys::cuProfilerStart() };
    let answer = f();
    // SAFETY: as above.
    unsafe { sys::cuProfilerStop() };
    answer
}

fn ok(result: CUresult) {
    assert_eq!(result, CUresult::CUDA_SUCCESS);
}

/// A stream, as defined by a wrapper crate.
struct Stream(CUstream);

// SAFETY: the program never destroys the stream.
unsafe impl GpuStream for Stream {
    fn stream_handle(&self) -> *mut c_void {
        self.0.cast()
    }
}

/// A kernel that adds one to every element of a vector.
struct Increment {
    context: CUcontext,
    function: CUfunction,
    x: CUdeviceptr,
    y: CUdeviceptr,
    scratch: CUdeviceptr,
}

impl Increment {
    fn new(context: CUcontext) -> Self {
        let (mut module, mut function) = (ptr::null_mut(), ptr::null_mut());
        let (mut x, mut y, mut scratch) = (0, 0, 0);
        let image = format!("{}\0", workloads::PTX);
        let image = CStr::from_bytes_with_nul(image.as_bytes()).unwrap();
        let name = format!("{}\0", workloads::SAXPY);
        let ones = [1.0f32; LEN];
        // SAFETY: every pointer is valid for its result, every text ends in NUL, and every length
        // is correct.
        unsafe {
            ok(sys::cuModuleLoadData(&raw mut module, image.as_ptr().cast()));
            ok(sys::cuModuleGetFunction(&raw mut function, module, name.as_ptr().cast()));
            ok(sys::cuMemAlloc_v2(&raw mut x, LEN * 4));
            ok(sys::cuMemAlloc_v2(&raw mut y, LEN * 4));
            ok(sys::cuMemAlloc_v2(&raw mut scratch, LEN * 4));
            ok(sys::cuMemcpyHtoD_v2(x, ones.as_ptr().cast(), LEN * 4));
            ok(sys::cuMemsetD8_v2(y, 0, LEN * 4));
            ok(sys::cuCtxSynchronize());
        }
        Increment { context, function, x, y, scratch }
    }

    /// Launches in the kernel's own context, then makes the caller's context current again.
    fn launch(&self, stream: CUstream, caller: CUcontext) -> CUresult {
        let (mut len, mut a, mut x, mut y) = (LEN as u32, 1.0f32, self.x, self.y);
        let mut parameters = [
            ptr::from_mut(&mut len).cast(),
            ptr::from_mut(&mut a).cast(),
            ptr::from_mut(&mut x).cast(),
            ptr::from_mut(&mut y).cast(),
        ];
        let config = CUlaunchConfig {
            gridDimX: 1,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: LEN as u32,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: 0,
            hStream: stream,
            attrs: ptr::null_mut(),
            numAttrs: 0,
        };
        own(|| {
            // SAFETY: the arguments match the kernel, and its context is made current.
            unsafe {
                ok(sys::cuCtxSetCurrent(self.context));
                let parameters = parameters.as_mut_ptr();
                let result = sys::cuLaunchKernelEx(
                    &raw const config,
                    self.function,
                    parameters,
                    ptr::null_mut(),
                );
                ok(sys::cuCtxSetCurrent(caller));
                result
            }
        })
    }

    /// Returns the number of launches that have completed.
    fn times(&self) -> u32 {
        let mut y = [0.0f32; LEN];
        // SAFETY: the array has `LEN * 4` bytes.
        unsafe {
            ok(sys::cuCtxSetCurrent(self.context));
            ok(sys::cuCtxSynchronize());
            ok(sys::cuMemcpyDtoH_v2(y.as_mut_ptr().cast(), self.y, LEN * 4));
        }
        assert!(y.iter().all(|&value| value == y[0]));
        y[0] as u32
    }
}

#[gpu_timed(stream = stream, cold, sleep)]
fn launches(
    stream: &Stream,
    work: &Increment,
    caller: CUcontext,
    number: u32,
) -> Result<u32, CUresult> {
    ran!();
    match work.launch(stream.0, caller) {
        CUresult::CUDA_SUCCESS => {}
        error => return Err(error),
    }
    match work.launch(stream.0, caller) {
        CUresult::CUDA_SUCCESS => Ok(number + 1),
        error => Err(error),
    }
}

fn raw(stream: CUstream) -> RawStream {
    // SAFETY: the callers of `body` keep the stream alive.
    unsafe { raw_stream(stream) }
}

#[gpu_timed(stream = raw(stream), scope = "body", cold = "dirty", sleep = "20us")]
fn body(
    stream: CUstream,
    work: &Increment,
    caller: CUcontext,
    number: u32,
) -> Result<u32, CUresult> {
    ran!();
    match work.launch(stream, caller) {
        CUresult::CUDA_SUCCESS => Ok(number + 2),
        error => Err(error),
    }
}

#[gpu_timed(stream = stream, clock = "sync", cold, bytes = number)]
fn barred(
    stream: &Stream,
    work: &Increment,
    caller: CUcontext,
    number: u32,
) -> Result<u32, CUresult> {
    ran!();
    match work.launch(stream.0, caller) {
        CUresult::CUDA_SUCCESS => Ok(number + 4),
        error => Err(error),
    }
}

/// Uses the NULL stream of the current context.
#[gpu_timed(stream = NULL_STREAM, scope = "body")]
fn on_null(memory: CUdeviceptr, number: u32) -> Result<u32, CUresult> {
    ran!();
    // SAFETY: the memory belongs to the current context and has at least 64 bytes.
    match own(|| unsafe { sys::cuMemsetD8Async(memory, 0, 64, ptr::null_mut()) }) {
        CUresult::CUDA_SUCCESS => Ok(number + 3),
        error => Err(error),
    }
}

/// The thread state that a call must leave unchanged. Either way of reading the context may be
/// scripted to fail.
#[derive(Debug)]
struct ThreadState {
    current: Result<CUcontext, CUresult>,
    id: Result<u64, CUresult>,
    mode: Result<CUstreamCaptureMode, CUresult>,
}

impl ThreadState {
    fn read() -> Self {
        let mut current = ptr::null_mut();
        let mut id = 0;
        let mut mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        own(|| {
            // SAFETY: every pointer is valid for a result; the exchanged mode is exchanged back.
            unsafe {
                let current = answer(sys::cuCtxGetCurrent(&raw mut current)).map(|()| current);
                let id = answer(sys::cuCtxGetId(ptr::null_mut(), &raw mut id)).map(|()| id);
                let exchanged = answer(sys::cuThreadExchangeStreamCaptureMode(&raw mut mode));
                let mode = exchanged.map(|()| {
                    let found = mode;
                    ok(sys::cuThreadExchangeStreamCaptureMode(&raw mut mode));
                    found
                });
                ThreadState { current, id, mode }
            }
        })
    }

    fn check(&self, after: &Self) {
        let same_context = is_same(&self.current, &after.current);
        let same_id = is_same(&self.id, &after.id);
        assert_eq!(same_context.or(same_id), Some(true), "{self:?}, then {after:?}");
        assert_ne!(same_context.and(same_id), Some(false), "{self:?}, then {after:?}");
        assert_ne!(is_same(&self.mode, &after.mode), Some(false), "{self:?}, then {after:?}");
    }
}

fn answer(result: CUresult) -> Result<(), CUresult> {
    if result == CUresult::CUDA_SUCCESS { Ok(()) } else { Err(result) }
}

/// Returns `true` if both values are equal, or `None` if either is unknown.
fn is_same<T: PartialEq>(one: &Result<T, CUresult>, two: &Result<T, CUresult>) -> Option<bool> {
    Some(one.as_ref().ok()? == two.as_ref().ok()?)
}

/// Calls `f` with `current` as the current context and asserts that the thread state is unchanged.
fn checked(current: CUcontext, f: impl FnOnce() -> Result<u32, CUresult>, answer: u32) {
    // SAFETY: the context is alive.
    own(|| ok(unsafe { sys::cuCtxSetCurrent(current) }));
    let before = ThreadState::read();
    assert_eq!(f(), Ok(answer));
    before.check(&ThreadState::read());
}

fn program(_: &[String]) {
    // SAFETY: every pointer is valid for a result.
    let (context, other, stream) = own(|| unsafe {
        let (mut context, mut other) = (ptr::null_mut(), ptr::null_mut());
        let mut stream = ptr::null_mut();
        ok(sys::cuInit(0));
        ok(sys::cuDevicePrimaryCtxRetain(&raw mut context, 0));
        ok(sys::cuCtxCreate_v4(&raw mut other, ptr::null_mut(), 0, 0));
        ok(sys::cuCtxSetCurrent(context));
        ok(sys::cuStreamCreate(&raw mut stream, 1));
        (context, other, stream)
    });
    let work = own(|| Increment::new(context));
    let elsewhere = own(|| {
        // SAFETY: the context is alive.
        ok(unsafe { sys::cuCtxSetCurrent(other) });
        Increment::new(other)
    });
    let wrapped = Stream(stream);
    for i in 0..ROUNDS {
        let caller = if i % 2 == 0 { context } else { other };
        checked(caller, || launches(&wrapped, &work, caller, i), i + 1);
        checked(caller, || body(stream, &work, caller, i), i + 2);
        let memory = if i % 2 == 0 { work.scratch } else { elsewhere.scratch };
        checked(caller, || on_null(memory, i), i + 3);
        checked(caller, || barred(&wrapped, &work, caller, i), i + 4);
        if i % 8 == 7 {
            own(|| {
                // SAFETY: the context is alive.
                ok(unsafe { sys::cuCtxSetCurrent(context) });
                // SAFETY: the context is current.
                ok(unsafe { sys::cuCtxSynchronize() });
            });
        }
    }
    tally::fact("launches", own(|| work.times()));
    tally::fact("expected", 4 * ROUNDS);
    assert_eq!(gpu_time::snapshot().inconsistencies(), [""; 0]);
    tally::print();
}
