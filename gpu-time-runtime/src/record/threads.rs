//! A lane: what one thread counts and has in hand.

use std::cell::Cell;
use std::ops::Deref;

use crate::base::fork;
use crate::base::lock::{Mutex, MutexGuard, Rank, locked};
use crate::base::thread_id;
use crate::cuda::Context;
use crate::record::call_sums::CallStatuses;
use crate::record::recorder::Recorder;
use crate::site::callsite::CallSite;
use crate::site::counters::{CallCounters, Counts, Lease};
use crate::site::registry;
use crate::stats::sampling::Population;
use crate::types::key::SeriesKey;

/// Sites that may register after a thread's lane was made and still be counted in it.
const SPARE: usize = 16;

/// One thread's counters and brackets. Lanes live as long as the process: a lane whose thread has
/// gone serves the next new thread, with all that is still in flight in it.
///
/// Invariant: the slots have one writer, the lane's thread. The work is locked by that thread for
/// each step, and by whoever makes a report.
pub(crate) struct ThreadRecorder {
    counters: Box<[CallCounters]>,
    pub recorder: Mutex<Recorder<Context>>,
    /// Which of the lane's calls have returned.
    pub returns: CallStatuses,
}

struct Threads {
    all: Vec<&'static ThreadRecorder>,
    idle: Vec<&'static ThreadRecorder>,
}

static THREADS: Mutex<Threads> =
    Mutex::new(Rank::Threads, Threads { all: Vec::new(), idle: Vec::new() });

/// Gives the lane back when its thread ends.
struct ThreadExit(&'static ThreadRecorder);

impl Drop for ThreadExit {
    fn drop(&mut self) {
        CURRENT.set(None);
        thread_id::mark_ending();
        if fork::is_forked() {
            // Another thread may have held a lock when the process was forked.
            return;
        }
        self.0.give_back_warmups();
        locked(&THREADS).idle.push(self.0);
    }
}

thread_local! {
    // These have no destructor and can be read as long as the thread runs at all.
    static CURRENT: Cell<Option<&'static ThreadRecorder>> = const { Cell::new(None) };
    static ON_EXIT: Cell<Option<ThreadExit>> = const { Cell::new(None) };
}

/// The calling thread's counters of the site, if the thread has a recorder by now.
#[inline(always)]
pub(crate) fn counters(site: &'static CallSite) -> Option<&'static CallCounters> {
    CURRENT.get()?.counters.get(site.id() as usize)
}

/// The calling thread's lane. Threads that are being torn down share one.
#[inline]
pub(crate) fn current() -> &'static ThreadRecorder {
    match CURRENT.get() {
        Some(thread) => thread,
        None => join(),
    }
}

#[cold]
fn join() -> &'static ThreadRecorder {
    if thread_id::is_ending() {
        return shared();
    }
    let thread = locked(&THREADS).take();
    let cell = ON_EXIT.try_with(|keeper| keeper.set(Some(ThreadExit(thread))));
    if cell.is_err() {
        // The thread's destructors have run: nobody would give the lane back.
        thread_id::mark_ending();
        locked(&THREADS).idle.push(thread);
        return shared();
    }
    CURRENT.set(Some(thread));
    thread
}

/// The lane of threads that have none any more. It counts nothing: its slots would have many writers.
fn shared() -> &'static ThreadRecorder {
    static SHARED: std::sync::OnceLock<&'static ThreadRecorder> = std::sync::OnceLock::new();
    SHARED.get_or_init(|| {
        let thread = leak(0);
        locked(&THREADS).all.push(thread);
        thread
    })
}

fn leak(sites: usize) -> &'static ThreadRecorder {
    Box::leak(Box::new(ThreadRecorder {
        counters: (0..sites).map(|_| CallCounters::new()).collect(),
        recorder: Mutex::new(Rank::Recorder, Recorder::default()),
        returns: CallStatuses::default(),
    }))
}

impl ThreadRecorder {
    /// Gives back the warm-up calls that the thread has taken for itself and will not make.
    fn give_back_warmups(&self) {
        for (id, counters) in self.counters.iter().enumerate() {
            if let Some(Lease { device, calls }) = counters.take_warmup()
                && let Some(site) = registry::site(id as u32)
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
        let thread = leak(registry::len() + 1 + SPARE);
        self.all.push(thread);
        thread
    }
}

/// Every lane that there is.
pub(crate) fn all() -> AllThreads {
    AllThreads(locked(&THREADS))
}

/// Every lane. A thread that needs a new one waits for as long as this is held.
pub(crate) struct AllThreads(MutexGuard<'static, Threads>);

impl Deref for AllThreads {
    type Target = [&'static ThreadRecorder];

    fn deref(&self) -> &Self::Target {
        &self.0.all
    }
}

/// What the threads of these lanes counted of a site, and what they sampled of it.
pub(crate) fn counts(site: &'static CallSite, threads_: &AllThreads) -> (Counts, Population) {
    let mut counts = site.shared_counters.read();
    let mut population = site.shared_counters.population();
    for thread in threads_.iter() {
        if let Some(counters) = thread.counters.get(site.id() as usize) {
            counts.add(counters.read());
            population.add(counters.population());
        }
    }
    (counts, population)
}
