//! Lets runs on several threads take turns, as in tests of one binary. At once, they would share the GPU, and each would
//! count the other's calls of the functions that both call.

use std::cell::Cell;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::base::{console, fork};
use crate::record::phase::controller::{self, Suspension};

/// The longest wait for a turn. A closure may wait for a thread that runs another one.
const PATIENCE: Duration = Duration::from_secs(60);

/// A thread has the turn. Outside of the order of [locks](crate::base::lock), because threads wait for it by the condition
/// below: it is held for an instant, and no other lock is taken meanwhile.
static IS_TAKEN: Mutex<bool> = Mutex::new(false);
static IS_FREE: Condvar = Condvar::new();

thread_local! {
    /// The thread is in a run, so that another one is nested in it.
    static IS_RUNNING: Cell<bool> = const { Cell::new(false) };
}

/// The turn of a run, in which no phase begins.
pub(super) struct Turn {
    /// Ends before the next run begins.
    suspension: Option<Suspension>,
    /// `false` for a nested run, and after a wait in vain.
    is_mine: bool,
    was_running: bool,
}

impl Turn {
    /// Waits for the runs of other threads. Threads that wait do not disturb the run that is measured.
    pub fn take() -> Turn {
        let was_running = IS_RUNNING.replace(true);
        let is_mine = !was_running && wait();
        if !was_running && !is_mine {
            console::say(
                "a run of `until_stable` or `compare` on another thread has not ended within a minute: each of the \
                 two may count the other's calls",
            );
        }
        Turn { suspension: Some(controller::suspend()), is_mine, was_running }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.suspension = None;
        IS_RUNNING.set(self.was_running);
        // In a forked child, another thread may have held the lock.
        if self.is_mine && !fork::is_forked() {
            *IS_TAKEN.lock().unwrap_or_else(PoisonError::into_inner) = false;
            IS_FREE.notify_one();
        }
    }
}

/// Waits for the turn and takes it. Returns `false` if that takes too long.
fn wait() -> bool {
    let is_taken = IS_TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    let waited = IS_FREE.wait_timeout_while(is_taken, PATIENCE, |is_taken| *is_taken);
    let (mut is_taken, _) = waited.unwrap_or_else(PoisonError::into_inner);
    !std::mem::replace(&mut *is_taken, true)
}
