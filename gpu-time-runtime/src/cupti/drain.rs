//! Reads the records that CUPTI has completed.

use std::ptr;
use std::sync::LazyLock;
use std::thread;
use std::time::Duration;

use crate::base::lock::{Mutex, Rank, locked};
use crate::cupti::api::{DrainKind, DrainOutcome};
use crate::cupti::buffers::{BufferPool, CompletedBuffer, pool};
use crate::cupti::control;
use crate::cupti::failures;
use crate::cupti::gate::GATE;
use crate::cupti::launches;
use crate::cupti::loads::LOAD_LOCK;
use crate::cupti::records;
use crate::cupti::session::{self, Session};
use crate::cupti::work::InternedWork;
use crate::types::activity::Activity;

/// The maximum time that the last flush waits for other threads to finish loading code.
const LAST_PATIENCE: Duration = Duration::from_millis(200);

/// Locked during a drain, so that records are passed on in the order of their buffers.
static INTERNED: LazyLock<Mutex<InternedWork>> =
    LazyLock::new(|| Mutex::new(Rank::Activities, InternedWork::default()));

/// Passes the records that CUPTI has to `each`. Makes no other call to the driver and does not wait for the
/// GPU. Only the collector thread, reports and windows call it.
pub(crate) fn drain(which: DrainKind, each: &mut dyn FnMut(&Activity)) -> DrainOutcome {
    let Some(session) = session::get() else { return DrainOutcome::default() };
    // After the exit handler, CUPTI must not be called.
    let Some(_entry) = GATE.enter() else { return DrainOutcome::default() };
    control::stop_unused();
    let mut interned = locked(&INTERNED);
    interned.forget_addresses();
    let is_last = which == DrainKind::Last;
    if is_last {
        LOAD_LOCK.wait(LAST_PATIENCE);
    }
    // Without launches there is nothing to flush, and the driver may end before the last report.
    let is_wanted = which != DrainKind::Completed && launches::have_begun();
    let has_flushed = is_wanted && flush(session, is_last);
    read_all(session, pool(), &mut interned, each);
    // CUPTI also counts a dropped record for each declined request, so the two counts overlap.
    let dropped = session.take_dropped().max(pool().take_declined());
    // No thread collects records during process exit. If recording could not be stopped then, the records
    // that CUPTI drops belong to no call.
    let dropped = if is_last && control::is_recording() { 0 } else { dropped };
    DrainOutcome { has_flushed, dropped }
}

/// Lets the calling thread be unparked whenever the buffers [fill](are_buffers_filling).
pub(crate) fn wake_when_buffers_fill() {
    pool().set_reader(thread::current());
}

/// Returns `true` if CUPTI has begun to use a good part of its buffers since the last call, so that their records
/// should be taken.
pub(crate) fn are_buffers_filling() -> bool {
    pool().take_filling()
}

/// Returns `false` if another thread is loading code, or CUPTI refuses.
fn flush(session: &Session, forced: bool) -> bool {
    let Some(permit) = LOAD_LOCK.permit() else { return false };
    failures::is_success("hand over its records", session.flush(&permit, forced))
}

fn read_all(
    session: &Session,
    pool: &BufferPool,
    interned: &mut InternedWork,
    each: &mut dyn FnMut(&Activity),
) {
    while let Some(completed) = pool.take() {
        for_each_record(session, &completed, &mut |bytes| {
            // SAFETY: CUPTI has written the record.
            if let Some(activity) = unsafe { records::read(bytes, |work| interned.get(&work)) } {
                each(&activity);
            }
        });
    }
}

/// Passes the bytes from each record to the end of the buffer to `each`.
fn for_each_record(session: &Session, completed: &CompletedBuffer, each: &mut dyn FnMut(&[u8])) {
    let (start, bytes) = (completed.start(), completed.bytes());
    let mut last = ptr::null_mut();
    // SAFETY: CUPTI has completed the buffer; `last` is null or a record in this buffer.
    while let Some(record) = unsafe { session.next_record(start, bytes, last) } {
        let at = record.addr().wrapping_sub(start.addr());
        // Stop if CUPTI does not move forward within the buffer: losing records is better than an endless
        // loop.
        if at >= bytes || (!last.is_null() && record <= last) {
            return;
        }
        // SAFETY: the buffer has `bytes` bytes, all of which CUPTI has written.
        each(unsafe { std::slice::from_raw_parts(record, bytes - at) });
        last = record;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cupti::records::{CONCURRENT_KERNEL, MEMSET};
    use crate::cupti::session::fake::{self, RECORD_BYTES};

    /// A record with these times and this correlation id, whose offset differs between kernels and
    /// memsets.
    fn record(kind: u32, start: u64, end: u64, correlation: u32) -> Vec<u8> {
        let mut bytes = vec![0; RECORD_BYTES];
        bytes[..4].copy_from_slice(&kind.to_ne_bytes());
        bytes[16..24].copy_from_slice(&start.to_ne_bytes());
        bytes[24..32].copy_from_slice(&end.to_ne_bytes());
        let at = if kind == CONCURRENT_KERNEL { 92 } else { 44 };
        bytes[at..at + 4].copy_from_slice(&correlation.to_ne_bytes());
        bytes
    }

    #[test]
    fn records_of_all_buffers_are_handed_over_in_order() {
        let (session, pool, mut interned) =
            (fake::session(), BufferPool::new(), InternedWork::default());
        let unknown = 99;
        pool.complete_with(&[
            record(CONCURRENT_KERNEL, 10, 20, 1),
            record(unknown, 1, 2, 3),
            record(MEMSET, 30, 40, 2),
        ]);
        pool.complete_with(&[]);
        pool.complete_with(&[record(MEMSET, 50, 0, 3), record(CONCURRENT_KERNEL, 0, 0, 4)]);
        let mut seen = Vec::new();
        read_all(&session, &pool, &mut interned, &mut |activity| {
            seen.push((activity.correlation, activity.start_ns, activity.work.name));
        });
        let expected =
            [(1, 10, "<unnamed>"), (2, 30, "[memset]"), (3, 50, "[memset]"), (4, 0, "<unnamed>")];
        assert_eq!(seen, expected);
        read_all(&session, &pool, &mut interned, &mut |_| panic!("there are no more"));
    }
}
