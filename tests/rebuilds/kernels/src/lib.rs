//! The part of an application that has a build script.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream, DriverError};

include!(concat!(env!("OUT_DIR"), "/blocks.rs"));

/// Returns the first device's default stream.
pub fn stream() -> Result<Arc<CudaStream>, DriverError> {
    Ok(CudaContext::new(0)?.default_stream())
}
