//! Launches captured as graph nodes, each between two event record nodes.
//!
//! The driver does not report replays, so the events are polled: for a report, and before a timed
//! call if stream brackets have been drained since the last poll. A poll finds the last replay, if
//! it has ended. The times of earlier replays are overwritten.

mod node;
mod table;

use std::time::Instant;

use crate::base::lock::{locked_by, try_locked};
use crate::cuda;
use crate::gpu::Gpu;
use crate::record::threads::StreamCall;
use crate::site::series_id::SeriesIdentity;
use crate::types::sample::{CacheState, Lost};
pub(crate) use node::OpenNode;
use table::GRAPHS;
pub(crate) use table::{has_nodes, series};

/// The maximum number of nodes that [`poll_some`] polls at once.
const AT_ONCE: usize = 64;
/// Polling takes at most 1/`SHARE` of the host time.
const SHARE: u64 = 100;

/// Adds the start of a launch as a node. Returns `None` if the stream is not being captured, if the
/// capture is one that the runtime records for replay, or if the site gets no nodes. If the node
/// cannot be added for another reason, the launch is counted as lost.
#[cold]
pub(crate) fn open(call: &StreamCall, launch: u32) -> Option<Result<Box<OpenNode>, Lost>> {
    let StreamCall { site, context, stream, .. } = *call;
    let capture = context.capture(stream);
    if matches!(capture, Ok(None)) || cuda::is_recording() {
        return None;
    }
    let can = capture.is_ok() && context.origin().is_some();
    if !site.gets_nodes(can) {
        return None;
    }
    let function = SeriesIdentity::function(context.device_id(), CacheState::AsFound, call.key);
    let series = SeriesIdentity { launch: Some(launch), graph: true, ..function };
    // Makes the series appear in reports before the graph is first replayed.
    site.series_id(series);
    let opened = match capture {
        Ok(Some(capture)) if can => OpenNode::open(call, &capture, series),
        Ok(_) => Err(Lost::Driver),
        Err(fault) => Err(fault.into()),
    };
    Some(opened.inspect_err(|reason| table::record(site, series, Err(*reason))))
}

/// Polls some nodes, unless another thread is polling or has polled recently.
pub(crate) fn poll_some() {
    if !has_nodes() {
        return;
    }
    let Some(mut graphs) = try_locked(&GRAPHS) else { return };
    let Some(context) = graphs.pairs.first().map(|graph_pair| graph_pair.pair.context) else {
        return;
    };
    let began_ns = context.now_ns();
    if began_ns < graphs.due_ns {
        return;
    }
    graphs.poll(AT_ONCE);
    let ended_ns = context.now_ns();
    graphs.due_ns = ended_ns + (SHARE - 1) * ended_ns.saturating_sub(began_ns);
}

/// Polls every node. Returns `false` if another thread is still polling at the deadline, which
/// means that it is stuck in a driver call.
pub(crate) fn poll_all(deadline: Instant) -> bool {
    let Some(mut graphs) = locked_by(&GRAPHS, deadline) else { return false };
    let all = graphs.pairs.len();
    graphs.poll(all);
    true
}
