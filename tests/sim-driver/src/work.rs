//! What commands do when their stream comes to them.

use std::sync::Arc;

use crate::code::{Answer, Code};
use crate::constants::Constants;
use crate::handle::Handle;
use crate::kernels::{self, Kernel};
use crate::memory::Place;
use crate::model::{Callback, Model};

/// What a command does.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    Record {
        event: Handle,
        record: u64,
    },
    /// A wait; in a graph, for whatever the event stands for when the graph is launched.
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
    /// Between two places that devices can touch.
    Copy {
        to: u64,
        from: u64,
        bytes: u64,
    },
    /// From one device's memory to another's.
    PeerCopy {
        to: u64,
        from: u64,
        bytes: u64,
    },
    /// From the host. The source is taken when the call is made, whatever kind of memory it is, so
    /// that a command which runs late never reads what the program has freed.
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
    /// How long it occupies its stream, if it lasts for `duration` as CUPTI would date it.
    pub fn occupies_ns(&self, duration: u64, graph: bool, c: &Constants) -> u64 {
        match self {
            Self::Record { .. } => c.event_ns,
            Self::Wait { .. } | Self::Free { .. } | Self::Host(_) | Self::Nothing => 0,
            _ if graph => duration + c.graph_gap_ns,
            _ => duration + c.gap_ns,
        }
    }

    /// What the trace calls it: the kind, and a name.
    pub fn words(&self) -> (&'static str, &str) {
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

impl Model {
    /// Does the work, in stream order, and answers its length as CUPTI would date it.
    pub fn perform(&mut self, stream: Handle, work: &Work) -> Answer<u64> {
        let context = self.stream(stream).context;
        let device = self.contexts.get(context).ok_or(Code::CONTEXT_IS_DESTROYED)?.device;
        let (l2, memory, c) = (&mut self.devices[device].l2, &self.memory, &self.constants);
        let transfer = |bytes| c.transfer_ns + bytes / c.transfer_bytes_per_ns.max(1);
        Ok(match work {
            Work::Record { .. } | Work::Wait { .. } | Work::Nothing => 0,
            Work::Kernel { kernel, .. } => kernel.run(memory, l2, c)?,
            Work::Fill { to, pattern, width, count } => {
                memory.fill(*to, &pattern[..*width], *count)?;
                let bytes = *count * *width as u64;
                l2.access(&[kernels::write(*to, bytes)]);
                c.memset_ns + bytes / c.memset_bytes_per_ns.max(1)
            }
            Work::Copy { to, from, bytes } => {
                memory.copy(*to, *from, *bytes)?;
                let touches = [kernels::read(*from, *bytes), kernels::write(*to, *bytes)];
                kernels::moving_ns(&touches, l2, c)
            }
            Work::PeerCopy { to, from, bytes } => {
                memory.copy(*to, *from, *bytes)?;
                c.transfer_ns + bytes / c.peer_bytes_per_ns.max(1)
            }
            Work::Upload { to, data } => {
                memory.write(*to, data)?;
                l2.access(&[kernels::write(*to, data.len() as u64)]);
                transfer(data.len() as u64)
            }
            Work::Download { to, from, bytes } => {
                memory.check(*from, *bytes)?;
                // SAFETY: the source was checked; the destination is the program's, which promised
                // to keep it until the stream has been waited for.
                unsafe {
                    std::ptr::copy(*from as *const u8, *to as *mut u8, *bytes as usize);
                }
                l2.access(&[kernels::read(*from, *bytes)]);
                transfer(*bytes)
            }
            Work::Free { address } => {
                self.release(*address, Place::Device)?;
                0
            }
            Work::Host(callback) => {
                self.callbacks.push(*callback);
                0
            }
        })
    }
}
