//! Calls on threads with small stacks. The program measures how much stack the calls use.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::{ptr, thread};

use cudarc::driver::{CudaStream, result, sys};
use gpu_time_small_stack::{on_gpu, on_host};

use crate::gpu::Gpu;
use crate::scenario::Scenario;
use crate::tally;

pub const SCENARIOS: &[Scenario] = &[("stack/host", host), ("stack/gpu", gpu)];

/// The size of the threads' stacks.
const STACK: usize = 64 * 1024;
/// The number of bytes below a stack frame that `depth` does not touch, because they may be in use.
const MARGIN: usize = 512;
const PAINT: u8 = 0xa5;

/// Returns the lowest address of the calling thread's stack.
fn lowest() -> *mut u8 {
    let mut attributes = MaybeUninit::uninit();
    let (mut lowest, mut bytes) = (ptr::null_mut(), 0);
    // SAFETY: the first call initialises the attributes.
    unsafe {
        assert_eq!(libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()), 0);
        let known =
            libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut lowest, &raw mut bytes);
        assert_eq!(known, 0);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
    }
    lowest.cast()
}

/// Returns how many bytes of stack `call` needs below this function.
#[inline(never)]
fn depth(call: impl FnOnce()) -> usize {
    let here = 0_u8;
    let here = &raw const here;
    let lowest = lowest();
    let painted = here.addr() - lowest.addr() - MARGIN;
    // SAFETY: that part of the thread's stack is mapped and not in use.
    unsafe { libc::memset(lowest.cast::<c_void>(), PAINT.into(), painted) };
    call();
    // SAFETY: as above; the frames of this function's callees are in the margin.
    let left = (0..painted).take_while(|at| unsafe { lowest.add(*at).read_volatile() } == PAINT);
    painted + MARGIN - left.count()
}

fn on_small_stack(run: impl FnOnce() + Send) {
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, run);
        thread.unwrap().join().unwrap();
    });
}

/// Records the depth of the first call, and the greatest depth of the later calls.
fn note(call: impl Fn(), driver: usize) {
    tally::fact("driver", driver);
    tally::fact("first", depth(&call));
    tally::fact("later", (0..101).map(|_| depth(&call)).max());
}

// `ran!` would add to the call's stack depth.
fn host(_: &[String]) {
    on_small_stack(|| note(on_host, 0));
    tally::count_runs("gpu_time_small_stack::on_host", 102);
    tally::print();
}

/// Makes, directly, the driver calls that a timed call makes.
fn driver_calls(stream: &CudaStream) {
    let raw = stream.cu_stream();
    let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    let (mut context, mut id) = (ptr::null_mut(), 0);
    // SAFETY: the stream is live, and each call writes one value.
    unsafe {
        sys::cuStreamIsCapturing(raw, &raw mut status).result().unwrap();
        sys::cuStreamGetCtx(raw, &raw mut context).result().unwrap();
        sys::cuCtxGetId(context, &raw mut id).result().unwrap();
    }
    let create = || result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT).unwrap();
    let [start, stop] = [create(), create()];
    // SAFETY: the events were just created.
    unsafe {
        result::event::record(start, raw).unwrap();
        result::event::record(stop, raw).unwrap();
        sys::cuEventSynchronize(stop).result().unwrap();
        result::event::elapsed(start, stop).unwrap();
        result::event::destroy(start).unwrap();
        result::event::destroy(stop).unwrap();
    }
}

fn gpu(_: &[String]) {
    let gpu = Gpu::new();
    driver_calls(&gpu.stream);
    on_small_stack(|| {
        gpu.context.bind_to_thread().unwrap();
        let driver = (0..10).map(|_| depth(|| driver_calls(&gpu.stream))).max();
        note(|| on_gpu(&gpu.stream), driver.unwrap());
    });
    gpu.synchronize();
    tally::count_runs("gpu_time_small_stack::on_gpu", 102);
    tally::print();
}
