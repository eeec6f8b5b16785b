//! The `unsafe` of a raw handle is the program's, so a crate can forbid it.
#![forbid(unsafe_code)]

use cudarc::driver::sys::CUstream;
use gpu_time::gpu_timed;

#[gpu_timed(stream = unsafe { gpu_time::raw_stream(stream) })]
fn given(stream: CUstream) {
    let _ = stream;
}

fn main() {}
