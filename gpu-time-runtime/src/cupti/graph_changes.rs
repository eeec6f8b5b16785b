//! The changes to instantiated graphs, as observed by the callbacks for the driver functions that make them.
//!
//! These callbacks are always on, as those for captures are. Changes before CUPTI was loaded are not known.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use crate::types::activity::GraphExec;

/// The functions that may change how many records a launch has: `cuGraphExecDestroy`, `cuGraphExecUpdate`,
/// `cuGraphExecMemcpyNodeSetParams`, `cuGraphExecMemsetNodeSetParams`, `cuGraphExecChildGraphNodeSetParams`,
/// `cuGraphNodeSetEnabled`, `cuGraphExecUpdate_v2` and `cuGraphExecNodeSetParams`. The ids are from
/// `cupti_driver_cbid.h` and never change.
const CHANGES: [u32; 8] = [516, 561, 562, 563, 586, 650, 696, 714];
/// `cuGraphConditionalHandleCreate`, which every graph with conditional nodes needs.
const CONDITIONAL: u32 = 722;
/// The number of counters. Graphs that share one are taken for changed more often than they are.
const COUNTERS: usize = 256;

/// Counts the changes to each graph.
pub(super) struct GraphChanges {
    /// By a hash of the handle.
    changes: [AtomicU32; COUNTERS],
    /// Some graph may have conditional nodes.
    has_conditions: AtomicBool,
}

pub(super) static GRAPH_CHANGES: GraphChanges = GraphChanges::new();

/// Returns the ids of the functions to observe.
pub(super) fn ids() -> impl Iterator<Item = u32> {
    CHANGES.into_iter().chain([CONDITIONAL])
}

/// Returns `true` if this is the id of a function that changes graphs.
pub(super) fn is_change(id: u32) -> bool {
    CHANGES.contains(&id) || id == CONDITIONAL
}

impl GraphChanges {
    pub const fn new() -> GraphChanges {
        GraphChanges {
            changes: [const { AtomicU32::new(0) }; COUNTERS],
            has_conditions: AtomicBool::new(false),
        }
    }

    /// Notes a change. `first` is the first argument of the function.
    pub fn note(&self, id: u32, first: usize) {
        if id == CONDITIONAL {
            self.has_conditions.store(true, Relaxed);
        } else {
            self.counter(first).fetch_add(1, Relaxed);
        }
    }

    /// Identifies a graph that is about to be launched. Returns `None` if its launches may differ.
    pub fn exec(&self, handle: usize) -> Option<GraphExec> {
        if self.has_conditions.load(Relaxed) {
            return None;
        }
        let changes = self.counter(handle).load(Relaxed);
        Some(GraphExec { handle: NonZeroUsize::new(handle)?, changes })
    }

    fn counter(&self, handle: usize) -> &AtomicU32 {
        // The lowest bits of an address are equal for all.
        let hash = (handle >> 4).wrapping_mul(0x9e37_79b9) >> 16;
        &self.changes[hash % COUNTERS]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_graph_is_another_one() {
        let changes = GraphChanges::new();
        let before = changes.exec(0x50).unwrap();
        assert_eq!(changes.exec(0x50), Some(before));
        for (id, count) in CHANGES.into_iter().zip(1..) {
            changes.note(id, 0x50);
            assert_eq!(changes.exec(0x50), Some(GraphExec { changes: count, ..before }));
        }
        assert_eq!(changes.exec(0x60).map(|graph| graph.changes), Some(0));
    }

    #[test]
    fn launches_of_graphs_with_conditions_may_differ() {
        let changes = GraphChanges::new();
        changes.note(CONDITIONAL, 0x50);
        assert_eq!(changes.exec(0x60), None);
    }
}
