//! Per-thread recorders, each with one thread's counters, brackets and call sums.

use std::cell::Cell;

use crate::base::lock::{Mutex, MutexGuard, Rank, locked};
use crate::base::{fork, inside, thread_id};
use crate::cuda::Context;
use crate::record::open_brackets::RunningCall;
use crate::record::open_frames::{self, ThreadFrames};
use crate::record::recorder::Recorder;
use crate::record::timeline::CallId;
use crate::site::counters::{CallCounters, Lease};
use crate::site::thread_counters::ThreadCounters;
use crate::site::{callsite::CallSite, registry};
use crate::types::{handles::Stream, key::SeriesKey, workload::Workload};

/// One thread's counters and brackets. A recorder lives as long as the process. When its thread
/// ends, the next new thread reuses it, including anything still in flight.
///
/// Invariant: only the recorder's thread writes `counters`. `recorder` is locked by that thread for
/// each step, and by any thread that makes a report.
pub(crate) struct ThreadRecorder {
    pub counters: ThreadCounters,
    pub recorder: Mutex<Recorder<Context>>,
    /// The functions that the thread is inside of.
    pub frames: ThreadFrames,
}

/// One timed call on a stream: its site, thread, context and stream.
pub(crate) struct StreamCall {
    pub site: &'static CallSite,
    /// The recorder of the thread that began the call. All of the call's brackets stay with it.
    pub thread: &'static ThreadRecorder,
    pub context: &'static Context,
    pub stream: Stream,
    /// cudarc enqueues its own waits and records around the launches.
    pub tracked: bool,
    /// The call's id in the trace.
    pub call_id: CallId,
    /// The value that divides the site into series.
    pub key: SeriesKey,
    pub work: Workload,
    /// The number of calls that this call represents.
    pub weight: f32,
    /// The call on the thread's stack of running calls, if events time it.
    pub running: RunningCall,
}

/// All thread recorders, including those of ended threads.
struct Threads {
    all: Vec<&'static ThreadRecorder>,
    idle: Vec<&'static ThreadRecorder>,
    /// The recorder shared by all exiting threads, once it exists.
    shared: Option<&'static ThreadRecorder>,
}

static THREADS: Mutex<Threads> =
    Mutex::new(Rank::Threads, Threads { all: Vec::new(), idle: Vec::new(), shared: None });

/// Makes the recorder available for reuse when its thread ends.
struct ThreadExit(&'static ThreadRecorder);

impl Drop for ThreadExit {
    fn drop(&mut self) {
        CURRENT.set(None);
        COUNTERS.set(ThreadCounters::NONE);
        open_frames::leave_thread();
        thread_id::mark_ending();
        if fork::is_forked() {
            // Another thread may have held a lock when the process was forked.
            return;
        }
        let _inside = inside::enter();
        self.0.give_back_warmups();
        locked_threads().idle.push(self.0);
    }
}

thread_local! {
    // This has no destructor, so it can be read for as long as the thread runs.
    static CURRENT: Cell<Option<&'static ThreadRecorder>> = const { Cell::new(None) };
    // The counters of the current recorder, which every untimed call reads.
    static COUNTERS: Cell<ThreadCounters> = const { Cell::new(ThreadCounters::NONE) };
    static ON_EXIT: Cell<Option<ThreadExit>> = const { Cell::new(None) };
}

/// Returns the calling thread's counters for the site. Returns `None` if the thread has no recorder
/// yet, or if its recorder has no counters for this site yet.
#[inline(always)]
pub(crate) fn counters(site: &'static CallSite) -> Option<&'static CallCounters> {
    COUNTERS.get().get(site.id())
}

/// Returns the calling thread's counters for the site, which are allocated on first use. Returns `None` if the
/// thread is being torn down, or if the site registered after the thread's recorder was created.
pub(crate) fn allocated_counters(site: &'static CallSite) -> Option<&'static CallCounters> {
    current().counters.get_or_allocate(site.id())
}

/// Returns the calling thread's recorder, assigning one on first use. Exiting threads share one.
#[inline]
pub(crate) fn current() -> &'static ThreadRecorder {
    match CURRENT.get() {
        Some(thread) => thread,
        None => assign(),
    }
}

#[cold]
fn assign() -> &'static ThreadRecorder {
    if thread_id::is_ending() {
        return shared();
    }
    let thread = locked_threads().take();
    let registered = ON_EXIT.try_with(|cell| cell.set(Some(ThreadExit(thread))));
    if registered.is_err() {
        // The thread's destructors have already run, so nothing would release the recorder for
        // reuse.
        thread_id::mark_ending();
        locked_threads().idle.push(thread);
        return shared();
    }
    CURRENT.set(Some(thread));
    thread.frames.adopt();
    COUNTERS.set(thread.counters);
    thread
}

/// Returns the recorder shared by exiting threads. It has no call counters, because several threads
/// would write to them.
fn shared() -> &'static ThreadRecorder {
    let mut threads = locked_threads();
    threads.shared.unwrap_or_else(|| {
        let thread = new_recorder(ThreadCounters::NONE);
        threads.all.push(thread);
        *threads.shared.insert(thread)
    })
}

fn new_recorder(counters: ThreadCounters) -> &'static ThreadRecorder {
    Box::leak(Box::new(ThreadRecorder {
        counters,
        recorder: Mutex::new(Rank::Recorder, Recorder::default()),
        frames: ThreadFrames::new(),
    }))
}

impl ThreadRecorder {
    /// Gives back the warm-up calls that the thread has leased but not made.
    fn give_back_warmups(&self) {
        for (id, counters) in self.counters.iter() {
            if let Some(Lease { device, calls }) = counters.take_warmup()
                && let Some(site) = registry::site(id)
            {
                site.warmups.give_back(device, SeriesKey::NONE, calls);
            }
        }
    }
}

impl Threads {
    fn take(&mut self) -> &'static ThreadRecorder {
        if let Some(thread) = self.idle.pop() {
            return thread;
        }
        let thread = new_recorder(ThreadCounters::up_to(registry::len()));
        thread.frames.register();
        self.all.push(thread);
        thread
    }
}

/// Locks the list of all recorders. A thread that needs a new recorder must wait while this is
/// held.
fn locked_threads() -> MutexGuard<'static, Threads> {
    locked(&THREADS)
}

/// Returns every recorder. The list is copied, so that new threads can register while the recorders
/// are read or waited for.
pub(crate) fn all() -> Vec<&'static ThreadRecorder> {
    locked_threads().all.clone()
}
