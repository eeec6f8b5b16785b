//! Raw handles, from safe code.
#![forbid(unsafe_code)]

use cudarc::driver::sys::CUstream;
use gpu_time::{Settle, gpu_timed};

#[gpu_timed(stream = 0xdead_beef_usize as *mut u8)]
fn invented() {}

#[gpu_timed(stream = stream)]
fn given(stream: CUstream) {
    let _ = stream;
}

#[gpu_timed(stream = &stream)]
fn borrowed(stream: Option<CUstream>) {
    let _ = stream;
}

fn graph(stream: CUstream) -> Settle {
    Settle::default().graph(stream, 10)
}

fn main() {}
