//! Mutexes with a locking order that the project's tests assert.

use std::ops::{Deref, DerefMut};
use std::sync::{self, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

/// The locks of the runtime, in the order in which a thread may take them.
///
/// A thread that waits for a lock holds only locks that stand before it in this list, so no two
/// threads can wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// The values published through `metrics` so far. Held while the application's recorder runs.
    #[cfg(feature = "metrics")]
    Exported,
    /// Held while a report is made, so that reports do not overlap.
    Reporting,
    /// The SM clocks that this process has locked.
    #[cfg(feature = "nvml")]
    LockedClocks,
    /// Held while signal dispositions change.
    #[cfg(any(feature = "nvml", feature = "signals"))]
    SignalHandlers,
    /// The configuration in force. Held while it is applied to sites, the trace and the budget.
    Config,
    /// Requests to the thread that opens windows.
    #[cfg(feature = "kernels")]
    PhaseOrders,
    /// The cache states that runs of `until_stable` ask for.
    ColdOverrides,
    /// Held while a context that was not known before is set up.
    NewContext,
    /// A context's line probe. Held while its flush is verified.
    FlushProbe,
    /// A context's stream and events for calibration. Held while the context is calibrated.
    CalibrationTools,
    /// An opened call whose function is suspended.
    SuspendedCall,
    /// The sites of `tracing` spans, by callsite.
    #[cfg(feature = "tracing")]
    SpanSites,
    /// The opened calls and the windows that wait for records of their work. Held while these are matched.
    Records,
    /// The subscription to CUPTI, and the number of guards that keep recording on.
    #[cfg(feature = "kernels")]
    Cupti,
    /// The names of kernels. Held while CUPTI's records are read and handed over.
    #[cfg(feature = "kernels")]
    Activities,
    /// The recorders of all threads, including ended ones.
    Threads,
    /// The brackets and sums that one thread has in flight. A report locks one thread's at a time.
    Recorder,
    /// The timed nodes of graphs, with their events.
    Graphs,
    /// The series in which graph replays are counted. Never held during a driver call.
    GraphSeries,
    /// The budget controller and the sites that it steers.
    Budget,
    /// The default stream of all threads.
    DefaultStream,
    /// Every site of the process.
    Registry,
    /// The series of one site, with their samples.
    Series,
    /// The warm-ups of one site, by device.
    Warmups,
    /// The state that decides whether a site's holds get a deadline.
    HoldDeadline,
    /// The sampler of one site for threads without counters of their own.
    Sampler,
    /// The times of a function's calls by which it is known what timing adds.
    Trials,
    /// The streams of every context, with the nesting of their brackets.
    Streams,
    /// The calls and brackets that are kept for a trace.
    Timeline,
    /// Every context that was found. Never held during a driver call.
    Contexts,
    /// The state of a device clock. Held while it is read.
    DeviceClock,
    /// The last fit of a device clock to the host's.
    ClockFit,
    /// The events that measure the floor of a context.
    FloorEvents,
    /// The outcome of a context's calibration.
    Calibration,
    /// Idle host pages, given back by contexts that are gone.
    Pages,
    /// The first NVML reading of each device.
    #[cfg(feature = "nvml")]
    Devices,
    /// The readings of how far each device is in use.
    #[cfg(feature = "nvml")]
    Utilization,
    /// The configuration errors for the report's warnings.
    Complaints,
    /// What the worker thread does each second.
    Jobs,
    /// The files that this process has written its reports to. Never held while one is written.
    ReportFiles,
    /// The call tree.
    CallTree,
    /// The devices that CUPTI's records name, or that were in use during a phase.
    RecordedDevices,
    /// Opened calls that have ended since the last collection.
    EndedCalls,
    /// Opened calls that can be used again.
    IdleCalls,
    /// Held while CUPTI flushes, or switches what it records.
    #[cfg(feature = "kernels")]
    CuptiSwitches,
    /// The state of the fake GPU.
    #[cfg(test)]
    Fake,
    /// The number of ranks, which no lock has.
    #[cfg(debug_assertions)]
    Count,
}

/// A mutex with a [`Rank`]. Without debug assertions, just a `std` mutex.
#[derive(Debug)]
pub(crate) struct Mutex<T> {
    #[cfg(debug_assertions)]
    rank: Rank,
    inner: sync::Mutex<T>,
}

/// Access to the value of a [`Mutex`], which is locked until the guard is dropped.
#[derive(Debug)]
pub(crate) struct MutexGuard<'a, T> {
    inner: sync::MutexGuard<'a, T>,
    #[cfg(debug_assertions)]
    _held: order::Held,
}

impl<T> Mutex<T> {
    #[cfg_attr(not(debug_assertions), expect(unused_variables, reason = "ranks are not asserted"))]
    pub const fn new(rank: Rank, value: T) -> Self {
        Mutex {
            #[cfg(debug_assertions)]
            rank,
            inner: sync::Mutex::new(value),
        }
    }

    #[inline]
    fn guard<'a>(&self, inner: sync::MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        MutexGuard {
            inner,
            #[cfg(debug_assertions)]
            _held: order::Held::new(self.rank),
        }
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

/// Locks a mutex. Ignores poison, which a panic in the application's code may have left.
#[inline]
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    #[cfg(debug_assertions)]
    order::assert_may_lock(mutex.rank);
    mutex.guard(mutex.inner.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Locks a mutex if it is free, and ignores poison as [`locked`] does. Allowed in any order of ranks, because this
/// never waits.
pub(crate) fn try_locked<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.inner.try_lock() {
        Ok(guard) => Some(mutex.guard(guard)),
        Err(TryLockError::Poisoned(poisoned)) => Some(mutex.guard(poisoned.into_inner())),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Locks a mutex, or gives up at the deadline.
pub(crate) fn locked_by<T>(mutex: &Mutex<T>, deadline: Instant) -> Option<MutexGuard<'_, T>> {
    const PAUSE: Duration = Duration::from_micros(50);
    #[cfg(debug_assertions)]
    order::assert_may_lock(mutex.rank);
    loop {
        match try_locked(mutex) {
            None if Instant::now() < deadline => thread::sleep(PAUSE),
            attempt => return attempt,
        }
    }
}

/// The ranks of the locks that each thread holds.
#[cfg(debug_assertions)]
mod order {
    use std::cell::Cell;
    use std::sync::OnceLock;

    use super::Rank;
    use crate::base::inside;

    const RANKS: usize = Rank::Count as usize;

    thread_local! {
        // Without a destructor, so that locks can be taken until the thread ends.
        static HELD: [Cell<u32>; RANKS] = const { [const { Cell::new(0) }; RANKS] };
    }

    /// Returns `true` in the project's own tests. A debug build of an application must not panic here.
    fn is_asserted() -> bool {
        static IS_ASSERTED: OnceLock<bool> = OnceLock::new();
        let is_set = || std::env::var_os("GPU_TIME_TEST_LOCK_ORDER").is_some();
        cfg!(test) || *IS_ASSERTED.get_or_init(is_set)
    }

    /// Panics in tests if the calling thread holds a lock of this or a later rank. In tests of
    /// whole programs, also panics if the thread is not marked as inside the runtime.
    pub fn assert_may_lock(rank: Rank) {
        if !is_asserted() {
            return;
        }
        let is_marked = cfg!(test) || inside::is_inside();
        assert!(is_marked, "a lock of rank {rank:?} is taken outside of `base::inside`");
        let later = HELD.with(|held| held.iter().skip(rank as usize).any(|count| count.get() > 0));
        assert!(!later, "a lock of rank {rank:?} is taken under one of the same or a later rank");
    }

    /// A lock that the thread holds. Like the guard, it stays on its thread.
    #[derive(Debug)]
    pub struct Held(Rank);

    impl Held {
        pub fn new(rank: Rank) -> Held {
            count(rank, |count| count + 1);
            Held(rank)
        }
    }

    impl Drop for Held {
        fn drop(&mut self) {
            count(self.0, |count| count - 1);
        }
    }

    fn count(rank: Rank, change: impl FnOnce(u32) -> u32) {
        HELD.with(|held| {
            if let Some(count) = held.get(rank as usize) {
                count.set(change(count.get()));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn earlier() -> Mutex<()> {
        Mutex::new(Rank::Config, ())
    }

    fn later() -> Mutex<()> {
        Mutex::new(Rank::Budget, ())
    }

    #[test]
    fn increasing_ranks_are_accepted() {
        let (earlier, later) = (earlier(), later());
        let first = locked(&earlier);
        let second = locked(&later);
        drop(first);
        drop(second);
        drop(locked(&earlier));
    }

    #[cfg(debug_assertions)]
    #[test]
    #[should_panic = "a lock of rank Config is taken under one of the same or a later rank"]
    fn decreasing_ranks_panic() {
        let (earlier, later) = (earlier(), later());
        let _later = locked(&later);
        drop(locked(&earlier));
    }

    /// Every rank is checked, including the last one.
    #[cfg(debug_assertions)]
    #[test]
    #[should_panic = "a lock of rank Fake is taken under one of the same or a later rank"]
    fn equal_last_ranks_panic() {
        let [one, other] = [(); 2].map(|()| Mutex::new(Rank::Fake, ()));
        let _one = locked(&one);
        drop(locked(&other));
    }

    #[cfg(debug_assertions)]
    #[test]
    #[should_panic = "a lock of rank Config is taken under one of the same or a later rank"]
    fn equal_ranks_panic() {
        let [one, other] = [earlier(), earlier()];
        let _one = locked(&one);
        drop(locked(&other));
    }

    /// With this, every test that makes a report also asserts that it locks one thread's recorder at a time.
    #[cfg(debug_assertions)]
    #[test]
    #[should_panic = "a lock of rank Config is taken under one of the same or a later rank"]
    fn equal_ranks_panic_when_giving_up() {
        let [one, other] = [earlier(), earlier()];
        let _one = try_locked(&one).unwrap();
        locked_by(&other, Instant::now());
    }

    #[test]
    fn locked_by_gives_up_at_the_deadline() {
        let (one, (locked, is_locked)) = (earlier(), std::sync::mpsc::channel());
        thread::scope(|scope| {
            let held = try_locked(&one).unwrap();
            scope.spawn(|| locked.send(locked_by(&one, Instant::now()).is_some()));
            assert_eq!(is_locked.recv(), Ok(false));
            drop(held);
        });
        assert!(locked_by(&one, Instant::now()).is_some());
    }

    #[test]
    fn attempts_are_accepted_in_any_order() {
        let (earlier, later) = (earlier(), later());
        let _later = locked(&later);
        assert!(try_locked(&earlier).is_some());
    }

    #[test]
    fn poison_is_ignored() {
        let mutex = later();
        let panicked = std::panic::catch_unwind(|| {
            let _guard = locked(&mutex);
            panic!("planted");
        });
        assert!(panicked.is_err());
        drop(locked(&mutex));
        assert!(try_locked(&mutex).is_some() && locked_by(&mutex, Instant::now()).is_some());
    }

    #[test]
    fn ranks_cost_nothing_without_assertions() {
        if !cfg!(debug_assertions) {
            assert_eq!(size_of::<Mutex<u64>>(), size_of::<sync::Mutex<u64>>());
            assert_eq!(size_of::<MutexGuard<u64>>(), size_of::<sync::MutexGuard<u64>>());
        }
    }
}
