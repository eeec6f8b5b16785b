//! Per-call sums of launch times, in launches scope.

use std::num::NonZeroU32;

use crate::record::series_counters::{SeriesOutcome, SeriesRef};
use crate::stats::call_tree::place::Place;
use crate::types::sample::{Lost, Sample};
use crate::types::workload::Workload;

/// The maximum number of calls that a thread can sum up at once.
const MAX_SUMS: usize = 1_024;

/// Identifies a call whose launches are being summed up, by its slot number, which starts at 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SumId(NonZeroU32);

impl SumId {
    /// Returns the id for the slot at this index.
    fn at(index: usize) -> SumId {
        SumId(NonZeroU32::MIN.saturating_add(index as u32))
    }

    fn index(self) -> usize {
        self.0.get() as usize - 1
    }

    /// Returns the slot number, which starts at 1.
    pub fn number(self) -> u32 {
        self.0.get()
    }

    /// Returns the id with this [`SumId::number`], or `None` for 0.
    pub fn numbered(number: u32) -> Option<SumId> {
        NonZeroU32::new(number).map(SumId)
    }
}

/// The sum of the launches made by one call so far.
struct Sum {
    series: SeriesRef,
    /// The number of launches opened but neither measured nor lost, plus one until the call
    /// returns.
    open: u32,
    /// The launches measured so far, added up.
    sample: Sample,
    /// The reason for the first lost launch.
    lost: Option<Lost>,
    /// The reason why the call ended without returning.
    left: Option<Lost>,
    workload: Workload,
    place: Option<Place>,
}

/// One thread's calls whose launches are being summed up.
///
/// Invariant: a slot is either free or holds one call. It is freed once the call has returned and
/// has no launch in flight.
#[derive(Default)]
pub(crate) struct CallSums {
    sums: Vec<Sum>,
    free: Vec<SumId>,
}

impl CallSums {
    /// Starts the sum for a call. Returns `None` if there are too many.
    #[inline]
    pub fn begin(
        &mut self,
        series: SeriesRef,
        workload: Workload,
        place: Option<Place>,
    ) -> Option<SumId> {
        let (sample, lost, left) = (Sample::nothing(), None, None);
        let sum = Sum { series, open: 1, sample, lost, left, workload, place };
        if let Some(call) = self.free.pop() {
            *self.sums.get_mut(call.index())? = sum;
            return Some(call);
        }
        if self.sums.len() >= MAX_SUMS {
            return None;
        }
        self.sums.push(sum);
        self.free.reserve(self.sums.len());
        Some(SumId::at(self.sums.len() - 1))
    }

    /// Counts a launch of the call as open.
    #[inline]
    pub fn open_launch(&mut self, call: SumId) {
        if let Some(sum) = self.sums.get_mut(call.index()) {
            sum.open += 1;
        }
    }

    /// Adds one of the call's launches, measured or lost. Returns the sum if it is now complete.
    #[inline]
    pub fn close_launch(
        &mut self,
        call: SumId,
        outcome: Result<Sample, Lost>,
    ) -> Option<SeriesOutcome> {
        let sum = self.sums.get_mut(call.index())?;
        match outcome {
            Ok(sample) => sum.sample.add(sample),
            Err(lost) => {
                sum.lost.get_or_insert(lost);
            }
        }
        self.close(call)
    }

    /// Ends a call. `left` is the reason if the call did not return. Returns its sum if it is now
    /// complete.
    pub fn end(&mut self, call: SumId, left: Option<Lost>) -> Option<SeriesOutcome> {
        self.sums.get_mut(call.index())?.left = left;
        self.close(call)
    }

    #[inline]
    fn close(&mut self, call: SumId) -> Option<SeriesOutcome> {
        let sum = self.sums.get_mut(call.index())?;
        sum.open = sum.open.saturating_sub(1);
        if sum.open > 0 {
            return None;
        }
        self.free.push(call);
        let outcome = sum.lost.or(sum.left).map_or(Ok(sum.sample), Err);
        let &Sum { series, workload, place, .. } = &*sum;
        Some(SeriesOutcome { series, outcome, workload, place })
    }
}
