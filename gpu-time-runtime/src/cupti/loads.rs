//! Prevents deadlocks in CUPTI: it is never flushed, and no kind of activity is switched on or off, while a driver
//! call loads code.
//!
//! Otherwise, three threads may wait for each other forever (seen with CUPTI 13.0 Update 1). A thread that loads a
//! module holds a driver lock and waits for a CUPTI lock. A thread that switches a kind of activity holds that CUPTI
//! lock and waits for a second one. CUPTI's own thread holds the second lock while it completes records, and waits
//! for the driver lock.
//!
//! The callbacks for these calls are switched on right after the subscription. A load that is under way at that
//! moment is not seen, so nothing is switched for some milliseconds after it.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use crate::base::clock;
use crate::base::lock::{Mutex, MutexGuard, Rank, locked};
use crate::cupti::gate::{Entry, GATE};

/// The driver functions that load or unload code, including the functions that create or destroy contexts. The ids
/// are from `cupti_driver_cbid.h` and never change.
///
/// Look-ups such as `cuModuleGetFunction` may load code the first time. They are left out, because some programs make
/// a look-up for every launch, and a callback costs more than a tenth of a microsecond.
#[rustfmt::skip]
pub(super) const LOADS: [u32; 20] = [
    18,  // cuModuleLoad
    19,  // cuModuleLoadData
    20,  // cuModuleLoadDataEx
    21,  // cuModuleLoadFatBinary
    22,  // cuModuleUnload
    235, // cuCtxCreate_v2
    322, // cuCtxDestroy_v2
    386, // cuDevicePrimaryCtxRetain
    387, // cuDevicePrimaryCtxRelease
    389, // cuDevicePrimaryCtxReset
    544, // cuDevicePrimaryCtxRelease_v2
    545, // cuDevicePrimaryCtxReset_v2
    645, // cuCtxCreate_v3
    678, // cuLibraryLoadData
    679, // cuLibraryLoadFromFile
    680, // cuLibraryUnload
    742, // cuFuncLoad
    743, // cuGreenCtxCreate
    744, // cuGreenCtxDestroy
    757, // cuCtxCreate_v4
];

/// A lock between threads that use CUPTI and threads that load code. Several threads may load at the same time.
pub(super) struct LoadLock {
    /// Held by a [`Permit`].
    switches: Mutex<()>,
    /// The number of threads inside one of [`LOADS`].
    loading: AtomicUsize,
    /// Set if a thread has waited in vain for the current loads to end.
    have_timed_out: AtomicBool,
}

pub(super) static LOAD_LOCK: LoadLock = LoadLock::new();

thread_local! {
    /// The number of nested [`LOADS`] that the thread is inside, plus 1 if it holds a [`Permit`]. Without a
    /// destructor, so that it can be read as long as the thread runs.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// The right to call the CUPTI functions that wait for CUPTI's own thread. While it is held, no thread is inside one
/// of [`LOADS`].
#[must_use]
pub(super) struct Permit {
    _switches: MutexGuard<'static, ()>,
    _entry: Entry,
}

impl Drop for Permit {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get().saturating_sub(1));
    }
}

/// Returns `true` if this is the id of a function in [`LOADS`].
pub(super) fn is_load(id: u32) -> bool {
    LOADS.binary_search(&id).is_ok()
}

impl LoadLock {
    const fn new() -> LoadLock {
        LoadLock {
            switches: Mutex::new(Rank::CuptiSwitches, ()),
            loading: AtomicUsize::new(0),
            have_timed_out: AtomicBool::new(false),
        }
    }

    /// Returns a [`Permit`], or `None` if a thread is loading code, or once CUPTI must not be called any more. May
    /// wait for another thread that has a permit.
    pub fn permit(&'static self) -> Option<Permit> {
        if DEPTH.get() > 0 {
            return None;
        }
        let switches = locked(&self.switches);
        if self.loading.load(SeqCst) > 0 {
            return None;
        }
        let entry = GATE.enter()?;
        DEPTH.set(1);
        Some(Permit { _switches: switches, _entry: entry })
    }

    /// Waits until no thread is loading code, for at most `patience`. Does not wait for loads for which a thread has
    /// already waited in vain.
    pub fn wait(&self, patience: Duration) {
        let is_done = || self.loading.load(SeqCst) == 0;
        let is_in_vain = DEPTH.get() > 0 || self.have_timed_out();
        if !is_in_vain && !clock::wait_until(Instant::now() + patience, clock::BRIEFLY, is_done) {
            self.have_timed_out.store(true, SeqCst);
        }
    }

    /// Returns `true` if a thread has waited in vain for the current loads to end.
    pub fn have_timed_out(&self) -> bool {
        self.have_timed_out.load(SeqCst)
    }

    /// Notes that one of [`LOADS`] begins, before it takes any driver lock. Waits while another thread holds a
    /// [`Permit`].
    pub fn begin(&self) {
        let depth = DEPTH.get();
        DEPTH.set(depth + 1);
        if depth == 0 {
            // A thread that locks `switches` after this sees the new count and does not proceed.
            self.loading.fetch_add(1, SeqCst);
            drop(locked(&self.switches));
        }
    }

    /// Notes that one of [`LOADS`] ends.
    pub fn end(&self) {
        // At depth 0, the beginning of this call was not seen.
        if let Some(depth) = DEPTH.get().checked_sub(1) {
            DEPTH.set(depth);
            if depth == 0 && self.loading.fetch_sub(1, SeqCst) == 1 {
                self.have_timed_out.store(false, SeqCst);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use std::thread;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn functions_are_found_by_their_ids() {
        assert!(LOADS.is_sorted());
        assert!(LOADS.into_iter().all(is_load));
        assert!(![0, 307, 539].into_iter().any(is_load));
    }

    #[test]
    fn load_waits_for_a_switch() {
        static LOAD_LOCK: LoadLock = LoadLock::new();
        let (tell, told) = mpsc::channel();
        let permit = LOAD_LOCK.permit().unwrap();
        let loading = thread::spawn(move || {
            LOAD_LOCK.begin();
            tell.send("loading").unwrap();
            LOAD_LOCK.end();
        });
        while LOAD_LOCK.loading.load(SeqCst) == 0 {
            thread::yield_now();
        }
        assert!(told.try_recv().is_err());
        drop(permit);
        assert_eq!(told.recv(), Ok("loading"));
        loading.join().unwrap();
        assert!(LOAD_LOCK.permit().is_some());
    }

    #[test]
    fn nothing_is_switched_before_all_loads_have_ended() {
        static LOAD_LOCK: LoadLock = LoadLock::new();
        let other = || thread::spawn(|| LOAD_LOCK.permit().is_some()).join().unwrap();
        LOAD_LOCK.begin();
        LOAD_LOCK.begin();
        assert!(!other());
        LOAD_LOCK.end();
        assert!(!other());
        let waiting = thread::spawn(|| {
            LOAD_LOCK.wait(LONG);
            LOAD_LOCK.permit().is_some()
        });
        LOAD_LOCK.end();
        assert!(waiting.join().unwrap());
        assert!(other());
    }

    #[test]
    fn load_that_takes_long_is_waited_for_once() {
        static LOAD_LOCK: LoadLock = LoadLock::new();
        let wait = |patience| thread::spawn(move || LOAD_LOCK.wait(patience)).join().unwrap();
        LOAD_LOCK.begin();
        wait(Duration::from_millis(1));
        // Another wait would not return.
        wait(LONG);
        LOAD_LOCK.end();
        assert!(!LOAD_LOCK.have_timed_out.load(SeqCst));
    }

    #[test]
    fn thread_that_loads_does_not_wait_for_itself() {
        static LOAD_LOCK: LoadLock = LoadLock::new();
        LOAD_LOCK.begin();
        LOAD_LOCK.wait(LONG);
        assert!(LOAD_LOCK.permit().is_none());
        LOAD_LOCK.end();
        // CUPTI itself may load code while it switches.
        let permit = LOAD_LOCK.permit().unwrap();
        LOAD_LOCK.begin();
        LOAD_LOCK.end();
        drop(permit);
        assert!(LOAD_LOCK.permit().is_some());
        // The end of a load whose beginning was not seen.
        LOAD_LOCK.end();
        assert!(LOAD_LOCK.permit().is_some());
    }
}
