//! Reports enqueued commands to the observer.

use crate::handle::Handle;
use crate::model::Model;
use crate::object::work::{GraphNode, REGISTERS, Shape, Work};
use crate::observed::{ObservedWork, WorkKind};
use crate::observer;

impl Model {
    /// Reports work that is being enqueued to the observer. Returns the number under which the
    /// observer wants its times, or 0.
    pub fn observe(&self, stream: Handle, work: &Work, graph: Option<GraphNode>) -> u64 {
        let (kind, bytes) = match work {
            Work::Kernel { .. } => (WorkKind::Kernel, 0),
            Work::Fill { width, count, .. } => (WorkKind::Memset, *width as u64 * count),
            Work::Copy { bytes, .. } => (WorkKind::CopyWithin, *bytes),
            Work::PeerCopy { bytes, .. } => (WorkKind::CopyToPeer, *bytes),
            Work::Upload { data, .. } => (WorkKind::CopyToDevice, data.len() as u64),
            Work::Download { bytes, .. } => (WorkKind::CopyToHost, *bytes),
            Work::Record { .. }
            | Work::Wait { .. }
            | Work::Free { .. }
            | Work::Host(_)
            | Work::Nothing => return 0,
        };
        let (name, shape) = match work {
            Work::Kernel { name, shape, .. } => (&**name, *shape),
            _ => ("", Shape::default()),
        };
        let value = match work {
            Work::Fill { pattern, width, .. } => {
                let mut value = [0; 4];
                value[..*width].copy_from_slice(&pattern[..*width]);
                u32::from_ne_bytes(value)
            }
            _ => 0,
        };
        let peers = match work {
            Work::PeerCopy { from, to, .. } => [*from, *to].map(|address| self.owner_of(address)),
            _ => [[0; 2]; 2],
        };
        let own = self.stream(stream);
        observer::enqueued(&ObservedWork {
            kind,
            correlation: self.correlation,
            device: self.device_of(stream),
            context: own.context.id,
            stream: own.id,
            graph: graph.map_or(0, |graph| graph.graph),
            graph_node: graph.map_or(0, |graph| graph.node),
            name: name.as_ptr(),
            name_len: name.len(),
            grid: shape.grid,
            block: shape.block,
            registers: REGISTERS,
            shared_bytes: shape.shared_bytes,
            bytes,
            peers,
            value,
        })
    }

    /// Returns the device and the context id of the memory at `address`.
    fn owner_of(&self, address: u64) -> [u32; 2] {
        let context =
            self.memory.context_of(address).and_then(|context| self.contexts.get(context));
        context.map_or([0; 2], |context| [context.device as u32, context.id as u32])
    }

    /// Returns the ordinal of a stream's device.
    pub fn device_of(&self, stream: Handle) -> u32 {
        let context = self.contexts.get(self.stream(stream).context);
        context.map_or(0, |context| context.device as u32)
    }
}
