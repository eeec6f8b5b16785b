//! Notes of launches that are made while a window is open.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

use crossbeam_queue::ArrayQueue;

use crate::types::activity::EnqueueCall;
use crate::types::stream_id::StreamId;

/// The maximum number of notes waiting to be taken. They are taken every few milliseconds, and a launch takes
/// microseconds.
const MAX_NOTES: usize = 65_536;

/// The notes of the open window.
struct WindowNotes {
    /// Allocated before the first window, and never freed.
    queue: OnceLock<ArrayQueue<LaunchEvent>>,
    /// A window is open.
    is_open: AtomicBool,
    /// The note of a launch found no space, or CUPTI does not record all of a launch's work.
    has_lost: AtomicBool,
}

static NOTES: WindowNotes = WindowNotes {
    queue: OnceLock::new(),
    is_open: AtomicBool::new(false),
    has_lost: AtomicBool::new(false),
};

/// A launch that was made while a window was open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub correlation: u32,
    pub stream_id: Option<StreamId>,
    /// As in [`EnqueueCall`].
    pub is_group: bool,
    /// The id of the site of the innermost annotated function that made the launch, or that of
    /// [helper threads](crate::stats::call_tree::HELPERS), if any.
    pub site: Option<u32>,
    /// The launch belongs to an opened call, which needs its records as well.
    pub is_opened: bool,
}

/// An entry that a thread leaves for the open window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaunchEvent {
    Launch(Note),
    /// The launch with this correlation id, which was noted before, has failed.
    Failure(u32),
}

/// Notes a launch by the calling thread, if a window is open. `site` is the innermost annotated function that makes
/// it. Takes no lock and allocates nothing.
pub(crate) fn note(launched: &EnqueueCall, is_opened: bool, site: Option<u32>) {
    // Captured work does not run until its graph is launched.
    if !NOTES.is_open.load(Acquire) || launched.capture.is_some() {
        return;
    }
    let note = Note {
        correlation: launched.correlation,
        stream_id: StreamId::of(launched),
        is_group: launched.is_group,
        site,
        is_opened,
    };
    if launched.lacks_records {
        NOTES.has_lost.store(true, Relaxed);
    }
    add(LaunchEvent::Launch(note));
}

/// Notes that a launch by the calling thread has failed, if a window is open.
pub(crate) fn note_failure(correlation: u32) {
    if NOTES.is_open.load(Acquire) {
        add(LaunchEvent::Failure(correlation));
    }
}

fn add(event: LaunchEvent) {
    if NOTES.queue.get().is_none_or(|notes| notes.push(event).is_err()) {
        NOTES.has_lost.store(true, Relaxed);
    }
}

/// Lets launches leave notes from now on, and drops notes from earlier windows.
pub(super) fn open() {
    let notes = NOTES.queue.get_or_init(|| ArrayQueue::new(MAX_NOTES));
    // A launch may have left its note after the last window closed.
    while notes.pop().is_some() {}
    NOTES.has_lost.store(false, Relaxed);
    NOTES.is_open.store(true, Release);
}

pub(super) fn close() {
    NOTES.is_open.store(false, Release);
}

/// Removes and returns the notes left so far.
pub(super) fn take() -> impl Iterator<Item = LaunchEvent> {
    let notes = NOTES.queue.get();
    // Bounded, because launches may leave notes as fast as they are taken.
    (0..MAX_NOTES).map_while(move |_| notes?.pop())
}

/// Returns `true` if notes or records are missing since the last time.
pub(super) fn take_lost() -> bool {
    NOTES.has_lost.swap(false, Relaxed)
}
