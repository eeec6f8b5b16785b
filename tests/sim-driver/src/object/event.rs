//! Events and what they currently refer to: nothing, a record on a stream, or a node of a capture.

use crate::handle::Handle;
use crate::object::context::ContextRef;
use crate::object::queue::Moment;

/// `CU_EVENT_DISABLE_TIMING`.
pub(crate) const DISABLE_TIMING: u32 = 2;
/// All flags that `cuEventCreate` accepts.
pub(crate) const FLAGS: u32 = 7;
/// `CU_EVENT_RECORD_EXTERNAL` and `CU_EVENT_WAIT_EXTERNAL`.
pub(crate) const EXTERNAL: u32 = 1;

pub(crate) struct Event {
    pub context: ContextRef,
    pub timing: bool,
    pub state: EventState,
}

/// The most recent record of an event.
#[derive(Clone, Debug)]
pub(crate) enum EventState {
    Unrecorded,
    Recorded {
        at: Moment,
        /// Number of this record, counted from 1 over the process.
        record: u64,
    },
    /// Recorded into a capture: a position in the graph, which never gets a time.
    Captured {
        capture: Handle,
        stream: Handle,
        position: usize,
    },
}
