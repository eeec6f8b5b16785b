//! A lane: what one thread counts and has in hand.

use std::cell::Cell;
use std::ops::Deref;
use std::sync::{Mutex, MutexGuard};

use crate::base::fork;
use crate::base::lock::locked;
use crate::base::thread_id;
use crate::cuda::Context;
use crate::record::call_sums::CallStatuses;
use crate::record::recorder::Recorder;
use crate::site::callsite::CallSite;
use crate::site::counters::{Counts, Outcome, Slot};
use crate::site::registry;
use crate::stats::sampling::Population;
use crate::types::device::DeviceId;

/// Sites that may register after a thread's lane was made and still be counted in it.
const SPARE: usize = 16;

/// One thread's counters and brackets. Lanes live as long as the process: a lane whose thread has
/// gone serves the next new thread, with all that is still in flight in it.
///
/// Invariant: the slots have one writer, the lane's thread. The work is locked by that thread for
/// each step, and by whoever makes a report.
pub(crate) struct ThreadRecorder {
    slots: Box<[Slot]>,
    pub recorder: Mutex<Recorder<Context>>,
    /// Which of the lane's calls have returned.
    pub returns: CallStatuses,
}

struct Threads {
    all: Vec<&'static ThreadRecorder>,
    idle: Vec<&'static ThreadRecorder>,
}

static LANES: Mutex<Threads> = Mutex::new(Threads { all: Vec::new(), idle: Vec::new() });

/// Gives the lane back when its thread ends.
struct ThreadExit(&'static ThreadRecorder);

impl Drop for ThreadExit {
    fn drop(&mut self) {
        LANE.set(None);
        thread_id::mark_ending();
        if fork::is_forked() {
            // Another thread may have held a lock when the process was forked.
            return;
        }
        self.0.return_leases();
        locked(&LANES).idle.push(self.0);
    }
}

thread_local! {
    // These have no destructor and can be read as long as the thread runs at all.
    static LANE: Cell<Option<&'static ThreadRecorder>> = const { Cell::new(None) };
    static KEEPER: Cell<Option<ThreadExit>> = const { Cell::new(None) };
}

/// Counts a call on the calling thread.
#[inline]
pub(crate) fn count(site: &'static CallSite, outcome: Outcome) {
    match slot(site) {
        Some(slot) => slot.count(outcome),
        None => count_slowly(site, outcome),
    }
}

/// The calling thread's counters of the site, if it has a lane by now.
#[inline]
pub(crate) fn slot(site: &'static CallSite) -> Option<&'static Slot> {
    LANE.get()?.slots.get(site.id() as usize)
}

#[cold]
fn count_slowly(site: &'static CallSite, outcome: Outcome) {
    if fork::is_forked() {
        // Nobody reports here, and another thread may have held a lock when the process was forked.
        return;
    }
    current();
    match slot(site) {
        Some(slot) => slot.count(outcome),
        None => site.shared_counts.count(outcome),
    }
}

/// The calling thread's lane. Threads that are being torn down share one.
#[inline]
pub(crate) fn current() -> &'static ThreadRecorder {
    match LANE.get() {
        Some(thread) => thread,
        None => join(),
    }
}

#[cold]
fn join() -> &'static ThreadRecorder {
    if thread_id::is_ending() {
        return shared();
    }
    let thread = locked(&LANES).take();
    let cell = KEEPER.try_with(|keeper| keeper.set(Some(ThreadExit(thread))));
    if cell.is_err() {
        // The thread's destructors have run: nobody would give the lane back.
        thread_id::mark_ending();
        locked(&LANES).idle.push(thread);
        return shared();
    }
    LANE.set(Some(thread));
    thread
}

/// The lane of threads that have none any more. It counts nothing: its slots would have many writers.
fn shared() -> &'static ThreadRecorder {
    static SHARED: std::sync::OnceLock<&'static ThreadRecorder> = std::sync::OnceLock::new();
    SHARED.get_or_init(|| {
        let thread = leak(0);
        locked(&LANES).all.push(thread);
        thread
    })
}

fn leak(slots: usize) -> &'static ThreadRecorder {
    Box::leak(Box::new(ThreadRecorder {
        slots: (0..slots).map(|_| Slot::new()).collect(),
        recorder: Mutex::new(Recorder::default()),
        returns: CallStatuses::default(),
    }))
}

impl ThreadRecorder {
    /// Gives the warm-up calls back that the lane's thread has leased and will not make.
    fn return_leases(&self) {
        let leases = self.slots.iter().map(|slot| slot.take_lease(None)).enumerate();
        for (id, (device, calls)) in leases.filter_map(|(id, lease)| Some((id, lease?))) {
            let site = registry::sites().into_iter().find(|site| site.id() as usize == id);
            if let Some(site) = site {
                site.return_warmup(DeviceId::Cuda(device), calls);
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
    AllThreads(locked(&LANES))
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
    let mut counts = site.shared_counts.read();
    let mut population = site.shared_counts.population();
    for thread in threads_.iter() {
        if let Some(slot) = thread.slots.get(site.id() as usize) {
            counts.add(slot.read());
            population.add(slot.population());
        }
    }
    (counts, population)
}
