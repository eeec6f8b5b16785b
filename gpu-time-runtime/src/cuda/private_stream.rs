//! Streams of our own in each context, for what must not stand in a stream of the application.

use std::ptr;

use cudarc::driver::sys::{self, CUstream, CUstream_flags};

use crate::cuda::result::check;
use crate::gpu::Fault;
use crate::types::handles::Stream;

/// Makes one; the context must be current. It waits for no other, and no other for it. It is
/// kept for as long as its context.
pub(super) fn create() -> Result<Stream, Fault> {
    let mut stream: CUstream = ptr::null_mut();
    let flags = CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
    // SAFETY: writes one handle.
    check(unsafe { sys::cuStreamCreate(&raw mut stream, flags) })?;
    Ok(Stream(stream as usize))
}
