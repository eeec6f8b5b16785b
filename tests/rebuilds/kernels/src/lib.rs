//! The part of an application that a build script prepares.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream, DriverError};

include!(concat!(env!("OUT_DIR"), "/blocks.rs"));

/// Returns a stream of the first device.
pub fn stream() -> Result<Arc<CudaStream>, DriverError> {
    Ok(CudaContext::new(0)?.default_stream())
}
