//! Opens a stream on the GPU, for all examples except `quickstart`, which is self-contained.

use std::error::Error;
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream, sys};

/// Creates the program's only stream, on the first device. The error says why there is no GPU.
pub fn find() -> Result<Arc<CudaStream>, Box<dyn Error>> {
    // SAFETY: only looks for the driver library, without which cudarc would panic.
    if !unsafe { sys::is_culib_present() } {
        return Err("no CUDA driver".into());
    }
    let context = CudaContext::new(0)?;
    let stream = context.new_stream()?;
    // With a single stream, cudarc need not order accesses from several.
    // SAFETY: the examples use their allocations only on this stream.
    unsafe { context.disable_event_tracking() };
    Ok(stream)
}

/// Like [`find`], but prints why there is no GPU, for examples that need one.
#[allow(dead_code)] // some examples run on the CPU instead
pub fn find_or_explain() -> Option<Arc<CudaStream>> {
    find().map_err(|why| println!("no GPU here ({why}): this example needs one")).ok()
}
