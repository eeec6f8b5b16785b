//! Launches of helper threads: threads that are inside of no annotated function, while exactly one thread is.
//!
//! Libraries hand work to threads of their own, which no one can annotate. What such a thread enqueues while one thread
//! is inside of an opened call most likely belongs to that call. With several such threads there is no telling which.

use crate::cuda;
use crate::record::launches::LaunchOwner;
use crate::record::open_frames::{self, OnlyFrame, OnlyThread};
use crate::types::activity::EnqueueCall;

/// A launch of a helper thread.
#[derive(Clone, Copy)]
pub(super) enum HelpedBy {
    /// It belongs to an opened call.
    Opened(OnlyFrame),
    /// It belongs to a call that is not recorded. Recorded ones stand for that.
    Unrecorded,
}

impl HelpedBy {
    /// Returns what a launch of the calling thread belongs to, which must be inside of no function. Takes no lock and
    /// allocates nothing.
    pub fn of(launched: &EnqueueCall) -> Option<HelpedBy> {
        // What goes into a graph does not run then.
        if launched.capture.is_some() || launched.lacks_records {
            return None;
        }
        Some(match open_frames::only_thread()? {
            OnlyThread::Frame(only) => HelpedBy::Opened(only),
            OnlyThread::Unrecorded => HelpedBy::Unrecorded,
        })
    }

    /// Returns the frame that needs the records.
    pub fn owner(self) -> Option<LaunchOwner> {
        let HelpedBy::Opened(OnlyFrame { frame, .. }) = self else { return None };
        let (call, nth, enqueued_ns) = (frame.call, frame.nth, cuda::now_ns());
        Some(LaunchOwner { call, nth, enqueued_ns, is_by_helper: true, is_after_stop: false })
    }

    /// Returns `true` if the call has ended since. Then the launch may have been added too late for it.
    pub fn has_ended(self) -> bool {
        matches!(self, HelpedBy::Opened(only) if !only.is_still_open())
    }
}
