//! Lets runs on several threads take turns, as in tests of one binary. At once, they would share the GPU, and each would
//! count the other's calls of the functions that both call.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::base::lock::{Mutex, MutexGuard, Rank, locked_by};
use crate::record::phase::controller::{self, Suspension};

/// The longest wait for a turn. A closure may wait for a thread that runs another one.
const PATIENCE: Duration = Duration::from_secs(60);

static TURN: Mutex<()> = Mutex::new(Rank::Run, ());

thread_local! {
    /// The thread is in a run, so that another one is nested in it.
    static IS_RUNNING: Cell<bool> = const { Cell::new(false) };
}

/// The turn of a run, in which no phase begins.
pub(super) struct Turn {
    /// `None` for a nested run, and after a wait in vain.
    _turn: Option<MutexGuard<'static, ()>>,
    was_running: bool,
    _suspension: Suspension,
}

impl Turn {
    /// Waits for the runs of other threads.
    pub fn take() -> Turn {
        let was_running = IS_RUNNING.replace(true);
        let turn = if was_running { None } else { locked_by(&TURN, Instant::now() + PATIENCE) };
        Turn { _turn: turn, was_running, _suspension: controller::suspend() }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        IS_RUNNING.set(self.was_running);
    }
}
