//! Programs in situations that are difficult for CUPTI: forks, destroyed contexts, other tools.

use std::sync::Arc;

use cudarc::driver::CudaStream;
use gpu_time::gpu_timed;

use crate::child;
use crate::gpu::{self, Gpu, LaunchResult, Spin};
use crate::scenario::Scenario;
use crate::tally::{self, ran};

pub const SCENARIOS: &[Scenario] = &[
    ("cupti/version", version),
    ("cupti/forked", forked),
    ("cupti/context_gone", context_gone),
    ("cupti/retried", retried),
];

#[gpu_timed]
fn timed(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 20_000)
}

/// Launches on a stream that the macro does not know, so that CUPTI records the kernels.
#[gpu_timed]
fn recorded(work: &Work) -> LaunchResult {
    ran!();
    work.spin.launch(&work.stream, 20_000)
}

#[gpu_timed]
fn nothing() {
    ran!();
}

struct Work {
    stream: Arc<CudaStream>,
    spin: Spin,
}

impl Work {
    fn new(gpu: &Gpu) -> Work {
        Work { stream: gpu.stream.clone(), spin: gpu.spin("cupti::recorded") }
    }

    fn call(&self, times: usize) {
        (0..times).for_each(|_| recorded(self).unwrap());
    }
}

/// Forks while records are outstanding. The child calls a timed function, but does not use the GPU.
fn forked(_: &[String]) {
    let gpu = Gpu::new();
    let work = Work::new(&gpu);
    work.call(5);
    let child = child::fork(|| (0..5).for_each(|_| nothing()));
    child::assert_exits(child, 0);
    work.call(5);
    gpu.synchronize();
    tally::print();
}

/// Destroys the context while records are outstanding, and continues in a new context.
fn context_gone(_: &[String]) {
    let gpu = Gpu::new();
    Work::new(&gpu).call(5);
    gpu::reset_primary_context();
    std::mem::forget(gpu);
    let gpu = Gpu::new();
    Work::new(&gpu).call(5);
    gpu.synchronize();
    tally::print();
}

/// Makes calls before and after a report.
fn retried(_: &[String]) {
    let gpu = Gpu::new();
    let work = Work::new(&gpu);
    work.call(5);
    gpu.synchronize();
    gpu_time::report();
    work.call(7);
    gpu.synchronize();
    tally::print();
}

/// Records the version of the library with this file name, if it can be loaded.
fn version(arguments: &[String]) {
    type GetVersion = unsafe extern "C" fn(*mut u32) -> u32;
    let gpu = Gpu::new();
    timed(&gpu.stream, &gpu.spin("cupti::timed")).unwrap();
    gpu.synchronize();
    let file = std::ffi::CString::new(arguments[0].as_str()).unwrap();
    let mut version = 0;
    // SAFETY: the name ends in NUL, and the type matches CUPTI's header.
    unsafe {
        let library = libc::dlopen(file.as_ptr(), libc::RTLD_NOW);
        if !library.is_null() {
            let function = libc::dlsym(library, c"cuptiGetVersion".as_ptr());
            let function = std::mem::transmute::<*mut libc::c_void, GetVersion>(function);
            assert_eq!(function(&mut version), 0);
        }
    }
    tally::fact("version", version);
    tally::print();
}
