//! A look at what the GPU has passed of one lane's brackets.
//!
//! The driver is asked without the lane's lock, because a thread may wait long for the driver, and whoever
//! makes a report must not wait with it: a report needs all lanes at once.

use std::time::{Duration, Instant};

use crate::base::lock::{Mutex, locked, locked_by};
use crate::gpu::Gpu;
use crate::record::call_sums::CallStatuses;
use crate::record::pending::Drain;
use crate::record::recorder::Recorder;
use crate::record::threads;

/// Turns every bracket of a lane that the GPU has passed into a sample or a loss, unless somebody is at it.
/// Answers whether none is left. Never waits for the GPU.
pub(crate) fn drain<G: Gpu>(recorder: &Mutex<Recorder<G>>, returns: &CallStatuses) -> bool {
    let begun = locked(recorder).begin_look();
    finish(begun, recorder, returns)
}

/// The same, unless somebody keeps the lane locked until the deadline.
pub(crate) fn drain_by<G: Gpu>(
    recorder: &Mutex<Recorder<G>>,
    returns: &CallStatuses,
    deadline: Instant,
) -> bool {
    let begun = locked_by(recorder, deadline).and_then(|mut recorder| recorder.begin_look());
    finish(begun, recorder, returns)
}

fn finish<G: Gpu>(
    begun: Option<Drain<G>>,
    recorder: &Mutex<Recorder<G>>,
    returns: &CallStatuses,
) -> bool {
    let Some(mut look) = begun else { return false };
    look.run();
    let mut recorder = locked(recorder);
    recorder.end_look(look, returns);
    recorder.is_idle()
}

/// Pause between two looks of [`wait_for_gpu`].
const PAUSE: Duration = Duration::from_micros(200);

/// Waits for what is in flight, but no longer than `patience`.
pub(crate) fn wait_for_gpu(patience: Duration) {
    let deadline = Instant::now() + patience;
    while !is_idle(deadline) && Instant::now() < deadline {
        std::thread::sleep(PAUSE);
    }
}

/// Whether the GPU has finished every bracket, after a look at what it has. A lane that stays locked until
/// the deadline is taken to be busy.
pub(crate) fn is_idle(deadline: Instant) -> bool {
    // Not all at once: a thread that is stuck meanwhile must not keep the others' lanes.
    let threads_ = threads::all().to_vec();
    threads_.into_iter().all(|thread| drain_by(&thread.recorder, &thread.returns, deadline))
}
