//! Command operations: records, waits, kernels, copies, memsets, frees and host functions.

use std::ffi::c_void;
use std::sync::Arc;

use crate::constants::Constants;
use crate::handle::Handle;
use crate::kernels::Kernel;

/// A host function provided by the program. It runs after the driver call that reaches it, outside
/// the model's lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Callback {
    pub function: unsafe extern "C" fn(*mut c_void),
    pub data: u64,
}

/// Registers per thread, the same for every kernel.
pub(crate) const REGISTERS: u16 = 32;

/// A node of an executable graph.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GraphNode {
    pub graph: u32,
    pub node: u64,
}

/// The launch configuration of a kernel.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shape {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// Dynamic shared memory per block.
    pub shared_bytes: u32,
}

/// A command's operation.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    Record {
        event: Handle,
        record: u64,
    },
    /// A wait. In a graph, `event` is looked up at launch.
    Wait {
        event: Option<Handle>,
    },
    Kernel {
        name: Arc<str>,
        kernel: Kernel,
        shape: Shape,
    },
    Fill {
        to: u64,
        pattern: [u8; 4],
        width: usize,
        count: u64,
    },
    /// A copy between two addresses that devices can access.
    Copy {
        to: u64,
        from: u64,
        bytes: u64,
    },
    /// A copy between the memories of two devices.
    PeerCopy {
        to: u64,
        from: u64,
        bytes: u64,
    },
    /// A copy from the host. The source is read during the call, whatever kind of memory it is, so
    /// that a command that runs late never reads memory that the program has freed.
    Upload {
        to: u64,
        data: Arc<[u8]>,
    },
    /// A copy to the host.
    Download {
        to: u64,
        from: u64,
        bytes: u64,
    },
    Free {
        address: u64,
    },
    Host(Callback),
    Nothing,
}

impl Work {
    /// Returns how long an operation of length `duration` (as CUPTI would report it) occupies its
    /// stream.
    pub fn occupies_ns(&self, duration: u64, graph: bool, c: &Constants) -> u64 {
        match self {
            Self::Record { .. } => c.event_ns,
            Self::Wait { .. } | Self::Free { .. } | Self::Host(_) | Self::Nothing => 0,
            _ if graph => duration + c.graph_gap_ns,
            _ => duration + c.gap_ns,
        }
    }

    /// Returns the kind and the name for the trace.
    pub fn trace_label(&self) -> (&'static str, &str) {
        match self {
            Self::Record { .. } => ("record", ""),
            Self::Wait { .. } => ("wait", ""),
            Self::Kernel { name, .. } => ("kernel", name),
            Self::Fill { .. } => ("memset", ""),
            Self::Copy { .. } => ("copy", "device"),
            Self::PeerCopy { .. } => ("copy", "peer"),
            Self::Upload { .. } => ("copy", "to device"),
            Self::Download { .. } => ("copy", "to host"),
            Self::Free { .. } => ("free", ""),
            Self::Host(_) => ("host", ""),
            Self::Nothing => ("nothing", ""),
        }
    }
}
