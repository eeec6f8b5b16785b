//! Matches records to the runtime's own launches of the empty kernel.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};

use gpu_time_kernels::EMPTY;

use crate::cuda::Context;
use crate::stats::bias::KernelBase;
use crate::types::activity::{Activity, EnqueueCall};

/// The number of kernels to record. Records of half of them suffice.
pub(crate) const SAMPLES: usize = 32;
/// The maximum number of launches to note. Fewer are made: a hold and a kernel for each sample, and one kernel
/// that is launched first.
const MAX_NOTED: usize = 4 * SAMPLES;
/// The number of collections with a flush after which no more records are expected.
const ROUNDS: u32 = 8;

thread_local! {
    /// Set while this thread's launches are noted. It has no destructor, so callbacks can read it
    /// while the thread exits.
    static IS_NOTING: Cell<bool> = const { Cell::new(false) };
}

/// The noted launches. Only the thread that has paused the collector uses them.
struct NotedLaunches {
    /// Their correlation ids, of which the first `count` are valid.
    ids: [AtomicU32; MAX_NOTED],
    count: AtomicUsize,
}

static NOTED: NotedLaunches =
    NotedLaunches { ids: [const { AtomicU32::new(0) }; MAX_NOTED], count: AtomicUsize::new(0) };

/// A measurement of the time that CUPTI reports for an empty kernel. Waits for its records.
pub(crate) struct Measurement {
    context: &'static Context,
    /// The correlation ids of launches without a record.
    missing: Vec<u32>,
    durations: Vec<f64>,
    rounds: u32,
}

/// Notes the launches that `run` makes on this thread. Returns the measurement that waits for their
/// records, or `None` if `run` returns `false`. The collector must be
/// [paused](crate::record::opened::collector::pause).
pub(crate) fn noting(context: &'static Context, run: impl FnOnce() -> bool) -> Option<Measurement> {
    NOTED.count.store(0, Relaxed);
    IS_NOTING.set(true);
    let has_run = run();
    IS_NOTING.set(false);
    let noted = NOTED.ids.iter().take(NOTED.count.load(Relaxed));
    let missing = noted.map(|id| id.load(Relaxed)).collect();
    has_run.then(|| Measurement { context, missing, durations: Vec::new(), rounds: 0 })
}

/// Notes one of the runtime's own launches. Called from CUPTI's callback for driver calls, so it
/// takes no lock and allocates nothing.
pub(super) fn note(launched: &EnqueueCall) {
    if IS_NOTING.get()
        && let Some(slot) = NOTED.ids.get(NOTED.count.load(Relaxed))
    {
        slot.store(launched.correlation, Relaxed);
        NOTED.count.fetch_add(1, Relaxed);
    }
}

impl Measurement {
    /// Takes a record if it belongs to one of the measurement's launches. Returns `false` if it
    /// does not.
    pub fn take(&mut self, activity: &Activity) -> bool {
        let of_record = |id: &u32| *id == activity.correlation;
        let Some(at) = self.missing.iter().position(of_record) else { return false };
        self.missing.swap_remove(at);
        let &Activity { start_ns, end_ns, work, .. } = activity;
        // The other launches are holds.
        if work.name.as_bytes() == EMPTY.to_bytes() && 0 < start_ns && start_ns <= end_ns {
            self.durations.push((end_ns - start_ns) as f64);
        }
        true
    }

    /// Ends a round, which counts only if CUPTI was flushed in it. Hands the result to the context if no
    /// more records are expected. Returns `true` if so.
    pub fn end_round(&mut self, has_flushed: bool, is_last: bool) -> bool {
        self.rounds += u32::from(has_flushed);
        let is_done = self.missing.is_empty() || is_last || self.rounds >= ROUNDS;
        if is_done && self.durations.len() >= SAMPLES / 2 {
            let base = KernelBase::of(std::mem::take(&mut self.durations));
            base.into_iter().for_each(|base| _ = self.context.kernel_base.set(base));
        }
        is_done
    }
}
