//! A raw handle is not inferred.

use cudarc::driver::sys::{self, CUstream};
use gpu_time::gpu_timed;

#[gpu_timed(cold)]
fn direct(stream: CUstream) {
    let _ = stream;
}

#[gpu_timed(cold)]
unsafe fn optional(raw: Option<sys::CUstream>) {
    let _ = raw;
}

fn main() {}
