//! Waits for the GPU's work: the brackets of every thread, and opened calls.

use std::time::{Duration, Instant};

use crate::record::{collector, recorder, threads};

/// The pause between two drains in [`wait_for_gpu`]. It grows while CUPTI's records are awaited.
const PAUSE: Duration = Duration::from_micros(200);
/// The longest pause between two drains.
const LONGEST_PAUSE: Duration = Duration::from_millis(10);

/// Waits up to `patience` for the GPU to finish every bracket and every opened call. Returns `true` if it has.
pub(crate) fn wait_for_gpu(patience: Duration) -> bool {
    let deadline = Instant::now() + patience;
    let mut pause = PAUSE;
    loop {
        if drain_all(deadline) {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(pause);
        // Each flush of CUPTI's records blocks launches on other threads.
        pause = if collector::is_waiting() { (2 * pause).min(LONGEST_PAUSE) } else { PAUSE };
    }
}

/// Drains every thread, and collects the records of opened calls. Returns `true` if the GPU has
/// finished everything. A recorder that stays locked until the deadline counts as busy.
pub(crate) fn drain_all(deadline: Instant) -> bool {
    let mut are_idle = true;
    for thread in threads::all() {
        are_idle &= recorder::drain_by(&thread.recorder, deadline);
    }
    if collector::is_waiting() {
        collector::collect(deadline);
    }
    are_idle && !collector::is_waiting()
}
