//! The thread for what is due about once a second.

use std::time::Duration;
use std::{panic, thread};

use crate::base::lock::{Mutex, Rank, locked};
use crate::base::{background, console, switches};

const PERIOD: Duration = Duration::from_secs(1);

/// What the thread does. The first job starts it.
static JOBS: Mutex<Vec<fn()>> = Mutex::new(Rank::Jobs, Vec::new());

/// Runs `job` about once a second from now on, until timing ends for good. It must not wait for long.
///
/// Each caller does this once.
pub(crate) fn each_second(job: fn()) {
    let is_first = {
        let mut jobs = locked(&JOBS);
        jobs.push(job);
        jobs.len() == 1
    };
    if is_first && let Err(error) = background::spawn("gpu-time-worker", work) {
        console::say(&format!("failed to start the background thread: {error}"));
    }
}

fn work() {
    loop {
        thread::sleep(PERIOD);
        let jobs = locked(&JOBS).clone();
        for job in jobs {
            if switches::is_closed() {
                return;
            }
            // A panic of one must not end the others.
            _ = panic::catch_unwind(job);
        }
    }
}
