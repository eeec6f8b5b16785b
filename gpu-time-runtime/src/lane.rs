//! A lane: what one thread counts and has in hand.

use std::cell::Cell;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};

use crate::calls::Returns;
use crate::counts::{Counts, Outcome, Slot};
use crate::cuda::Context;
use crate::lock::locked;
use crate::sampling::Population;
use crate::site::{CallSite, Device};
use crate::work::Work;
use crate::{exit, meter, registry, steer};

/// Sites that may register after a thread's lane was made and still be counted in it.
const SPARE: usize = 16;

/// So many calls at most are passed over before it is asked anew how they are sampled; with a budget,
/// which changes that, fewer.
const LONGEST_GAP: u64 = 4_096;
const LOOK: u64 = 64;

/// One thread's counters and brackets. Lanes live as long as the process: a lane whose thread has
/// gone serves the next new thread, with all that is still in flight in it.
///
/// Invariant: the slots have one writer, the lane's thread. The work is locked by that thread for
/// each step, and by whoever makes a report.
pub(crate) struct Lane {
    slots: Box<[Slot]>,
    pub work: Mutex<Work<Context>>,
    /// Which of the lane's calls have returned.
    pub returns: Returns,
}

struct Lanes {
    all: Vec<&'static Lane>,
    idle: Vec<&'static Lane>,
}

static LANES: Mutex<Lanes> = Mutex::new(Lanes { all: Vec::new(), idle: Vec::new() });

/// Gives the lane back when its thread ends.
struct Keeper(&'static Lane);

impl Drop for Keeper {
    fn drop(&mut self) {
        LANE.set(None);
        IS_ENDING.set(true);
        if exit::is_forked() {
            // Another thread may have held a lock when the process was forked.
            return;
        }
        self.0.return_leases();
        locked(&LANES).idle.push(self.0);
    }
}

thread_local! {
    // These have no destructor and can be read as long as the thread runs at all.
    static LANE: Cell<Option<&'static Lane>> = const { Cell::new(None) };
    static IS_ENDING: Cell<bool> = const { Cell::new(false) };
    static THREAD: Cell<u64> = const { Cell::new(0) };
    static KEEPER: Cell<Option<Keeper>> = const { Cell::new(None) };
}

/// Counts a call on the calling thread.
#[inline]
pub(crate) fn count(site: &'static CallSite, outcome: Outcome) {
    match slot(site) {
        Some(slot) => slot.count(outcome),
        None => count_slowly(site, outcome),
    }
}

/// Decides whether a call is timed where not all are: with which weight, if so. Else counts it.
#[inline]
pub(crate) fn draw(site: &'static CallSite) -> Option<f32> {
    if !site.is_sampled() {
        return Some(1.0);
    }
    match slot(site) {
        Some(slot) if slot.pass_over(site.epoch()) => None,
        slot => draw_slowly(site, slot),
    }
}

#[cold]
fn draw_slowly(site: &'static CallSite, known: Option<&'static Slot>) -> Option<f32> {
    if exit::is_forked() {
        return None;
    }
    let slot = known.or_else(|| {
        current();
        slot(site)
    });
    // The lane of a thread that is new may be in the middle of a gap of the thread that had it before.
    if known.is_none() && slot.is_some_and(|slot| slot.pass_over(site.epoch())) {
        return None;
    }
    let is_metered = meter::is_on();
    let _look = site.meter.look();
    if is_metered {
        // Before it is drawn, so that the call gains by what is decided.
        steer::look(site, slot.map_or(1, Slot::decided));
    }
    let weight = match slot {
        Some(slot) => {
            let longest = if is_metered { LOOK } else { LONGEST_GAP };
            slot.draw(site.sampling(), site.epoch(), longest)
        }
        None => site.shared_counts.draw(site.sampling()),
    };
    if is_metered && weight.is_some() {
        site.meter.count_timed();
    }
    weight
}

/// The calling thread's counters of the site, if it has a lane by now.
#[inline]
pub(crate) fn slot(site: &'static CallSite) -> Option<&'static Slot> {
    LANE.get()?.slots.get(site.id() as usize)
}

#[cold]
fn count_slowly(site: &'static CallSite, outcome: Outcome) {
    if exit::is_forked() {
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
pub(crate) fn current() -> &'static Lane {
    match LANE.get() {
        Some(lane) => lane,
        None => join(),
    }
}

#[cold]
fn join() -> &'static Lane {
    if IS_ENDING.get() {
        return shared();
    }
    let lane = locked(&LANES).take();
    let kept = KEEPER.try_with(|keeper| keeper.set(Some(Keeper(lane))));
    if kept.is_err() {
        // The thread's destructors have run: nobody would give the lane back.
        locked(&LANES).idle.push(lane);
        return shared();
    }
    LANE.set(Some(lane));
    lane
}

/// Whether the calling thread has a lane of its own, which it keeps until it is torn down.
pub(crate) fn is_own() -> bool {
    LANE.get().is_some()
}

/// The calling thread, by a number that no other thread ever has.
pub(crate) fn thread() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    match THREAD.get() {
        0 => {
            let thread = NEXT.fetch_add(1, Relaxed);
            THREAD.set(thread);
            thread
        }
        thread => thread,
    }
}

/// The lane of threads that have none any more. It counts nothing: its slots would have many writers.
fn shared() -> &'static Lane {
    static SHARED: std::sync::OnceLock<&'static Lane> = std::sync::OnceLock::new();
    SHARED.get_or_init(|| {
        let lane = leak(0);
        locked(&LANES).all.push(lane);
        lane
    })
}

fn leak(slots: usize) -> &'static Lane {
    Box::leak(Box::new(Lane {
        slots: (0..slots).map(|_| Slot::new()).collect(),
        work: Mutex::new(Work::default()),
        returns: Returns::default(),
    }))
}

impl Lane {
    /// Gives the warm-up calls back that the lane's thread has leased and will not make.
    fn return_leases(&self) {
        let leases = self.slots.iter().map(|slot| slot.take_lease(None)).enumerate();
        for (id, (device, calls)) in leases.filter_map(|(id, lease)| Some((id, lease?))) {
            let site = registry::sites().into_iter().find(|site| site.id() as usize == id);
            if let Some(site) = site {
                site.return_warmup(Device::Cuda(device), calls);
            }
        }
    }
}

impl Lanes {
    fn take(&mut self) -> &'static Lane {
        if let Some(lane) = self.idle.pop() {
            return lane;
        }
        let lane = leak(registry::len() + 1 + SPARE);
        self.all.push(lane);
        lane
    }
}

/// Every lane that there is.
pub(crate) fn all() -> AllLanes {
    AllLanes(locked(&LANES))
}

/// Every lane. A thread that needs a new one waits for as long as this is held.
pub(crate) struct AllLanes(MutexGuard<'static, Lanes>);

impl Deref for AllLanes {
    type Target = [&'static Lane];

    fn deref(&self) -> &Self::Target {
        &self.0.all
    }
}

/// What the threads of these lanes counted of a site, and what they sampled of it.
pub(crate) fn counts(site: &'static CallSite, lanes: &AllLanes) -> (Counts, Population) {
    let mut counts = site.shared_counts.read();
    let mut population = site.shared_counts.population();
    for lane in lanes.iter() {
        if let Some(slot) = lane.slots.get(site.id() as usize) {
            counts.add(slot.read());
            population.add(slot.population());
        }
    }
    (counts, population)
}
