//! Streams: their flags, queue, capture and access policy window.

use crate::handle::Handle;
use crate::object::context::ContextRef;
use crate::object::queue::Queue;

/// `CU_STREAM_NON_BLOCKING`.
pub(crate) const NON_BLOCKING: u32 = 1;

pub(crate) struct Stream {
    pub context: ContextRef,
    pub flags: u32,
    pub priority: i32,
    pub id: u64,
    /// The program has destroyed the stream. It is kept until every command in its queue has an end
    /// time.
    pub closed: bool,
    pub capture: Option<Handle>,
    /// Stored so that the program can read it back. It has no effect, because the model has no
    /// persisting lines.
    pub window: AccessPolicyWindow,
    pub queue: Queue,
}

/// The leading fields of `CUaccessPolicyWindow`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AccessPolicyWindow {
    base: u64,
    bytes: u64,
    hit_ratio: f32,
    hit: i32,
    miss: i32,
}

impl AccessPolicyWindow {
    /// `CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW`.
    pub const ATTRIBUTE: i32 = 1;
}

impl Stream {
    pub fn new(context: ContextRef, flags: u32, priority: i32, id: u64) -> Self {
        let (window, queue) = (AccessPolicyWindow::default(), Queue::default());
        Self { context, flags, priority, id, closed: false, capture: None, window, queue }
    }

    /// Returns `true` if the stream synchronises with the legacy stream.
    pub fn is_blocking(&self) -> bool {
        self.flags & NON_BLOCKING == 0
    }
}
