//! The state of a call that times its launches individually.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::base::lock::locked;
use crate::cuda::Context;
use crate::record::call_sums::SumId;
use crate::record::recorder::Recorder;
use crate::record::threads::StreamCall;
use crate::site::{callsite::CallSite, series_id::SeriesIdentity};
use crate::stats::call_tree::place::Place;
use crate::types::sample::{CacheState, Lost};
use crate::types::workload::Workload;

/// State shared by all launches in one call. The fields are atomic because a future may be polled
/// by several threads. Only the function itself writes them, so relaxed loads and stores suffice.
#[derive(Debug, Default)]
pub(crate) struct CallState {
    /// The number of the [`SumId`] for the sum of the call's launches, or 0 if there is none.
    sum: AtomicU32,
    /// 0 before the first launch, then 1 + the cache state of that launch.
    cache: AtomicU8,
    /// A bit set of the launches made so far. A launch sets the bit at its index modulo 64.
    made: AtomicU64,
    /// The function was last suspended in the arguments of a launch, whose bracket was open.
    was_in_launch: AtomicBool,
}

impl CallState {
    /// Starts a launch. The first launch starts the call's sum, in the function's series, unless
    /// the launch itself is the sum.
    #[inline]
    pub fn begin(
        &self,
        site: &'static CallSite,
        function: SeriesIdentity,
        recorder: &mut Recorder<Context>,
        workload: Workload,
        place: Option<Place>,
    ) -> Option<SumId> {
        if self.cache.load(Relaxed) == 0 {
            self.cache.store(1 + function.cache as u8, Relaxed);
            if site.spec.is_single {
                return None;
            }
            let series = recorder.series.begin(site, function);
            if let Some(sum) = recorder.begin_call(series, workload, place) {
                self.sum.store(sum.number(), Relaxed);
            }
        }
        let sum = self.sum()?;
        recorder.sums.open_launch(sum);
        Some(sum)
    }

    /// Marks that one of the call's launches became a graph node, which sums cannot include. A sum
    /// already started is lost, and later launches do not start one.
    #[cold]
    pub fn leave_to_graph(&self, call: &StreamCall) {
        if self.cache.load(Relaxed) == 0 {
            self.cache.store(1 + CacheState::AsFound as u8, Relaxed);
        } else if let Some(sum) = self.sum() {
            locked(&call.thread.recorder).lose_sum(sum, Lost::Capture);
        }
    }

    /// Marks the launch as made. Returns `true` if this call has made it before.
    pub fn makes_again(&self, launch: u32) -> bool {
        let (made, bit) = (self.made.load(Relaxed), 1 << (launch % u64::BITS));
        self.made.store(made | bit, Relaxed);
        made & bit != 0
    }

    /// Notes that the function is suspended, and if it is in a launch with an open bracket.
    pub fn suspend(&self, is_in_launch: bool) {
        self.was_in_launch.store(is_in_launch, Relaxed);
    }

    /// Returns `true` if the function was last suspended in a launch with an open bracket.
    pub fn was_in_launch(&self) -> bool {
        self.was_in_launch.load(Relaxed)
    }

    pub fn sum(&self) -> Option<SumId> {
        SumId::numbered(self.sum.load(Relaxed))
    }

    /// Returns the cache state of the first launch, if there was one.
    pub fn first_cache(&self) -> Option<CacheState> {
        CacheState::ALL.get(usize::from(self.cache.load(Relaxed).checked_sub(1)?)).copied()
    }
}

/// Returns the cache state of a launch without a flush of its own, given the cache state of the call's
/// first launch.
pub(crate) fn later(first: Option<CacheState>) -> CacheState {
    match first {
        None | Some(CacheState::AsFound) => CacheState::AsFound,
        Some(_) => CacheState::AfterCold,
    }
}
