//! Keeps flushes of CUPTI, and switches of what it records, apart from calls of the driver that load code.
//!
//! CUPTI does not do so itself. A thread that loads a module holds a lock of the driver, and waits for one of
//! CUPTI. One that switches a kind of activity holds a lock of CUPTI, and waits for another one. CUPTI's own
//! thread holds that while it completes records, and waits for the driver's. None of them goes on (seen
//! with CUPTI 13.0 Update 1).

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use crate::base::lock::{Mutex, MutexGuard, Rank, locked};

/// The functions that load and unload code, or make and destroy contexts, which do so too. The ids are
/// those of `cupti_driver_cbid.h`, which never change.
///
/// Look-ups such as `cuModuleGetFunction` may load code the first time. They are left out, because some
/// programs make one for every launch, and a callback costs more than a tenth of a microsecond.
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
const PAUSE: Duration = Duration::from_micros(50);

/// Lets either switch or load.
struct Turns {
    /// Held by [`Alone`].
    switches: Mutex<()>,
    /// The threads inside one of [`LOADS`].
    loading: AtomicUsize,
    /// A thread has waited for them in vain.
    are_long: AtomicBool,
}

static TURNS: Turns = Turns::new();

thread_local! {
    /// The number of times that the thread is inside one of [`LOADS`], or has [`Alone`]. Without a destructor, so that it
    /// can be read as long as the thread runs at all.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// The right to call those functions of CUPTI that wait for its own thread. Meanwhile no thread is inside
/// one of [`LOADS`].
#[must_use]
pub(super) struct Alone {
    _switches: MutexGuard<'static, ()>,
}

impl Drop for Alone {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get().saturating_sub(1));
    }
}

/// Returns the right if no thread is loading.
pub(super) fn alone() -> Option<Alone> {
    TURNS.alone()
}

/// Waits until no thread is loading, but at most this long, and not for those that others have waited for in
/// vain.
pub(super) fn wait(patience: Duration) {
    TURNS.wait(patience);
}

/// Returns `true` if a thread has waited in vain for those that are loading.
pub(super) fn are_long() -> bool {
    TURNS.are_long.load(SeqCst)
}

/// Returns `true` for a function that loads or unloads code.
pub(super) fn is_load(id: u32) -> bool {
    LOADS.binary_search(&id).is_ok()
}

/// Notes that such a function begins, before it takes any lock. Waits while another thread has [`Alone`].
pub(super) fn begin() {
    TURNS.begin();
}

/// Notes that such a function ends.
pub(super) fn end() {
    TURNS.end();
}

impl Turns {
    const fn new() -> Turns {
        Turns {
            switches: Mutex::new(Rank::CuptiSwitches, ()),
            loading: AtomicUsize::new(0),
            are_long: AtomicBool::new(false),
        }
    }

    fn alone(&'static self) -> Option<Alone> {
        if DEPTH.get() > 0 {
            return None;
        }
        let switches = locked(&self.switches);
        if self.loading.load(SeqCst) > 0 {
            return None;
        }
        DEPTH.set(1);
        Some(Alone { _switches: switches })
    }

    fn wait(&self, patience: Duration) {
        let is_loading = || self.loading.load(SeqCst) > 0;
        if DEPTH.get() > 0 || !is_loading() || self.are_long.load(SeqCst) {
            return;
        }
        let deadline = Instant::now() + patience;
        while is_loading() {
            if Instant::now() >= deadline {
                return self.are_long.store(true, SeqCst);
            }
            thread::sleep(PAUSE);
        }
    }

    fn begin(&self) {
        let depth = DEPTH.get();
        DEPTH.set(depth + 1);
        if depth == 0 {
            // A thread that locks it from here on sees the number.
            self.loading.fetch_add(1, SeqCst);
            drop(locked(&self.switches));
        }
    }

    fn end(&self) {
        // Without a depth, its beginning was not seen.
        if let Some(depth) = DEPTH.get().checked_sub(1) {
            DEPTH.set(depth);
            if depth == 0 && self.loading.fetch_sub(1, SeqCst) == 1 {
                self.are_long.store(false, SeqCst);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

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
        static TURNS: Turns = Turns::new();
        let (tell, told) = mpsc::channel();
        let alone = TURNS.alone().unwrap();
        let loading = thread::spawn(move || {
            TURNS.begin();
            tell.send("loading").unwrap();
            TURNS.end();
        });
        while TURNS.loading.load(SeqCst) == 0 {
            thread::yield_now();
        }
        assert!(told.try_recv().is_err());
        drop(alone);
        assert_eq!(told.recv(), Ok("loading"));
        loading.join().unwrap();
        assert!(TURNS.alone().is_some());
    }

    #[test]
    fn nothing_is_switched_before_all_loads_have_ended() {
        static TURNS: Turns = Turns::new();
        let other = || thread::spawn(|| TURNS.alone().is_some()).join().unwrap();
        TURNS.begin();
        TURNS.begin();
        assert!(!other());
        TURNS.end();
        assert!(!other());
        let waiting = thread::spawn(|| {
            TURNS.wait(LONG);
            TURNS.alone().is_some()
        });
        TURNS.end();
        assert!(waiting.join().unwrap());
        assert!(other());
    }

    #[test]
    fn load_that_takes_long_is_waited_for_once() {
        static TURNS: Turns = Turns::new();
        let wait = |patience| thread::spawn(move || TURNS.wait(patience)).join().unwrap();
        TURNS.begin();
        wait(Duration::from_millis(1));
        // Would not return.
        wait(LONG);
        TURNS.end();
        assert!(!TURNS.are_long.load(SeqCst));
    }

    #[test]
    fn thread_that_loads_does_not_wait_for_itself() {
        static TURNS: Turns = Turns::new();
        TURNS.begin();
        TURNS.wait(LONG);
        assert!(TURNS.alone().is_none());
        TURNS.end();
        // CUPTI itself may load code while it switches.
        let alone = TURNS.alone().unwrap();
        TURNS.begin();
        TURNS.end();
        drop(alone);
        assert!(TURNS.alone().is_some());
        // A beginning that was not seen.
        TURNS.end();
        assert!(TURNS.alone().is_some());
    }
}
