//! Streams that can be launched on. A launch logs itself and enqueues nothing.

#![allow(clippy::all, clippy::pedantic, clippy::nursery)] // the two variants differ here

use crate::log::log;
pub use cuda_core::CUstream;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

pub struct CudaStream {
    number: usize,
    stream: cuda_core::Stream,
}

impl Deref for CudaStream {
    type Target = cuda_core::Stream;

    fn deref(&self) -> &cuda_core::Stream {
        &self.stream
    }
}

impl fmt::Debug for CudaStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stream {}", self.number)
    }
}

impl CudaStream {
    pub fn new(number: usize) -> Self {
        Self { number, stream: cuda_core::Stream::new(number) }
    }

    pub fn shared(number: usize) -> Arc<Self> {
        Arc::new(Self::new(number))
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
