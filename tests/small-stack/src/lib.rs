//! Annotated functions for the scenarios on small stacks. They have a package of their own so that they are
//! optimised in every profile.

use std::sync::Arc;

use cudarc::driver::CudaStream;
use gpu_time::gpu_timed;

/// A call that the host clock times.
#[inline(never)]
#[gpu_timed(clock = "host")]
pub fn on_host() {}

/// A call that events time.
#[inline(never)]
#[gpu_timed(scope = "body")]
pub fn on_gpu(stream: &Arc<CudaStream>) {
    let _ = stream;
}
