//! The last calls and brackets with their places in time, for a trace. Nothing is kept and nothing is
//! done where no report target asks for one.

mod ring;

use std::cell::Cell;
use std::collections::VecDeque;
use std::mem;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use crate::base::lock::{Mutex, Rank, locked};
use crate::base::switches::SWITCHES;
use crate::base::thread_id;
use crate::cuda;
use crate::record::stream_state::{Mark, StreamState};
use crate::site::callsite::CallSite;
use crate::site::series_id::SeriesId;
use crate::stats::clock_fit::Moment;
use crate::types::handles::Stream;
use crate::types::sample::Sample;
use ring::Ring;

/// Threads whose names are remembered, the newest.
const MOST_THREADS: usize = 4_096;
/// So many are copied together, so that no thread waits for long.
const AT_ONCE: usize = 1_024;

/// A call that the trace shows, by its number from 1; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CallId(pub u64);

/// A call on its thread.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    pub site: &'static CallSite,
    pub thread: u64,
    /// The host's times. A call that has not returned has no end.
    pub began_ns: u64,
    pub ended_ns: Option<u64>,
}

/// A measured bracket on its stream.
#[derive(Clone, Copy)]
pub(crate) struct Slice {
    pub site: &'static CallSite,
    pub series: &'static SeriesId,
    /// Its stream. A track serves another once there have been many.
    pub stream: Stream,
    pub stream_state: &'static StreamState,
    /// The thread, of a stream that each thread has its own of.
    pub thread_id: Option<u64>,
    pub call: CallId,
    pub sample: Sample,
    /// When the GPU passed its start and its stop.
    pub passed: [Moment; 2],
    /// What the track was like when it began and ended.
    pub marks: [Mark; 2],
    /// The host's time after the stop record.
    pub enqueued_ns: u64,
}

struct Tracer {
    calls: Ring<Call>,
    slices: Ring<Slice>,
    threads: VecDeque<(u64, String)>,
    /// Samples whose place in time is not known.
    unplaced: u64,
}

/// What was kept, with the number of each.
#[derive(Default)]
pub(crate) struct Recorded {
    pub calls: Vec<(u64, Call)>,
    pub slices: Vec<(u64, Slice)>,
    pub threads: Vec<(u64, String)>,
    /// Brackets that there ever were.
    pub brackets: u64,
    pub unplaced: u64,
}

static TRACER: OnceLock<Mutex<Tracer>> = OnceLock::new();

thread_local! {
    static IS_NAMED: Cell<bool> = const { Cell::new(false) };
}

/// Keeps the last so many calls and brackets from here on, as many as it does if it does so already; `None`:
/// keeps nothing, and forgets what it kept.
pub(crate) fn set(last: Option<usize>) {
    if last.is_some() == is_on() {
        return;
    }
    let (calls, slices) = (Ring::new(0, 0), Ring::new(0, 0));
    let tracer = TRACER.get_or_init(|| {
        Mutex::new(Rank::Timeline, Tracer { calls, slices, threads: VecDeque::new(), unplaced: 0 })
    });
    if last.is_none() {
        SWITCHES.traced.store(false, Relaxed);
    }
    let most = last.unwrap_or(0);
    let mut tracer = locked(tracer);
    // The numbers go on: calls of before are under way.
    let (calls, slices) = (tracer.calls.next(), tracer.slices.next());
    let old = (
        mem::replace(&mut tracer.calls, Ring::new(most, calls)),
        mem::replace(&mut tracer.slices, Ring::new(most, slices)),
    );
    tracer.unplaced = 0;
    drop(tracer);
    // Large as they may be, nobody waits for that.
    drop(old);
    SWITCHES.traced.store(last.is_some(), Relaxed);
}

/// Whether they are kept.
#[inline]
pub(crate) fn is_on() -> bool {
    SWITCHES.traced.load(Relaxed)
}

/// A call begins on this thread.
#[inline]
pub(crate) fn begin(site: &'static CallSite) -> CallId {
    if is_on() { begin_call(site) } else { CallId::default() }
}

#[cold]
fn begin_call(site: &'static CallSite) -> CallId {
    let Some(tracer) = TRACER.get() else { return CallId::default() };
    let thread = thread_id::current();
    let began_ns = cuda::now_ns();
    let name = new_name(thread);
    let mut tracer = locked(tracer);
    if let Some(name) = name {
        if tracer.threads.len() == MOST_THREADS {
            tracer.threads.pop_front();
        }
        tracer.threads.push_back((thread, name));
    }
    CallId(1 + tracer.calls.push(Call { site, thread, began_ns, ended_ns: None }))
}

/// The name of the calling thread, if nobody has asked before.
fn new_name(thread: u64) -> Option<String> {
    // A thread that is being torn down must not be asked.
    if IS_NAMED.get() || thread_id::is_ending() {
        return None;
    }
    IS_NAMED.set(true);
    let name = thread::current().name().map(str::to_owned);
    Some(name.unwrap_or_else(|| format!("thread {thread}")))
}

/// The call has ended.
#[inline]
pub(crate) fn end(call: CallId) {
    if call != CallId::default() {
        end_call(call);
    }
}

#[cold]
fn end_call(CallId(id): CallId) {
    let ended_ns = cuda::now_ns();
    if let Some(tracer) = TRACER.get()
        && let Some(call) = locked(tracer).calls.get_mut(id - 1)
    {
        // A clock that steps back does not make a call end before it began.
        call.ended_ns = Some(ended_ns.max(call.began_ns));
    }
}

/// Keeps a measured bracket, or counts it where its place in time is not known.
#[cold]
pub(crate) fn keep(slice: Option<Slice>) {
    let Some(tracer) = TRACER.get() else { return };
    let mut tracer = locked(tracer);
    match slice {
        Some(slice) => _ = tracer.slices.push(slice),
        None => tracer.unplaced += 1,
    }
}

/// What is kept now. What comes meanwhile is for the next trace.
pub(crate) fn recorded() -> Recorded {
    let Some(tracer) = TRACER.get() else { return Recorded::default() };
    let mut recorded = Recorded::default();
    let (calls, slices) = {
        let tracer = locked(tracer);
        recorded.calls.reserve(tracer.calls.len());
        recorded.slices.reserve(tracer.slices.len());
        recorded.threads = tracer.threads.iter().cloned().collect();
        (recorded.brackets, recorded.unplaced) = (tracer.slices.pushed(), tracer.unplaced);
        (tracer.calls.next(), tracer.slices.next())
    };
    let mut next = 0;
    while next < slices {
        next = locked(tracer).slices.copy(next, AT_ONCE, &mut recorded.slices);
    }
    next = 0;
    while next < calls {
        next = locked(tracer).calls.copy(next, AT_ONCE, &mut recorded.calls);
    }
    recorded
}

impl Recorded {
    /// Brackets that made place for later ones.
    pub fn dropped(&self) -> u64 {
        self.brackets.saturating_sub(self.slices.len() as u64)
    }

    /// What the trace lacks, if anything.
    pub fn note(&self) -> Option<String> {
        let dropped = self.dropped();
        let mut notes = Vec::new();
        if dropped > 0 {
            notes.push(format!(
                "the trace has the last {} of {} brackets, and {dropped} were dropped; \
                 `GPU_TIME_TRACE_LAST` sets how many it keeps",
                self.slices.len(),
                self.brackets
            ));
        }
        if self.unplaced > 0 {
            notes.push(format!(
                "the trace leaves out samples whose place in time is not known: {}",
                self.unplaced
            ));
        }
        (!notes.is_empty()).then(|| notes.join("; "))
    }
}
