//! The stream captures in progress in the process, as observed by the callbacks for the driver
//! functions that begin and end captures.
//!
//! These callbacks are always on, because only captures pay for them. A capture is identified by
//! the stream on which it began. Other streams that join the capture through events are not known,
//! nor are captures that began before CUPTI was loaded.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

use crate::cupti::session::{SUCCESS, Session};

/// `cuStreamBeginCapture`, `cuStreamBeginCapture_v2` and `cuStreamBeginCaptureToGraph`, each
/// followed by its form for per-thread default streams. The ids are from `cupti_driver_cbid.h` and
/// never change.
const BEGINS: [u32; 6] = [495, 496, 539, 540, 720, 721];
/// `cuStreamEndCapture`, in both forms.
const ENDS: [u32; 2] = [497, 498];
/// `CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD`, after which the capture continues.
const WRONG_THREAD: c_int = 908;
/// The maximum number of captures tracked at once. Further ones are not known.
const MAX_CAPTURES: usize = 16;

/// The captures in progress. Each has a slot with its stream and its number.
///
/// Invariant: a slot's number is set before its stream, so that a stream is found with the number
/// of its own capture or a later one.
pub(super) struct Captures {
    begun: AtomicU64,
    under_way: AtomicUsize,
    streams: [AtomicUsize; MAX_CAPTURES],
    numbers: [AtomicU64; MAX_CAPTURES],
}

pub(super) static CAPTURES: Captures = Captures::new();

/// Returns the number of captures that have begun so far. Captures are numbered from 1 in this
/// order.
pub(crate) fn captures_begun() -> u64 {
    CAPTURES.begun.load(Relaxed)
}

/// Switches the callbacks on. Errors are ignored: older versions lack some of the functions, and an
/// unnoticed capture only delays the calls that launch into it.
pub(super) fn observe(session: &Session) {
    for id in BEGINS.into_iter().chain(ENDS) {
        _ = session.switch_callback(id, true);
    }
}

/// Returns `true` if this is the id of a function that begins or ends a capture. The first argument
/// of such a function is the stream.
pub(super) fn is_edge(id: u32) -> bool {
    BEGINS.contains(&id) || ENDS.contains(&id)
}

impl Captures {
    const fn new() -> Captures {
        Captures {
            begun: AtomicU64::new(0),
            under_way: AtomicUsize::new(0),
            streams: [const { AtomicUsize::new(0) }; MAX_CAPTURES],
            numbers: [const { AtomicU64::new(0) }; MAX_CAPTURES],
        }
    }

    /// Notes a call that should have begun or ended a capture, with its result.
    pub fn note(&self, id: u32, stream: usize, result: c_int) {
        if BEGINS.contains(&id) && result == SUCCESS {
            self.begin(stream);
        } else if ENDS.contains(&id) && result != WRONG_THREAD {
            self.end(stream);
        }
    }

    fn begin(&self, stream: usize) {
        // The NULL stream cannot be captured, and handle 2 is a different stream on every thread.
        if stream <= 2 || self.of(stream).is_some() {
            return;
        }
        let number = 1 + self.begun.fetch_add(1, SeqCst);
        for (slot, its_number) in self.streams.iter().zip(&self.numbers) {
            if slot.load(SeqCst) != 0 {
                continue;
            }
            its_number.store(number, SeqCst);
            if slot.compare_exchange(0, stream, SeqCst, SeqCst).is_ok() {
                self.under_way.fetch_add(1, SeqCst);
                return;
            }
        }
    }

    fn end(&self, stream: usize) {
        for slot in &self.streams {
            if slot.compare_exchange(stream, 0, SeqCst, SeqCst).is_ok() {
                self.under_way.fetch_sub(1, SeqCst);
            }
        }
    }

    /// Returns the number of the capture that takes the stream's work, if there is one.
    #[inline]
    pub fn of(&self, stream: usize) -> Option<u64> {
        if self.under_way.load(Relaxed) == 0 {
            return None;
        }
        let at = self.streams.iter().position(|slot| slot.load(SeqCst) == stream)?;
        Some(self.numbers.get(at)?.load(SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capture_takes_the_work_of_its_stream_until_it_ends() {
        let captures = Captures::new();
        captures.note(539, 0x70, SUCCESS);
        captures.note(720, 0x71, SUCCESS);
        assert_eq!([0x70, 0x71, 0x72].map(|stream| captures.of(stream)), [Some(1), Some(2), None]);
        captures.note(497, 0x70, WRONG_THREAD);
        assert_eq!(captures.of(0x70), Some(1));
        // An invalidated capture ends with an error.
        captures.note(497, 0x70, 901);
        assert_eq!([0x70, 0x71].map(|stream| captures.of(stream)), [None, Some(2)]);
        captures.note(539, 0x70, SUCCESS);
        assert_eq!(captures.of(0x70), Some(3));
    }

    #[test]
    fn refused_and_nested_beginnings_change_nothing() {
        let captures = Captures::new();
        captures.note(539, 0x70, 900);
        captures.note(539, 2, SUCCESS);
        assert_eq!([2, 0x70].map(|stream| captures.of(stream)), [None; 2]);
        // The first version of the function calls the second, and CUPTI calls back for both.
        captures.note(539, 0x70, SUCCESS);
        captures.note(495, 0x70, SUCCESS);
        assert_eq!((captures.of(0x70), captures.begun.load(Relaxed)), (Some(1), 1));
        captures.note(497, 0x70, SUCCESS);
        assert_eq!(captures.of(0x70), None);
    }

    #[test]
    fn too_many_captures_are_not_known() {
        let captures = Captures::new();
        (0..20).for_each(|nth| captures.note(539, 0x70 + nth, SUCCESS));
        let known = (0..20).filter(|nth| captures.of(0x70 + nth).is_some());
        assert_eq!(known.count(), MAX_CAPTURES);
    }
}
