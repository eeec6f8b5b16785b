//! Machines on which no GPU work can be timed.

use std::ffi::CString;
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream, sys};
use gpu_time::{RawStream, gpu_timed, raw_stream};

use crate::gpu::{Gpu, Increment, LaunchResult};
use crate::scenario::Scenario;
use crate::tally::{self, ran};

pub const SCENARIOS: &[Scenario] =
    &[("absent/fallback", fallback), ("absent/handle", handle), ("absent/symbols", symbols)];

/// A function with a fallback for machines without a GPU.
#[gpu_timed]
fn on_gpu_or_cpu(stream: Option<&Arc<CudaStream>>, y: &mut [f32]) {
    ran!();
    if stream.is_none() {
        y.iter_mut().for_each(|y| *y += 1.0);
    }
}

/// Runs on the GPU if there is one. `y` counts the calls either way.
fn fallback(_: &[String]) {
    // SAFETY: only checks whether the library can be loaded; cudarc would panic without it.
    let has_driver = unsafe { sys::is_culib_present() };
    tally::fact("driver", has_driver);
    let stream = if has_driver {
        CudaContext::new(0).map(|context| context.default_stream()).ok()
    } else {
        None
    };
    tally::fact("gpu", stream.is_some());
    let mut y = vec![0.0; 16];
    for _ in 0..12 {
        on_gpu_or_cpu(stream.as_ref(), &mut y);
    }
    tally::fact("y", y[0]);
    tally::print();
}

fn raw(stream: sys::CUstream) -> RawStream {
    // SAFETY: `stream` is not a valid driver handle. This is sound only because the driver is
    // unusable, so nothing dereferences the handle.
    unsafe { raw_stream(stream) }
}

#[gpu_timed(stream = raw(stream), cold, sleep, warmup = 3)]
fn with_handle(stream: sys::CUstream, number: u32) -> u32 {
    ran!();
    number + 1
}

/// Runs a program that received its stream from elsewhere and makes no driver calls itself.
fn handle(_: &[String]) {
    let number = (0..12).fold(0, |number, _| with_handle(0x40 as sys::CUstream, number));
    tally::fact("number", number);
    tally::print();
}

#[gpu_timed(cold, sleep)]
fn increment(stream: &Arc<CudaStream>, increment: &mut Increment) -> LaunchResult {
    ran!();
    increment.launch(stream)
}

/// Runs a program that does not need the functions named in `arguments`. For each of them, records
/// whether the driver exports it.
fn symbols(arguments: &[String]) {
    let gpu = Gpu::new();
    let mut vector = gpu.increment("absent::increment");
    for _ in 0..12 {
        increment(&gpu.stream, &mut vector).unwrap();
    }
    tally::fact("y", vector.times(&gpu.stream));
    for name in arguments {
        tally::fact("is_exported", is_exported(name));
    }
    tally::print();
}

/// Returns `true` if the loaded driver exports `name`.
fn is_exported(name: &str) -> bool {
    let name = CString::new(name.as_bytes()).unwrap();
    // SAFETY: both names end in NUL; the driver is loaded already and is never unloaded.
    unsafe {
        let library = libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW);
        assert!(!library.is_null());
        !libc::dlsym(library, name.as_ptr()).is_null()
    }
}
