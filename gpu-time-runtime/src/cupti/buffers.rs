//! The buffers that CUPTI writes its records into.

use std::alloc::{self, Layout};
use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicBool, AtomicU64, AtomicUsize, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed,
};
use std::thread::Thread;

use crossbeam_queue::ArrayQueue;

use crate::base::{fork, inside};
use crate::cupti::gate::GATE;

/// The size of a buffer. Holds some 600 records.
const BYTES: usize = 128 * 1024;
/// The maximum number of buffers. They hold some 75,000 records between two drains.
const MAX_BUFFERS: usize = 128;
/// The number of buffers in use at which the reader is woken.
const MANY_BUFFERS: usize = MAX_BUFFERS / 4;
const LAYOUT: Layout = Layout::new::<[u64; BYTES / 8]>();

/// The address of a buffer of the pool.
///
/// Invariant: it has [`BYTES`] bytes, is aligned to 8, and is never freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Buffer(*mut u8);

// SAFETY: a buffer belongs to the thread that has taken it out of a queue.
unsafe impl Send for Buffer {}

/// A buffer that CUPTI has completed. Returns to the pool when dropped.
#[derive(Debug)]
pub(super) struct CompletedBuffer<'a> {
    pool: &'a BufferPool,
    buffer: Buffer,
    bytes: usize,
}

impl CompletedBuffer<'_> {
    pub fn start(&self) -> *mut u8 {
        self.buffer.0
    }

    /// Returns the number of bytes that CUPTI has written, at most the size of the buffer.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for CompletedBuffer<'_> {
    fn drop(&mut self) {
        // There is space for every buffer.
        _ = self.pool.free.push(self.buffer);
    }
}

/// A bounded pool of buffers, which are allocated when they are first needed.
#[derive(Debug)]
pub(super) struct BufferPool {
    free: ArrayQueue<Buffer>,
    completed: ArrayQueue<(Buffer, usize)>,
    /// The addresses of all allocated buffers.
    known: [AtomicUsize; MAX_BUFFERS],
    allocated: AtomicUsize,
    /// The number of requests declined because all buffers were in use.
    declined: AtomicU64,
    /// The thread that reads completed buffers.
    reader: OnceLock<Thread>,
    /// Many buffers were in use at a request.
    is_filling: AtomicBool,
}

impl BufferPool {
    pub fn new() -> BufferPool {
        BufferPool {
            free: ArrayQueue::new(MAX_BUFFERS),
            completed: ArrayQueue::new(MAX_BUFFERS),
            known: [const { AtomicUsize::new(0) }; MAX_BUFFERS],
            allocated: AtomicUsize::new(0),
            declined: AtomicU64::new(0),
            reader: OnceLock::new(),
            is_filling: AtomicBool::new(false),
        }
    }

    /// Returns a buffer for CUPTI to write into, or `None` if all buffers are in use. Wakes the reader if many are.
    fn request(&self) -> Option<Buffer> {
        let buffer = self.free.pop().or_else(|| self.allocate());
        if buffer.is_none() {
            self.declined.fetch_add(1, Relaxed);
        }
        if self.allocated.load(Relaxed).saturating_sub(self.free.len()) >= MANY_BUFFERS {
            self.is_filling.store(true, Relaxed);
            self.reader.get().into_iter().for_each(Thread::unpark);
        }
        buffer
    }

    /// Sets the thread to wake when many buffers are in use. Only the first call has an effect.
    pub fn set_reader(&self, reader: Thread) {
        _ = self.reader.set(reader);
    }

    /// Returns `true` if many buffers were in use at a request since the last call.
    pub fn take_filling(&self) -> bool {
        self.is_filling.swap(false, Relaxed)
    }

    fn allocate(&self) -> Option<Buffer> {
        let more = |count| (count < MAX_BUFFERS).then_some(count + 1);
        let index = self.allocated.fetch_update(AcqRel, Acquire, more).ok()?;
        // SAFETY: the layout is not empty.
        let start = unsafe { alloc::alloc(LAYOUT) };
        if start.is_null() {
            return None;
        }
        self.known.get(index)?.store(start.addr(), Relaxed);
        Some(Buffer(start))
    }

    /// Takes a buffer back from CUPTI, which has written `bytes` bytes. Ignores a buffer that is not
    /// from this pool: it belongs to another tool.
    fn complete(&self, start: *mut u8, bytes: usize) {
        if self.known.iter().any(|known| known.load(Relaxed) == start.addr()) {
            // There is space for every buffer.
            _ = self.completed.push((Buffer(start), bytes.min(BYTES)));
        }
    }

    /// Takes the buffer that was completed first.
    pub fn take(&self) -> Option<CompletedBuffer<'_>> {
        let (buffer, bytes) = self.completed.pop()?;
        Some(CompletedBuffer { pool: self, buffer, bytes })
    }

    /// Returns the number of requests declined since the last call.
    pub fn take_declined(&self) -> u64 {
        self.declined.swap(0, Relaxed)
    }
}

#[cfg(test)]
impl BufferPool {
    /// Completes a buffer with these records.
    pub fn complete_with(&self, records: &[Vec<u8>]) {
        let (buffer, bytes) = (self.request().unwrap(), records.concat());
        // SAFETY: the buffer is longer than the records of a test, and no other thread uses it.
        unsafe { buffer.0.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        self.complete(buffer.0, bytes.len());
    }
}

/// Returns the pool of the process. The first call allocates, so it must not come from a callback.
pub(super) fn pool() -> &'static BufferPool {
    POOL.get_or_init(BufferPool::new)
}

static POOL: OnceLock<BufferPool> = OnceLock::new();

/// Called by CUPTI to request a buffer. Provides none if the pool is exhausted.
///
/// # Safety
///
/// The pointers must be valid for writes.
pub(super) unsafe extern "C" fn on_request(
    buffer: *mut *mut u8,
    size: *mut usize,
    max_records: *mut usize,
) {
    // The global allocator may call an annotated function.
    let _inside = inside::enter();
    // After the last report, no one reads the records.
    let pool = if GATE.is_closed() || fork::is_forked() { None } else { POOL.get() };
    let handed = pool.and_then(BufferPool::request);
    // SAFETY: guaranteed by the caller.
    unsafe {
        buffer.write(handed.map_or(std::ptr::null_mut(), |buffer| buffer.0));
        size.write(if handed.is_some() { BYTES } else { 0 });
        // 0: as many records as fit.
        max_records.write(0);
    }
}

/// Called by CUPTI to complete a buffer. Works during process exit too, because the last report
/// flushes CUPTI.
///
/// # Safety
///
/// CUPTI must have finished writing `valid` bytes to `buffer`.
pub(super) unsafe extern "C" fn on_complete(
    _: *mut c_void,
    _: u32,
    buffer: *mut u8,
    _: usize,
    valid: usize,
) {
    if let Some(pool) = POOL.get().filter(|_| !fork::is_forked()) {
        pool.complete(buffer, valid);
    }
}

/// The same as [`on_request`], with the signature for versions that allow several subscribers.
///
/// # Safety
///
/// As for [`on_request`].
pub(super) unsafe extern "C" fn on_shared_request(
    buffer: *mut *mut u8,
    size: *mut usize,
    max_records: *mut usize,
    _: *mut c_void,
) {
    // SAFETY: guaranteed by the caller.
    unsafe { on_request(buffer, size, max_records) };
}

/// The same as [`on_complete`], with the signature for versions that allow several subscribers.
///
/// # Safety
///
/// As for [`on_complete`].
pub(super) unsafe extern "C" fn on_shared_complete(
    buffer: *mut u8,
    size: usize,
    valid: usize,
    _: *mut c_void,
) {
    // SAFETY: guaranteed by the caller.
    unsafe { on_complete(std::ptr::null_mut(), 0, buffer, size, valid) };
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn exhausted_pool_declines_and_counts() {
        let pool = BufferPool::new();
        let handed: Vec<Buffer> = (0..MAX_BUFFERS).map(|_| pool.request().unwrap()).collect();
        assert!(handed.iter().all(|buffer| buffer.0.addr() % 8 == 0));
        assert_eq!((pool.request(), pool.request()), (None, None));
        assert_eq!((pool.take_declined(), pool.take_declined()), (2, 0));
        pool.complete(handed[3].0, 216);
        assert_eq!(pool.request(), None, "a completed buffer is not free before it is read");
        let completed = pool.take().unwrap();
        assert_eq!((completed.start(), completed.bytes()), (handed[3].0, 216));
        drop(completed);
        assert_eq!(pool.request(), Some(handed[3]));
    }

    #[test]
    fn reader_is_woken_when_many_buffers_are_in_use() {
        let pool = BufferPool::new();
        pool.set_reader(thread::current());
        let mut handed: Vec<Buffer> = (1..MANY_BUFFERS).map(|_| pool.request().unwrap()).collect();
        assert!(!pool.take_filling());
        let (began, patience) = (Instant::now(), Duration::from_secs(60));
        handed.push(pool.request().unwrap());
        thread::park_timeout(patience);
        assert!(began.elapsed() < patience);
        assert_eq!((pool.take_filling(), pool.take_filling()), (true, false));
        pool.complete(handed[0].0, 0);
        drop(pool.take());
        pool.complete(handed[1].0, 0);
        drop(pool.take());
        assert!(pool.request().is_some() && !pool.take_filling(), "one more is free");
    }

    #[test]
    fn buffers_complete_in_order() {
        let pool = BufferPool::new();
        let handed: Vec<Buffer> = (0..3).map(|_| pool.request().unwrap()).collect();
        for index in [2, 0, 1] {
            pool.complete(handed[index].0, index);
        }
        let taken = std::iter::from_fn(|| pool.take().map(|completed| completed.bytes()));
        assert_eq!(taken.collect::<Vec<_>>(), [2, 0, 1]);
    }

    #[test]
    fn foreign_buffer_is_left_alone() {
        let pool = BufferPool::new();
        let mut foreign = [0_u64; 4];
        pool.complete(foreign.as_mut_ptr().cast(), 32);
        assert!(pool.take().is_none());
    }

    #[test]
    fn written_bytes_do_not_exceed_the_buffer() {
        let pool = BufferPool::new();
        let buffer = pool.request().unwrap();
        pool.complete(buffer.0, usize::MAX);
        assert_eq!(pool.take().unwrap().bytes(), BYTES);
    }
}
