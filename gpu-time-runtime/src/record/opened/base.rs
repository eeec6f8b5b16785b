//! The runtime's own launches of the empty kernel, and the records of them.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};

use gpu_time_kernels::EMPTY;

use crate::cuda::Context;
use crate::stats::bias::KernelBase;
use crate::types::activity::{Activity, Launched};

/// The kernels that are recorded. Half of their records suffice.
pub(crate) const SAMPLES: usize = 32;
/// The most launches that are noted: a hold and a kernel for each sample, and the kernel that is
/// launched first.
const MAX_NOTED: usize = 4 * SAMPLES;
/// The collections after which no more records are expected.
const ROUNDS: u32 = 8;

thread_local! {
    /// Launches of this thread are noted. Without a destructor, for callbacks at the end of a thread.
    static IS_NOTING: Cell<bool> = const { Cell::new(false) };
}

/// The correlation ids that are noted. Only the thread that has paused the collector uses them.
static NOTED: [AtomicU32; MAX_NOTED] = [const { AtomicU32::new(0) }; MAX_NOTED];
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// A measurement of CUPTI's time of an empty kernel, which waits for its records.
pub(crate) struct Measurement {
    context: &'static Context,
    /// The correlation ids of launches without a record.
    missing: Vec<u32>,
    durations: Vec<f64>,
    rounds: u32,
}

/// Notes this thread's launches while `run` runs, and returns the measurement that they are. The
/// collector must be [paused](crate::record::opened::collector::pause). `None` if `run` returns
/// `false`.
pub(crate) fn noting(context: &'static Context, run: impl FnOnce() -> bool) -> Option<Measurement> {
    COUNT.store(0, Relaxed);
    IS_NOTING.set(true);
    let has_run = run();
    IS_NOTING.set(false);
    let noted = NOTED.iter().take(COUNT.load(Relaxed));
    let missing = noted.map(|id| id.load(Relaxed)).collect();
    has_run.then(|| Measurement { context, missing, durations: Vec::new(), rounds: 0 })
}

/// Notes a launch of the runtime's own. Called from the driver's callback: takes no lock and
/// allocates nothing.
pub(super) fn note(launched: &Launched) {
    if IS_NOTING.get()
        && let Some(slot) = NOTED.get(COUNT.load(Relaxed))
    {
        slot.store(launched.correlation, Relaxed);
        COUNT.fetch_add(1, Relaxed);
    }
}

impl Measurement {
    /// Takes a record of one of the launches. Returns `false` if it is of another launch.
    pub fn take(&mut self, activity: &Activity) -> bool {
        let of_record = |id: &u32| *id == activity.correlation;
        let Some(at) = self.missing.iter().position(of_record) else { return false };
        self.missing.swap_remove(at);
        let &Activity { start_ns, end_ns, work, .. } = activity;
        // The others are holds.
        if work.name.as_bytes() == EMPTY.to_bytes() && 0 < start_ns && start_ns <= end_ns {
            self.durations.push((end_ns - start_ns) as f64);
        }
        true
    }

    /// Does not count the next round.
    pub fn repeat_round(&mut self) {
        self.rounds = self.rounds.saturating_sub(1);
    }

    /// Hands the result to the context if no more records are expected. Returns `true` if so.
    pub fn finish(&mut self, is_last: bool) -> bool {
        self.rounds += 1;
        let is_done = self.missing.is_empty() || is_last || self.rounds >= ROUNDS;
        if is_done && self.durations.len() >= SAMPLES / 2 {
            let base = KernelBase::of(std::mem::take(&mut self.durations));
            base.into_iter().for_each(|base| self.context.set_kernel_base(base));
        }
        is_done
    }
}
