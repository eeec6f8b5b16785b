//! Operations of commands: records, waits, kernels, copies, memsets, frees and host functions.

use std::ffi::c_void;
use std::sync::Arc;

use crate::constants::Constants;
use crate::handle::Handle;
use crate::kernels::Kernel;

/// A host function of the program. It runs after the driver call that reaches it, outside of the
/// model's lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Callback {
    pub function: unsafe extern "C" fn(*mut c_void),
    pub data: u64,
}

/// The operation of a command.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    Record {
        event: Handle,
        record: u64,
    },
    /// A wait. In a graph, `event` is looked up when the graph is launched.
    Wait {
        event: Option<Handle>,
    },
    Kernel {
        name: Arc<str>,
        kernel: Kernel,
    },
    Fill {
        to: u64,
        pattern: [u8; 4],
        width: usize,
        count: u64,
    },
    /// Between two addresses that devices can access.
    Copy {
        to: u64,
        from: u64,
        bytes: u64,
    },
    /// Between the memories of two devices.
    PeerCopy {
        to: u64,
        from: u64,
        bytes: u64,
    },
    /// From the host. The source is copied when the call is made, whatever kind of memory it is, so
    /// that a command which runs late never reads memory that the program has freed.
    Upload {
        to: u64,
        data: Arc<[u8]>,
    },
    /// To the host.
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
    /// Returns the time for which an operation of length `duration` (as CUPTI would report it)
    /// occupies its stream.
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
