//! Keeps flushes of CUPTI, and switches of what it records, apart from calls of the driver that load code.
//!
//! CUPTI does not do so itself. A thread that loads a module holds a lock of the driver, and waits for one of
//! CUPTI. One that switches a kind of activity holds a lock of CUPTI, and waits for another one. CUPTI's own
//! thread holds that while it completes records, and waits for the driver's. They wait for ever (seen with
//! CUPTI 13.0 Update 1).

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use crate::base::lock::{Mutex, MutexGuard, Rank, locked};

/// The functions that load and unload code, or make and destroy contexts, which do so too. The ids are
/// those of `cupti_driver_cbid.h`, which never change.
#[rustfmt::skip]
pub(super) const LOADS: [u32; 23] = [
    18,  // cuModuleLoad
    19,  // cuModuleLoadData
    20,  // cuModuleLoadDataEx
    21,  // cuModuleLoadFatBinary
    22,  // cuModuleUnload
    23,  // cuModuleGetFunction, which loads it
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
    681, // cuLibraryGetKernel
    682, // cuLibraryGetModule
    683, // cuKernelGetFunction
    742, // cuFuncLoad
    743, // cuGreenCtxCreate
    757, // cuCtxCreate_v4
];
const PAUSE: Duration = Duration::from_micros(50);

/// Lets either switch or load.
struct Turns {
    /// Held by [`Alone`].
    switches: Mutex<()>,
    /// The threads inside one of [`LOADS`].
    loading: AtomicUsize,
}

static TURNS: Turns = Turns::new();

thread_local! {
    /// How often the thread is inside one of [`LOADS`], or has [`Alone`]. Without a destructor, so that it
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
        DEPTH.set(DEPTH.get() - 1);
    }
}

/// Waits for other threads to finish loading. `None` if they take longer than this, or if the thread loads
/// itself.
pub(super) fn wait(patience: Duration) -> Option<Alone> {
    TURNS.wait(patience)
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
        Turns { switches: Mutex::new(Rank::CuptiSwitches, ()), loading: AtomicUsize::new(0) }
    }

    fn wait(&'static self, patience: Duration) -> Option<Alone> {
        let mut deadline = None;
        loop {
            if DEPTH.get() > 0 {
                return None;
            }
            let switches = locked(&self.switches);
            if self.loading.load(SeqCst) == 0 {
                DEPTH.set(1);
                return Some(Alone { _switches: switches });
            }
            drop(switches);
            let deadline = *deadline.get_or_insert_with(|| Instant::now() + patience);
            if Instant::now() >= deadline {
                return None;
            }
            thread::sleep(PAUSE);
        }
    }

    fn begin(&self) {
        let depth = DEPTH.get();
        DEPTH.set(depth + 1);
        if depth == 0 {
            // Whoever locks it from here on sees the number.
            self.loading.fetch_add(1, SeqCst);
            drop(locked(&self.switches));
        }
    }

    fn end(&self) {
        // Without a depth, its beginning was not seen.
        if let Some(depth) = DEPTH.get().checked_sub(1) {
            DEPTH.set(depth);
            if depth == 0 {
                self.loading.fetch_sub(1, SeqCst);
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
        let alone = TURNS.wait(LONG).unwrap();
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
        assert!(TURNS.wait(Duration::ZERO).is_some());
    }

    #[test]
    fn switch_waits_for_all_loads_or_gives_up() {
        static TURNS: Turns = Turns::new();
        let other = || thread::spawn(|| TURNS.wait(Duration::ZERO).is_some()).join().unwrap();
        TURNS.begin();
        TURNS.begin();
        assert!(!other());
        TURNS.end();
        assert!(!other());
        let waiting = thread::spawn(|| TURNS.wait(LONG).is_some());
        TURNS.end();
        assert!(waiting.join().unwrap());
        assert!(other());
    }

    #[test]
    fn thread_that_loads_does_not_wait_for_itself() {
        static TURNS: Turns = Turns::new();
        TURNS.begin();
        assert!(TURNS.wait(LONG).is_none());
        TURNS.end();
        // CUPTI itself may load code while it switches.
        let alone = TURNS.wait(LONG).unwrap();
        TURNS.begin();
        TURNS.end();
        drop(alone);
        assert!(TURNS.wait(LONG).is_some());
        // A beginning that was not seen.
        TURNS.end();
        assert!(TURNS.wait(LONG).is_some());
    }
}
