//! Draining: turning the brackets that the GPU has passed into samples.
//!
//! The driver is asked without the recorder's lock. A thread may wait long for the driver, and a report,
//! which needs every thread's recorder, must not wait with it.

use std::time::{Duration, Instant};

use crate::base::lock::{Mutex, locked, locked_by};
use crate::gpu::Gpu;
use crate::record::call_sums::CallStatuses;
use crate::record::pending::Drain;
use crate::record::recorder::Recorder;
use crate::record::threads;

/// Turns every bracket of a thread that the GPU has passed into a sample or a loss, unless another
/// thread is doing so. Returns `true` if no bracket is left. Never waits for the GPU.
pub(crate) fn drain<G: Gpu>(recorder: &Mutex<Recorder<G>>, returned: &CallStatuses) -> bool {
    let drain = locked(recorder).begin_drain();
    drain.is_some_and(|drain| run(drain, recorder, returned))
}

/// Drains like [`drain`], but gives up if the recorder stays locked until the deadline.
pub(crate) fn drain_by<G: Gpu>(
    recorder: &Mutex<Recorder<G>>,
    returned: &CallStatuses,
    deadline: Instant,
) -> bool {
    let drain = locked_by(recorder, deadline).and_then(|mut recorder| recorder.begin_drain());
    drain.is_some_and(|drain| run(drain, recorder, returned))
}

fn run<G: Gpu>(
    mut drain: Drain<G>,
    recorder: &Mutex<Recorder<G>>,
    returned: &CallStatuses,
) -> bool {
    loop {
        let is_complete = drain.run();
        let mut recorder = locked(recorder);
        recorder.settle(&mut drain, returned);
        if is_complete {
            recorder.end_drain(drain);
            return recorder.is_idle();
        }
    }
}

/// Pause between two drains in [`wait_for_gpu`].
const PAUSE: Duration = Duration::from_micros(200);

/// Waits until the GPU has finished every bracket, for at most `patience`.
pub(crate) fn wait_for_gpu(patience: Duration) {
    let deadline = Instant::now() + patience;
    while !is_idle(deadline) && Instant::now() < deadline {
        std::thread::sleep(PAUSE);
    }
}

/// Drains every thread, and returns `true` if the GPU has finished every bracket. A recorder that stays
/// locked until the deadline counts as busy.
pub(crate) fn is_idle(deadline: Instant) -> bool {
    // A copy of the list: while a stuck thread is waited for, new threads must be able to register.
    let recorders = threads::all().to_vec();
    recorders.into_iter().all(|thread| drain_by(&thread.recorder, &thread.returns, deadline))
}
