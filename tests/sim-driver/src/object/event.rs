//! Events and what they currently refer to: nothing, a record on a stream, or a capture node.

use crate::handle::Handle;
use crate::object::context::ContextRef;
use crate::object::queue::Moment;

/// `CU_EVENT_DISABLE_TIMING`.
pub(crate) const DISABLE_TIMING: u32 = 2;
/// All flags accepted by `cuEventCreate`.
pub(crate) const FLAGS: u32 = 7;
/// `CU_EVENT_RECORD_EXTERNAL` and `CU_EVENT_WAIT_EXTERNAL`.
pub(crate) const EXTERNAL: u32 = 1;

pub(crate) struct Event {
    pub context: ContextRef,
    pub timing: bool,
    pub state: EventState,
}

/// An event's most recent record.
#[derive(Clone, Debug)]
pub(crate) enum EventState {
    Unrecorded,
    Recorded {
        at: Moment,
        /// Number of this record, counted from 1 over the process.
        record: u64,
    },
    /// Recorded into a capture: a position in the graph, which never has a time.
    Captured {
        capture: Handle,
        stream: Handle,
        position: usize,
    },
}
