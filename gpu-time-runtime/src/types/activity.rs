//! Work done by the GPU, as recorded by CUPTI.

use std::num::NonZeroUsize;

/// One kernel, copy or memset.
///
/// `start_ns` or `end_ns` is 0 if CUPTI could not measure that time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Activity<W = &'static GpuWork> {
    /// On CUPTI's clock, which is the host's real-time clock.
    pub start_ns: u64,
    pub end_ns: u64,
    /// Equal to [`EnqueueCall::correlation`] of the call that enqueued the work.
    pub correlation: u32,
    /// The ordinal of the device.
    pub device: u32,
    /// CUPTI's id of the context.
    pub context: u32,
    /// CUPTI's id of the stream.
    pub stream: u32,
    pub work: W,
}

impl Activity {
    /// Returns `true` if CUPTI measured both times.
    pub fn has_times(&self) -> bool {
        self.start_ns != 0 && self.end_ns != 0
    }
}

/// The properties that repeated runs of a kernel, copy or memset share. They are interned: equal
/// work has the same address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GpuWork {
    /// The demangled name of the kernel, or a description such as `[copy HtoD]`. All shapes of a kernel share
    /// the text, so that its address identifies the kernel.
    pub name: &'static str,
    /// Set for a kernel, but not for a copy or memset.
    pub is_kernel: bool,
    // The launch configuration of a kernel. Zeros for other work, and for kernels that share this description.
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub registers: u16,
    /// Static and dynamic shared memory of a block.
    pub shared_bytes: u32,
}

impl GpuWork {
    /// Describes a kernel without a single launch configuration.
    pub const fn shapeless(name: &'static str) -> GpuWork {
        let (grid, block) = ([0; 3], [0; 3]);
        GpuWork { name, is_kernel: true, grid, block, registers: 0, shared_bytes: 0 }
    }

    /// Returns `true` for a kernel with one launch configuration.
    pub fn has_shape(&self) -> bool {
        self.grid != [0; 3]
    }
}

/// A call of the CUDA API that enqueues work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EnqueueCall {
    /// Unique in the process until it wraps around.
    pub correlation: u32,
    /// The current context, a `CUcontext`.
    pub context: usize,
    /// The `CUstream` that the caller passed, if it is cheap to find. 0 is the legacy default
    /// stream, and 2 is the per-thread one.
    pub stream: Option<usize>,
    /// The number of the stream capture that the work goes into, if any. Captured work does not
    /// run.
    pub capture: Option<u64>,
    /// The call replays a graph.
    pub is_graph: bool,
    /// The graph that it replays, unless its launches may differ.
    pub graph: Option<GraphExec>,
    /// The call enqueues a group of activities, such as a graph or a batch of copies. Any number of them share its
    /// correlation id.
    pub is_group: bool,
    /// CUPTI does not record some of the work.
    pub lacks_records: bool,
}

/// An instantiated graph between two changes. All of its launches enqueue the same work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct GraphExec {
    /// A `CUgraphExec`. Another graph may have the handle after this one was destroyed.
    pub handle: NonZeroUsize,
    /// A number that grows with each change.
    pub changes: u32,
}
