//! A stream capture in progress: its mode, its streams and the nodes recorded so far.

use crate::code::{Code, DriverResult};
use crate::handle::Handle;
use crate::object::work::Work;

/// `CUstreamCaptureMode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CaptureMode {
    #[default]
    Global,
    ThreadLocal,
    Relaxed,
}

impl CaptureMode {
    pub fn new(mode: u32) -> DriverResult<Self> {
        match mode {
            0 => Ok(Self::Global),
            1 => Ok(Self::ThreadLocal),
            2 => Ok(Self::Relaxed),
            _ => Err(Code::INVALID_VALUE),
        }
    }
}

/// `CUstreamCaptureStatus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CaptureStatus {
    None = 0,
    Active = 1,
    Invalidated = 2,
}

/// A capture that has begun and not ended.
pub(crate) struct Capture {
    pub id: u64,
    /// The graph under construction. It stays empty until the capture ends.
    pub graph: Handle,
    /// The stream on which the capture began.
    pub origin: Handle,
    pub mode: CaptureMode,
    /// The thread that began the capture.
    pub thread: u32,
    pub invalid: bool,
    pub nodes: Vec<Work>,
    pub branches: Vec<Branch>,
}

/// A stream that is part of a capture.
pub(crate) struct Branch {
    pub stream: Handle,
    /// Number of nodes added by this stream.
    pub position: usize,
    /// Another stream in the capture waits for all of these nodes.
    pub joined: bool,
}
