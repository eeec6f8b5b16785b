//! Streams with the method names of cudarc's, and with the names of cuda-core's, which the attribute trusts.
//!
//! With `SHAPES_DRIVER` set, an annotated run has a driver's stream behind each of them, so that
//! the brackets are recorded; otherwise the handles are invented. That is for the simulated driver
//! only, which returns an error for a destroyed stream where a real one need not: some shapes drop
//! a stream while it is being timed.

use std::sync::Arc;

#[allow(non_camel_case_types)]
pub enum CUstream_st {}
pub type CUstream = *mut CUstream_st;
#[allow(non_camel_case_types)]
pub enum CUctx_st {}
pub type CUcontext = *mut CUctx_st;

#[cfg(feature = "timed")]
mod driver {
    use std::panic::AssertUnwindSafe;
    use std::sync::{Arc, OnceLock};

    /// Asserted unwind safe because the stream without a driver is.
    pub type Stream = AssertUnwindSafe<Arc<cudarc::driver::CudaStream>>;

    /// Creates a stream on the first device, if this run has a driver.
    pub fn stream() -> Option<Stream> {
        static DEVICE: OnceLock<Option<Arc<cudarc::driver::CudaContext>>> = OnceLock::new();
        let device = DEVICE.get_or_init(|| {
            let wanted = std::env::var_os("SHAPES_DRIVER").is_some();
            wanted.then(|| cudarc::driver::CudaContext::new(0).expect("`SHAPES_DRIVER` is set"))
        });
        device.as_ref().map(|device| AssertUnwindSafe(device.new_stream().expect("a stream")))
    }
}

pub struct Context {
    #[cfg(feature = "timed")]
    stream: Option<driver::Stream>,
}

impl Context {
    pub fn cu_ctx(&self) -> CUcontext {
        #[cfg(feature = "timed")]
        if let Some(stream) = &self.stream {
            return stream.context().cu_ctx().cast();
        }
        0x1000 as CUcontext
    }
}

pub struct Stream {
    number: usize,
    context: Arc<Context>,
}

impl Stream {
    pub fn new(number: usize) -> Self {
        let context = Context {
            #[cfg(feature = "timed")]
            stream: driver::stream(),
        };
        Self { number, context: Arc::new(context) }
    }

    pub fn cu_stream(&self) -> CUstream {
        #[cfg(feature = "timed")]
        if let Some(stream) = &self.context.stream {
            return stream.cu_stream().cast();
        }
        // Not one of the driver's special handles.
        (self.number << 12) as CUstream
    }

    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }
}
