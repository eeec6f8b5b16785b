//! The launches that threads make while CUPTI records, in a queue from their threads to the [records](super::records).
//!
//! A launch is in the queue before the driver call begins, and so before the GPU can do its work.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::record::queue::ArrayQueue;
use crate::types::activity::{EnqueueCall, GraphExec};
use crate::types::stream_id::StreamId;

/// The maximum number of events in the queue. They are taken every few milliseconds during a phase, and ten times a second
/// otherwise. A launch takes microseconds.
const MAX_EVENTS: usize = 65_536;

struct LaunchQueue {
    /// Allocated before anything is recorded, and never freed.
    events: OnceLock<ArrayQueue<LaunchEvent>>,
    /// A window is open.
    has_window: AtomicBool,
    /// A launch in a window found no space, or CUPTI does not record all of its work.
    has_lost: AtomicBool,
}

static LAUNCHES: LaunchQueue = LaunchQueue {
    events: OnceLock::new(),
    has_window: AtomicBool::new(false),
    has_lost: AtomicBool::new(false),
};

/// A driver call that enqueued work which CUPTI records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotedLaunch {
    pub correlation: u32,
    /// The stream that was passed to the driver, if known.
    pub stream: Option<StreamId>,
    /// As in [`EnqueueCall`].
    pub is_graph: bool,
    /// As in [`EnqueueCall`].
    pub is_group: bool,
    /// As in [`EnqueueCall`]. `None` if CUPTI does not record all of its work.
    pub graph: Option<GraphExec>,
    /// The frame of an opened call that needs its records, if any.
    pub owner: Option<LaunchOwner>,
    /// The id of the site of the innermost annotated function that made it, or that of
    /// [helper threads](crate::stats::call_tree::HELPERS), if any.
    pub site: Option<u32>,
    /// It was made while a window was open.
    pub is_in_window: bool,
}

/// The frame that a launch belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LaunchOwner {
    /// The number of the opened call.
    pub call: u64,
    /// The number of frames that were entered before it in the call.
    pub nth: u64,
    /// The time of the launch, on the host's clock.
    pub enqueued_ns: u64,
    /// A helper thread made it, so that it is not the function's own.
    pub is_by_helper: bool,
    /// The function times its launches by events, and this is none of those.
    pub is_after_stop: bool,
}

/// An entry that a thread leaves in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaunchEvent {
    Made(NotedLaunch),
    /// The launch with this correlation id, which was added before, has failed.
    Failed(u32),
    /// The launch with this correlation id belongs to no function, because its call has ended meanwhile.
    Disowned(u32),
}

impl NotedLaunch {
    pub fn new(
        launched: &EnqueueCall,
        owner: Option<LaunchOwner>,
        site: Option<u32>,
    ) -> NotedLaunch {
        let &EnqueueCall { correlation, is_graph, is_group, graph, lacks_records, .. } = launched;
        NotedLaunch {
            correlation,
            stream: StreamId::of(launched),
            is_graph,
            is_group,
            graph: graph.filter(|_| !lacks_records),
            owner,
            site,
            is_in_window: LAUNCHES.has_window.load(Relaxed),
        }
    }

    pub fn is_by_helper(&self) -> bool {
        self.owner.is_some_and(|owner| owner.is_by_helper)
    }
}

/// Makes room for launches. Must be called before CUPTI records.
pub(super) fn prepare() {
    LAUNCHES.events.get_or_init(|| ArrayQueue::new(MAX_EVENTS));
}

/// Adds a launch by the calling thread, if a call or a window needs its records. Returns `false` if there is no room.
/// Takes no lock and allocates nothing.
pub(super) fn add(launched: &EnqueueCall, owner: Option<LaunchOwner>, site: Option<u32>) -> bool {
    let launch = NotedLaunch::new(launched, owner, site);
    // Captured work does not run until its graph is launched.
    if launched.capture.is_some() || (owner.is_none() && !launch.is_in_window) {
        return true;
    }
    let has_room = push(LaunchEvent::Made(launch));
    if launch.is_in_window && (launched.lacks_records || !has_room) {
        lose();
    }
    has_room
}

/// Notes that a launch by the calling thread has failed. Returns `false` if there is no room.
pub(super) fn fail(correlation: u32) -> bool {
    let has_room = push(LaunchEvent::Failed(correlation));
    if !has_room {
        lose();
    }
    has_room
}

/// Notes that a launch belongs to no function after all.
pub(super) fn disown(correlation: u32) {
    // Without room, the call waits in vain for the records.
    _ = push(LaunchEvent::Disowned(correlation));
}

fn push(event: LaunchEvent) -> bool {
    LAUNCHES.events.get().is_some_and(|events| events.push(event).is_ok())
}

fn lose() {
    LAUNCHES.has_lost.store(true, Relaxed);
}

/// Lets launches be in a window from now on, or not any more.
#[cfg(feature = "kernels")]
pub(super) fn set_window(is_open: bool) {
    if is_open {
        take_lost();
    }
    LAUNCHES.has_window.store(is_open, Relaxed);
}

/// Removes and returns what has been added so far.
pub(super) fn take() -> impl Iterator<Item = LaunchEvent> {
    let events = LAUNCHES.events.get();
    // Bounded, because launches may be added as fast as they are taken.
    (0..MAX_EVENTS).map_while(move |_| events?.pop())
}

/// Returns `true` if launches or records are missing in the window since the last time.
#[cfg(feature = "kernels")]
pub(super) fn take_lost() -> bool {
    LAUNCHES.has_lost.swap(false, Relaxed)
}
