//! The stream captures in progress in the process, as observed by the callbacks for the driver
//! functions that begin and end captures.
//!
//! These callbacks are always on, because they slow down only captures and the destruction of streams. A
//! capture is identified by the stream on which it began. Other streams that join the capture through events
//! are not known, nor are captures that began before CUPTI was loaded.

use std::cell::Cell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

use crate::cupti::session::SUCCESS;
use crate::types::handles::Stream;

/// `cuStreamBeginCapture`, `cuStreamBeginCapture_v2` and `cuStreamBeginCaptureToGraph`, each
/// followed by its form for per-thread default streams. The ids are from `cupti_driver_cbid.h` and
/// never change.
const BEGINS: [u32; 6] = [495, 496, 539, 540, 720, 721];
/// `cuStreamEndCapture`, in both forms.
const ENDS: [u32; 2] = [497, 498];
/// The forms for per-thread default streams, which take stream 0 for [`Stream::PER_THREAD`].
const PER_THREAD_FORMS: [u32; 4] = [496, 498, 540, 721];
/// `cuStreamDestroy_v2`. A new stream may get the address of a stream that was destroyed while it
/// was captured.
const DESTROYS: u32 = 326;
/// `CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD`, after which the capture continues.
const WRONG_THREAD: c_int = 908;
/// The maximum number of captures tracked at once. Further ones are not known.
const MAX_CAPTURES: usize = 16;
/// The stream of a slot without a capture.
const FREE: usize = 0;
/// The stream of a slot whose capture has no number yet.
const CLAIMED: usize = usize::MAX;

thread_local! {
    /// The number of the capture of the thread's own default stream, or 0. Without a destructor, so
    /// that callbacks can read it as long as the thread runs.
    static OF_THREAD: Cell<u64> = const { Cell::new(0) };
}

/// The captures in progress, apart from those of per-thread default streams.
pub(super) struct Captures {
    begun: AtomicU64,
    /// The number of slots that are not free.
    under_way: AtomicUsize,
    slots: [CaptureSlot; MAX_CAPTURES],
}

/// A slot for one capture.
///
/// Invariant: the number is set before the stream, by the thread that has claimed the slot. A search for the
/// stream therefore finds the number of its own capture.
struct CaptureSlot {
    stream: AtomicUsize,
    number: AtomicU64,
}

pub(super) static CAPTURES: Captures = Captures::new();

/// Returns the number of captures that have begun so far. Captures are numbered from 1 in this
/// order.
pub(crate) fn captures_begun() -> u64 {
    CAPTURES.begun.load(Relaxed)
}

/// Returns the ids of the functions to observe.
pub(super) fn ids() -> impl Iterator<Item = u32> {
    BEGINS.into_iter().chain(ENDS).chain([DESTROYS])
}

/// Returns `true` if this is the id of a function that begins or ends a capture. The first argument
/// of such a function is the stream.
pub(super) fn is_edge(id: u32) -> bool {
    BEGINS.contains(&id) || ENDS.contains(&id)
}

/// Returns `true` if this is the id of a function that destroys the stream in its first argument.
pub(super) fn destroys(id: u32) -> bool {
    id == DESTROYS
}

impl Captures {
    const fn new() -> Captures {
        Captures {
            begun: AtomicU64::new(0),
            under_way: AtomicUsize::new(0),
            slots: [const { CaptureSlot { stream: AtomicUsize::new(FREE), number: AtomicU64::new(0) } };
                MAX_CAPTURES],
        }
    }

    /// Notes a call that should have begun or ended a capture, with its result. Called on the
    /// thread that made the call.
    pub fn note(&self, id: u32, stream: usize, result: c_int) {
        let is_own = stream == 0 && PER_THREAD_FORMS.contains(&id);
        let stream = if is_own { Stream::PER_THREAD } else { Stream(stream) };
        if BEGINS.contains(&id) && result == SUCCESS {
            self.begin(stream);
        } else if ENDS.contains(&id) && result != WRONG_THREAD {
            self.end(stream);
        }
    }

    fn begin(&self, stream: Stream) {
        if stream.is_legacy() || self.of(stream).is_some() {
            return;
        }
        let number = 1 + self.begun.fetch_add(1, SeqCst);
        if stream.is_per_thread() {
            return OF_THREAD.set(number);
        }
        for slot in &self.slots {
            if slot.stream.compare_exchange(FREE, CLAIMED, SeqCst, SeqCst).is_ok() {
                self.under_way.fetch_add(1, SeqCst);
                slot.number.store(number, SeqCst);
                slot.stream.store(stream.0, SeqCst);
                return;
            }
        }
    }

    /// Notes that a capture of the stream has ended, or that the stream is about to be destroyed.
    pub fn end(&self, stream: Stream) {
        if stream.is_legacy() {
            return;
        }
        if stream.is_per_thread() {
            return OF_THREAD.set(0);
        }
        for slot in &self.slots {
            if slot.stream.compare_exchange(stream.0, FREE, SeqCst, SeqCst).is_ok() {
                self.under_way.fetch_sub(1, SeqCst);
            }
        }
    }

    /// Returns the number of the capture into which the calling thread's work on the stream goes, if there is
    /// one.
    #[inline]
    pub fn of(&self, stream: Stream) -> Option<u64> {
        if stream.is_per_thread() {
            return Some(OF_THREAD.get()).filter(|&number| number > 0);
        }
        if stream.is_legacy() || self.under_way.load(Relaxed) == 0 {
            return None;
        }
        self.slots.iter().find(|slot| slot.is_of(stream))?.number(stream)
    }
}

impl CaptureSlot {
    fn is_of(&self, stream: Stream) -> bool {
        self.stream.load(SeqCst) == stream.0
    }

    /// Returns the number of the stream's capture, or `None` if the slot has been given to another stream.
    fn number(&self, stream: Stream) -> Option<u64> {
        let number = self.number.load(SeqCst);
        // If the capture has ended since the slot was found, the number may be that of another stream's.
        self.is_of(stream).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capture_takes_work_of_its_stream_until_end() {
        let captures = Captures::new();
        captures.note(539, 0x70, SUCCESS);
        captures.note(720, 0x71, SUCCESS);
        assert_eq!(
            [0x70, 0x71, 0x72].map(|stream| captures.of(Stream(stream))),
            [Some(1), Some(2), None]
        );
        captures.note(497, 0x70, WRONG_THREAD);
        assert_eq!(captures.of(Stream(0x70)), Some(1));
        // An invalidated capture ends with an error.
        captures.note(497, 0x70, 901);
        assert_eq!([0x70, 0x71].map(|stream| captures.of(Stream(stream))), [None, Some(2)]);
        captures.note(539, 0x70, SUCCESS);
        assert_eq!(captures.of(Stream(0x70)), Some(3));
    }

    #[test]
    fn refused_and_nested_beginnings_change_nothing() {
        let captures = Captures::new();
        captures.note(539, 0x70, 900);
        captures.note(539, 1, SUCCESS);
        assert_eq!([1, 0x70].map(|stream| captures.of(Stream(stream))), [None; 2]);
        // The first version of the function calls the second, and CUPTI calls back for both.
        captures.note(539, 0x70, SUCCESS);
        captures.note(495, 0x70, SUCCESS);
        assert_eq!((captures.of(Stream(0x70)), captures.begun.load(Relaxed)), (Some(1), 1));
        captures.note(497, 0x70, SUCCESS);
        assert_eq!(captures.of(Stream(0x70)), None);
    }

    /// The form of a function for per-thread default streams takes stream 0 for the thread's own.
    #[test]
    fn default_stream_of_each_thread_has_its_own_capture() {
        static CAPTURES: Captures = Captures::new();
        let elsewhere = || std::thread::spawn(|| CAPTURES.of(Stream::PER_THREAD)).join().unwrap();
        for (begin, end, stream) in [(539, 497, 2), (540, 498, 0), (540, 498, 2)] {
            CAPTURES.note(begin, stream, SUCCESS);
            assert!(CAPTURES.of(Stream::PER_THREAD).is_some());
            assert_eq!((elsewhere(), CAPTURES.of(Stream(0))), (None, None));
            CAPTURES.note(end, stream, SUCCESS);
            assert_eq!(CAPTURES.of(Stream::PER_THREAD), None);
        }
    }

    #[test]
    fn legacy_stream_is_not_taken_for_a_free_slot() {
        let captures = Captures::new();
        captures.note(539, 0x70, SUCCESS);
        assert_eq!([0, 1].map(|stream| captures.of(Stream(stream))), [None; 2]);
    }

    #[test]
    fn reused_slot_does_not_answer_for_its_former_stream() {
        let captures = Captures::new();
        captures.note(539, 0x70, SUCCESS);
        let slot = captures.slots.iter().find(|slot| slot.is_of(Stream(0x70))).unwrap();
        assert_eq!(slot.number(Stream(0x70)), Some(1));
        captures.note(497, 0x70, SUCCESS);
        captures.note(539, 0x71, SUCCESS);
        assert_eq!([0x70, 0x71].map(|stream| slot.number(Stream(stream))), [None, Some(2)]);
    }

    #[test]
    fn too_many_captures_are_not_known() {
        let captures = Captures::new();
        (0..20).for_each(|nth| captures.note(539, 0x70 + nth, SUCCESS));
        let known = (0..20).filter(|nth| captures.of(Stream(0x70 + nth)).is_some());
        assert_eq!(known.count(), MAX_CAPTURES);
    }
}
