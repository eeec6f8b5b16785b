//! A program that uses CUPTI itself, next to timed calls.

use std::sync::Arc;

use cudarc::driver::CudaStream;
use gpu_time::gpu_timed;

use crate::gpu::{Gpu, LaunchResult, Spin};
use crate::scenario::Scenario;
use crate::tally::{self, ran};

pub const SCENARIOS: &[Scenario] = &[("cupti/version", version)];

#[gpu_timed]
fn timed(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 20_000)
}

/// Records the version of the library with this file name, if it can be loaded.
fn version(arguments: &[String]) {
    type GetVersion = unsafe extern "C" fn(*mut u32) -> u32;
    let gpu = Gpu::new();
    timed(&gpu.stream, &gpu.spin("cupti::timed")).unwrap();
    gpu.synchronize();
    let file = std::ffi::CString::new(arguments[0].as_str()).unwrap();
    let mut version = 0;
    // SAFETY: the name ends in NUL, and the type is that of CUPTI's header.
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
