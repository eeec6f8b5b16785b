//! The client's requests, and the records that it has not yet received. Do not call the driver while
//! the state is locked: the driver calls functions that lock the state while holding its own lock,
//! so the two would deadlock.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ffi::c_void;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use crate::abi::{Callback, Completed, Completed2, Requested, Requested2};
use crate::observed::{ObservedTimes, ObservedWork, WorkKind};
use crate::record::{Record, kinds_of};
use crate::script::{is_due, script};

/// The client's callback function, and the user data passed to it.
#[derive(Clone, Copy)]
pub(crate) struct Subscriber {
    pub callback: Callback,
    pub data: *mut c_void,
}

// SAFETY: the client's function may be called on any thread with its data.
unsafe impl Send for Subscriber {}

/// The client's functions that provide and receive buffers, in their first or second version.
#[derive(Clone, Copy)]
pub(crate) enum BufferFunctions {
    First(Requested, Completed),
    Second(Requested2, Completed2),
}

/// One of the client's buffers.
pub(crate) struct Buffer {
    pub memory: *mut u8,
    pub size: usize,
    /// Maximum number of records, or 0 for no limit.
    pub max_records: usize,
    /// Numbers of the records in the buffer.
    pub records: Vec<u64>,
    /// Total size of its records in bytes.
    pub used: usize,
    /// No more records are added.
    pub is_full: bool,
    /// Number of the first flush at which all of its records were complete.
    pub complete_at: Option<u64>,
}

// SAFETY: the client has handed the memory over.
unsafe impl Send for Buffer {}

#[derive(Default)]
pub(crate) struct State {
    pub subscriber: Option<Subscriber>,
    /// Ids of the driver functions with callbacks.
    pub callbacks: BTreeSet<u32>,
    /// Kinds of activity that are recorded.
    pub kinds: BTreeSet<u32>,
    pub functions: Option<BufferFunctions>,
    /// All records are lost, without being counted as dropped.
    pub is_lossy: bool,
    /// The number of the last record.
    last: u64,
    /// Undelivered records by number.
    pub records: HashMap<u64, Record>,
    /// Numbers of records that are not in a buffer yet.
    unplaced: Vec<u64>,
    /// The client's buffers, oldest first.
    pub buffers: VecDeque<Buffer>,
    /// Records dropped since the client last asked.
    pub dropped: usize,
    pub flushes: u64,
}

/// Locks the state.
pub(crate) fn state() -> MutexGuard<'static, State> {
    static STATE: LazyLock<Mutex<State>> = LazyLock::new(Mutex::default);
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// Creates a record of this work if its kind is switched on. Returns the record's number, or 0.
    pub fn enqueued(&mut self, work: &ObservedWork) -> u64 {
        let Some(&kind) = kinds_of(work.kind).iter().find(|kind| self.kinds.contains(kind)) else {
            return 0;
        };
        if work.kind != WorkKind::Kernel && work.bytes == 0 {
            return 0;
        }
        self.last += 1;
        let number = self.last;
        self.records.insert(number, Record::new(kind, work, is_due(script().zero, number)));
        self.unplaced.push(number);
        number
    }

    /// Sets the times of a record.
    pub fn ended(&mut self, number: u64, times: ObservedTimes) {
        if let Some(record) = self.records.get_mut(&number) {
            record.times = Some(times);
        }
    }

    /// Removes and returns the numbers of the records of a call that are to be put into buffers.
    pub fn take_unplaced(&mut self, correlation: u32) -> Vec<u64> {
        let records = &self.records;
        let of_call =
            |number: &u64| records.get(number).is_some_and(|r| r.correlation() == correlation);
        let (taken, left) = std::mem::take(&mut self.unplaced).into_iter().partition(of_call);
        self.unplaced = left;
        let taken: Vec<u64> = taken;
        taken.into_iter().filter(|&number| self.survives(number)).collect()
    }

    /// Removes the record if the script drops or loses it. Returns `true` if the record remains.
    fn survives(&mut self, number: u64) -> bool {
        let (is_dropped, is_lost) = (is_due(script().drop, number), is_due(script().lose, number));
        if is_dropped {
            self.drop_record(number);
        } else if is_lost || self.is_lossy {
            self.records.remove(&number);
        }
        !is_dropped && !is_lost && !self.is_lossy
    }

    /// Drops a record, and counts it as dropped.
    pub fn drop_record(&mut self, number: u64) {
        self.records.remove(&number);
        self.dropped += 1;
    }

    /// Puts a record into the current buffer. Returns `false` if no buffer has enough space.
    pub fn place(&mut self, number: u64) -> bool {
        let Some(record) = self.records.get(&number) else { return true };
        let bytes = script().version.record_bytes(record.kind()).unwrap_or(0);
        let Some(buffer) = self.buffers.back_mut().filter(|buffer| !buffer.is_full) else {
            return false;
        };
        let limits = [buffer.max_records, script().records];
        let is_full = limits.iter().any(|&limit| limit != 0 && buffer.records.len() >= limit);
        if is_full || buffer.used + bytes > buffer.size {
            buffer.is_full = true;
            return false;
        }
        buffer.records.push(number);
        buffer.used += bytes;
        true
    }
}
