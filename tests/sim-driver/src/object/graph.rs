//! Graphs, executable graphs, and the user objects kept alive by them.

use std::sync::Arc;

use crate::handle::Handle;
use crate::object::context::ContextRef;
use crate::object::queue::Moment;
use crate::object::work::{Callback, Work};

pub(crate) struct Graph {
    pub context: ContextRef,
    pub nodes: Arc<[Work]>,
    /// User objects, listed once for each reference.
    pub objects: Vec<Handle>,
}

/// `CUgraphExec`.
pub(crate) struct GraphExec {
    pub id: u32,
    /// Id of the first node. The others follow.
    pub first_node: u64,
    pub context: ContextRef,
    pub nodes: Arc<[Work]>,
    /// User objects, listed once for each reference.
    pub objects: Vec<Handle>,
    /// End of the last launch.
    pub launch_end: Moment,
}

/// `CUuserObject`: runs its destructor when the last reference is released.
pub(crate) struct UserObject {
    pub destructor: Callback,
    pub references: u32,
}

/// User-object references to release when the launch that uses them has ended.
pub(crate) struct PendingRelease {
    pub launch_end: Moment,
    pub objects: Vec<Handle>,
}

/// `CUgraphExecUpdateResultInfo`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct UpdateResult {
    result: u32,
    error_node: Handle,
    error_from_node: Handle,
}

impl UpdateResult {
    pub const SUCCESS: Self = Self::new(0);
    pub const TOPOLOGY_CHANGED: Self = Self::new(2);
    pub const NODE_TYPE_CHANGED: Self = Self::new(3);

    const fn new(result: u32) -> Self {
        Self { result, error_node: 0, error_from_node: 0 }
    }

    pub fn is_success(self) -> bool {
        self.result == 0
    }
}
