//! Launches that became nodes of a graph, between two event records that are nodes too.
//!
//! Nobody tells of a replay, so the events are looked at now and then: for a report, and before a timed
//! call where brackets in streams were looked at since. What is found is the last replay, if it has
//! ended; those before it have left nothing behind.

mod node;
mod table;

use std::sync::TryLockError;
use std::time::Instant;

use crate::base::lock::locked_by;
use crate::cuda;
use crate::gpu::Gpu;
use crate::record::call::StreamCall;
use crate::types::sample::Lost;
pub(crate) use node::Node;
use table::GRAPHS;
pub(crate) use table::{is_any, rows};

/// Nodes that are looked at together while a program runs.
const AT_ONCE: usize = 64;
/// Looking takes no more than one part of so many of the host's time.
const SHARE: u64 = 100;

/// What became of a launch that would be a node.
pub(crate) enum Opened {
    Node(Box<Node>),
    /// It is counted as lost.
    Lost,
    /// The site has no nodes, or the capture is none that could have them.
    Untimed,
}

/// Makes the start of a launch a node, if its stream is being captured and its site has nodes.
#[cold]
pub(crate) fn open(place: &StreamCall, launch: u32) -> Opened {
    let StreamCall { site, context, stream, .. } = *place;
    let capture = context.capture(stream);
    if matches!(capture, Ok(None)) || cuda::is_recording() {
        return Opened::Untimed;
    }
    let can = capture.is_ok() && context.origin().is_some();
    if !site.gets_nodes(can) {
        return Opened::Untimed;
    }
    let row = rows().find(place, launch);
    let opened = match capture {
        Ok(Some(capture)) if can => Node::open(place, &capture, row),
        Ok(_) => Err(Lost::Driver),
        Err(fault) => Err(fault.into()),
    };
    match opened {
        Ok(node) => Opened::Node(node),
        Err(reason) => {
            rows().write(row, Err(reason));
            Opened::Lost
        }
    }
}

/// Looks at some nodes, unless somebody does or did a moment ago.
pub(crate) fn glance() {
    if !is_any() {
        return;
    }
    let mut graphs = match GRAPHS.try_lock() {
        Ok(graphs) => graphs,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => return,
    };
    let Some(context) = graphs.placed.first().map(|placed| placed.pair.context) else { return };
    let began_ns = context.now_ns();
    if began_ns < graphs.due_ns {
        return;
    }
    graphs.look(AT_ONCE);
    let ended_ns = context.now_ns();
    graphs.due_ns = ended_ns + (SHARE - 1) * ended_ns.saturating_sub(began_ns);
}

/// Looks at every node. Answers whether that could be done: a thread that does so too, and does not come to
/// an end with it before the deadline, is stuck in a driver call.
pub(crate) fn look_at_all(deadline: Instant) -> bool {
    let Some(mut graphs) = locked_by(&GRAPHS, deadline) else { return false };
    let all = graphs.placed.len();
    graphs.look(all);
    true
}
