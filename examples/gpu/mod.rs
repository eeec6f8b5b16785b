//! How the examples find a GPU. `quickstart` does it by itself, to be of one piece.

use std::error::Error;
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream, sys};

/// A stream on the first device, the only one; or why there is none.
pub fn find() -> Result<Arc<CudaStream>, Box<dyn Error>> {
    // SAFETY: looks for the driver's library; without it cudarc would panic.
    if !unsafe { sys::is_culib_present() } {
        return Err("no CUDA driver".into());
    }
    let context = CudaContext::new(0)?;
    let stream = context.new_stream()?;
    // One stream is all there is, so cudarc need not order several.
    // SAFETY: the examples use all that they allocate on this stream alone.
    unsafe { context.disable_event_tracking() };
    Ok(stream)
}
