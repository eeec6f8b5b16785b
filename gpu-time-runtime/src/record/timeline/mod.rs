//! The most recent calls, brackets and kernels on the time axis, for a trace. Nothing is kept unless one of the
//! report targets is a trace.

mod ring;

use std::cell::Cell;
use std::collections::VecDeque;
use std::mem;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use crate::base::lock::{Mutex, Rank, locked};
use crate::base::{switches::SWITCHES, thread_id};
use crate::cuda;
use crate::record::stream_state::{NestingMark, StreamState};
use crate::site::{callsite::CallSite, series_id::SeriesId};
use crate::stats::clock_fit::Moment;
use crate::types::{activity::GpuWork, handles::Stream, sample::Sample};
use ring::Ring;

/// The number of most recent thread names to remember.
const MAX_THREADS: usize = 4_096;
/// The number of records to copy at once, chosen so that no thread waits long for the lock.
const AT_ONCE: usize = 1_024;

/// Identifies a call in the trace, counted from 1; 0 stands for an untraced call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallId(pub u64);

/// A call, shown on its thread.
#[derive(Clone, Copy)]
pub(crate) struct TracedCall {
    pub site: &'static CallSite,
    pub thread: u64,
    /// The host time at the start of the call.
    pub began_ns: u64,
    /// The host time at the end of the call; `None` while it is running.
    pub ended_ns: Option<u64>,
    /// Set for a warm-up call, of which only the start is known.
    pub is_warmup: bool,
}

/// The preparation that a bracket enqueued in front of its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BracketPreparation {
    /// The host time before it was enqueued.
    pub began_ns: u64,
    pub flushes: bool,
    pub holds: bool,
}

/// A measured bracket, shown on its stream.
#[derive(Clone, Copy)]
pub(crate) struct Slice {
    pub site: &'static CallSite,
    pub series: &'static SeriesId,
    pub stream: Stream,
    /// The stream's state, which may later be reassigned to another stream.
    pub stream_state: &'static StreamState,
    /// The thread, for a per-thread stream.
    pub thread_id: Option<u64>,
    pub call: CallId,
    pub sample: Sample,
    pub prepared: Option<BracketPreparation>,
    /// The times at which the GPU passed the start and the stop.
    pub passed: [Moment; 2],
    /// The marks from opening and closing the bracket on the stream state.
    pub marks: [NestingMark; 2],
    /// The host time after the stop record.
    pub enqueued_ns: u64,
}

/// A kernel, copy or memset of an opened call, shown on its stream.
#[derive(Clone, Copy)]
pub(crate) struct StreamWork {
    /// The innermost function that was active when the work was enqueued.
    pub site: &'static CallSite,
    pub call: CallId,
    /// The ordinal of the device.
    pub device: u32,
    /// CUPTI's ids of the context and the stream.
    pub context: u32,
    pub stream_id: u32,
    /// The stream, if known.
    pub stream: Option<Stream>,
    /// The work ran on a stream other than the one that the function names.
    pub elsewhere: bool,
    /// CUPTI's times, converted to host times with an error of at most `error_ns`.
    pub begin_ns: u64,
    pub end_ns: u64,
    pub error_ns: u64,
    pub work: &'static GpuWork,
}

struct Tracer {
    calls: Ring<TracedCall>,
    slices: Ring<Slice>,
    works: Ring<StreamWork>,
    threads: VecDeque<(u64, String)>,
    /// The number of samples whose place on the time axis is unknown.
    unplaced: u64,
}

/// A copy of the tracer's records, each with its number.
#[derive(Default)]
pub(crate) struct TraceRecords {
    pub calls: Vec<(u64, TracedCall)>,
    pub slices: Vec<(u64, Slice)>,
    pub works: Vec<(u64, StreamWork)>,
    pub threads: Vec<(u64, String)>,
    /// The number of all brackets, including dropped ones.
    pub brackets: u64,
    /// The number of all kernels, copies and memsets, including dropped ones.
    pub activities: u64,
    pub unplaced: u64,
}

static TRACER: Mutex<Tracer> = Mutex::new(
    Rank::Timeline,
    Tracer {
        calls: Ring::EMPTY,
        slices: Ring::EMPTY,
        works: Ring::EMPTY,
        threads: VecDeque::new(),
        unplaced: 0,
    },
);

thread_local! {
    static IS_NAMED: Cell<bool> = const { Cell::new(false) };
}

/// Turns on tracing of the last `last` calls, brackets and kernels. `None` turns tracing off and
/// drops all records. If tracing is already on, its size does not change.
pub(crate) fn set(last: Option<usize>) {
    if last.is_some() == is_on() {
        return;
    }
    if last.is_none() {
        SWITCHES.traced.store(false, Relaxed);
    }
    let most = last.unwrap_or(0);
    let mut tracer = locked(&TRACER);
    // The numbers continue, because earlier calls may still be running.
    let (calls, slices, works) = (tracer.calls.next(), tracer.slices.next(), tracer.works.next());
    let old = (
        mem::replace(&mut tracer.calls, Ring::new(most, calls)),
        mem::replace(&mut tracer.slices, Ring::new(most, slices)),
        // Allocated with the first item, because few programs open calls.
        mem::replace(&mut tracer.works, Ring::unallocated(most, works)),
    );
    tracer.unplaced = 0;
    drop(tracer);
    // Freed after the lock is released, because they may be large.
    drop(old);
    SWITCHES.traced.store(last.is_some(), Relaxed);
}

/// Returns `true` if tracing is on.
#[inline]
pub(crate) fn is_on() -> bool {
    SWITCHES.traced.load(Relaxed)
}

/// Records the start of a call on this thread.
#[inline]
pub(crate) fn begin(site: &'static CallSite) -> CallId {
    if is_on() { begin_call(site, false) } else { CallId::default() }
}

/// Records a warm-up call on this thread.
#[inline]
pub(crate) fn warmup(site: &'static CallSite) {
    if is_on() {
        begin_call(site, true);
    }
}

#[cold]
fn begin_call(site: &'static CallSite, is_warmup: bool) -> CallId {
    let thread = thread_id::current();
    let began_ns = cuda::now_ns();
    let name = new_name(thread);
    let mut tracer = locked(&TRACER);
    if let Some(name) = name {
        if tracer.threads.len() == MAX_THREADS {
            tracer.threads.pop_front();
        }
        tracer.threads.push_back((thread, name));
    }
    CallId(1 + tracer.calls.push(TracedCall { site, thread, began_ns, ended_ns: None, is_warmup }))
}

/// Returns the calling thread's name on the first call from that thread.
fn new_name(thread: u64) -> Option<String> {
    // `thread::current` must not be called while a thread is exiting.
    if IS_NAMED.get() || thread_id::is_ending() {
        return None;
    }
    IS_NAMED.set(true);
    let name = thread::current().name().map(str::to_owned);
    Some(name.unwrap_or_else(|| format!("thread {thread}")))
}

/// Records the end of a call.
#[inline]
pub(crate) fn end(call: CallId) {
    if call != CallId::default() {
        end_call(call);
    }
}

#[cold]
fn end_call(CallId(id): CallId) {
    let ended_ns = cuda::now_ns();
    if let Some(call) = locked(&TRACER).calls.get_mut(id - 1) {
        // If the clock went backwards, the call must still not end before it began.
        call.ended_ns = Some(ended_ns.max(call.began_ns));
    }
}

/// Records a measured bracket, or counts it as unplaced if the time at which the GPU passed it is
/// unknown.
#[cold]
pub(crate) fn record(slice: Option<Slice>) {
    let mut tracer = locked(&TRACER);
    match slice {
        Some(slice) => _ = tracer.slices.push(slice),
        None => tracer.unplaced += 1,
    }
}

/// Records the work of an opened call.
#[cold]
pub(crate) fn record_works(works: impl Iterator<Item = StreamWork>) {
    let mut works = works.peekable();
    while works.peek().is_some() {
        let mut tracer = locked(&TRACER);
        works.by_ref().take(AT_ONCE).for_each(|work| _ = tracer.works.push(work));
    }
}

/// Copies the current records. Later ones are left for the next trace.
pub(crate) fn records() -> TraceRecords {
    let mut records = TraceRecords::default();
    let (calls, slices, works) = {
        let tracer = locked(&TRACER);
        records.calls.reserve(tracer.calls.len());
        records.slices.reserve(tracer.slices.len());
        records.works.reserve(tracer.works.len());
        records.threads = tracer.threads.iter().cloned().collect();
        (records.brackets, records.unplaced) = (tracer.slices.pushed(), tracer.unplaced);
        records.activities = tracer.works.pushed();
        (tracer.calls.next(), tracer.slices.next(), tracer.works.next())
    };
    copy(slices, |from| locked(&TRACER).slices.copy(from, AT_ONCE, &mut records.slices));
    copy(works, |from| locked(&TRACER).works.copy(from, AT_ONCE, &mut records.works));
    copy(calls, |from| locked(&TRACER).calls.copy(from, AT_ONCE, &mut records.calls));
    records
}

/// Copies the items up to number `end` in turns, so that other threads get the lock in between.
fn copy(end: u64, mut from: impl FnMut(u64) -> u64) {
    let mut next = 0;
    while next < end {
        next = from(next);
    }
}

impl TraceRecords {
    /// Returns the number of brackets overwritten by later ones.
    pub fn dropped(&self) -> u64 {
        self.brackets.saturating_sub(self.slices.len() as u64)
    }

    /// Returns the number of kernels, copies and memsets overwritten by later ones.
    pub fn dropped_activities(&self) -> u64 {
        self.activities.saturating_sub(self.works.len() as u64)
    }

    /// Returns a note about anything missing from the trace, if any.
    pub fn note(&self) -> Option<String> {
        let mut notes = Vec::new();
        for (all, dropped, what) in [
            (self.brackets, self.dropped(), "brackets"),
            (self.activities, self.dropped_activities(), "kernels, copies and memsets"),
        ] {
            if dropped > 0 {
                notes.push(format!(
                    "the trace has the last {} of {all} {what}, and {dropped} were dropped; \
                     `GPU_TIME_TRACE_LAST` sets how many it keeps",
                    all - dropped,
                ));
            }
        }
        if self.unplaced > 0 {
            notes.push(format!(
                "the trace leaves out samples that cannot be placed in time: {}",
                self.unplaced
            ));
        }
        (!notes.is_empty()).then(|| notes.join("; "))
    }
}
