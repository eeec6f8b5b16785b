//! Windows in virtual time. The runtime opens windows by real time, whereas virtual time passes as
//! fast as the machine runs, so a busy machine would open more windows in some parts of a period
//! than in others. The program therefore stands still until a window has been opened or closed.

use std::mem;
use std::thread;
use std::time::Duration;

use crate::time;

const WINDOWS: u32 = 40;
/// The virtual length of a window, and the longest virtual pause between two windows.
const LENGTH_NS: u64 = 4_000_000;
const MOST_PAUSE_NS: u64 = 32_000_000;
/// The real length of a window. Its virtual length usually passes sooner, and the program then
/// waits for the window to end.
const REAL: Duration = Duration::from_millis(50);
const STEP: Duration = Duration::from_millis(1);

/// Windows that are opened and closed at random moments of virtual time.
pub(super) struct Windows {
    left: u32,
    is_open: bool,
    /// The virtual time at which to open or close a window next.
    next_ns: u64,
    random: fastrand::Rng,
    cupti: Cupti,
}

impl Windows {
    pub(super) fn new() -> Windows {
        let random = fastrand::Rng::with_seed(1);
        let next_ns = time::now_ns();
        Windows { left: WINDOWS, is_open: false, next_ns, random, cupti: Cupti::find() }
    }

    /// Returns `true` when all windows have been closed.
    pub(super) fn is_over(&self) -> bool {
        self.left == 0
    }

    /// Advances virtual time to `end_ns`, unless it is later already, and opens and closes the windows due.
    pub(super) fn pass_until(&mut self, end_ns: u64) {
        while self.left > 0 && self.next_ns <= end_ns {
            time::advance(self.next_ns.saturating_sub(time::now_ns()));
            self.turn();
        }
        time::advance(end_ns.saturating_sub(time::now_ns()));
    }

    /// Opens or closes a window.
    fn turn(&mut self) {
        self.is_open = !self.is_open;
        if self.is_open {
            let timestamps = self.cupti.timestamps();
            gpu_time::record_phase(REAL);
            // The runtime reads the clock when the window is open, and again when it is closed.
            wait_until(|| self.cupti.timestamps() > timestamps);
            self.next_ns = time::now_ns() + LENGTH_NS;
        } else {
            wait_until(|| !self.cupti.is_recording());
            self.left -= 1;
            self.next_ns = time::now_ns() + self.random.u64(..MOST_PAUSE_NS);
        }
    }
}

fn wait_until(is_so: impl Fn() -> bool) {
    while !is_so() {
        thread::sleep(STEP);
    }
}

/// Functions that the stand-in for CUPTI exports to tests.
struct Cupti {
    is_recording: extern "C" fn() -> bool,
    timestamps: extern "C" fn() -> u64,
}

impl Cupti {
    /// Loads the library, unless the runtime has.
    fn find() -> Cupti {
        // SAFETY: the names end in NUL, loading has no effect but on the library, and these are the functions' signatures.
        unsafe {
            let library = libc::dlopen(c"libcupti.so.13".as_ptr(), libc::RTLD_LAZY);
            assert!(!library.is_null(), "the stand-in for CUPTI can be loaded");
            let [is_recording, timestamps] =
                [c"gpu_time_sim_cupti_is_recording", c"gpu_time_sim_cupti_timestamps"]
                    .map(|name| libc::dlsym(library, name.as_ptr()));
            assert!(!is_recording.is_null() && !timestamps.is_null(), "it exports the functions");
            Cupti {
                is_recording: mem::transmute::<*mut libc::c_void, extern "C" fn() -> bool>(
                    is_recording,
                ),
                timestamps: mem::transmute::<*mut libc::c_void, extern "C" fn() -> u64>(timestamps),
            }
        }
    }

    fn is_recording(&self) -> bool {
        (self.is_recording)()
    }

    fn timestamps(&self) -> u64 {
        (self.timestamps)()
    }
}
