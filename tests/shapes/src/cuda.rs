//! Streams with the method names of cudarc's. A launch logs itself and enqueues nothing.
//!
//! With `SHAPES_DRIVER` set, an annotated run has a driver's stream behind each of them, so that
//! the brackets are recorded; otherwise the handles are invented. That is for the simulated driver
//! only, which returns an error for a destroyed stream where a real one need not: some shapes drop
//! a stream while it is being timed.

#![allow(clippy::all, clippy::pedantic, clippy::nursery)] // the two variants differ here

use crate::log::log;
use std::fmt;
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

pub struct CudaContext {
    #[cfg(feature = "timed")]
    stream: Option<driver::Stream>,
}

impl CudaContext {
    pub fn cu_ctx(&self) -> CUcontext {
        #[cfg(feature = "timed")]
        if let Some(stream) = &self.stream {
            return stream.context().cu_ctx().cast();
        }
        0x1000 as CUcontext
    }
}

pub struct CudaStream {
    number: usize,
    context: Arc<CudaContext>,
}

impl fmt::Debug for CudaStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stream {}", self.number)
    }
}

impl CudaStream {
    pub fn new(number: usize) -> Self {
        let context = CudaContext {
            #[cfg(feature = "timed")]
            stream: driver::stream(),
        };
        Self { number, context: Arc::new(context) }
    }

    pub fn shared(number: usize) -> Arc<Self> {
        Arc::new(Self::new(number))
    }

    pub fn cu_stream(&self) -> CUstream {
        #[cfg(feature = "timed")]
        if let Some(stream) = &self.context.stream {
            return stream.cu_stream().cast();
        }
        // Not one of the driver's special handles.
        (self.number << 12) as CUstream
    }

    pub fn context(&self) -> &Arc<CudaContext> {
        &self.context
    }

    pub fn launch_builder<'a>(&'a self, function: &'a str) -> Builder<'a> {
        Builder { stream: self, function, args: Vec::new() }
    }
}

#[derive(Debug)]
pub struct Builder<'a> {
    pub(crate) stream: &'a CudaStream,
    pub(crate) function: &'a str,
    pub(crate) args: Vec<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Refused(pub u32);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "refused {}", self.0)
    }
}

impl std::error::Error for Refused {}

impl Builder<'_> {
    pub fn arg(&mut self, arg: &u32) -> &mut Self {
        self.args.push(*arg);
        self
    }

    /// Refuses a grid of 13.
    pub(crate) fn enqueue(&self, grid: u32) -> Result<(), Refused> {
        log!("launch {} {:?} grid {} on {:?}", self.function, self.args, grid, self.stream);
        if grid == 13 { Err(Refused(grid)) } else { Ok(()) }
    }
}
