//! Calls in launches scope while their launches are in flight: each adds up to one sum.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU8, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

use crate::record::series_counters::SeriesRef;
use crate::types::sample::{Lost, Sample};
use crate::types::workload::Workload;

/// Calls that a lane may add up at once.
const MOST: usize = 1_024;

/// Names a call that is being added up, by its place from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SumId(NonZeroU32);

impl SumId {
    /// The place at this index.
    fn at(index: usize) -> SumId {
        SumId(NonZeroU32::MIN.saturating_add(index as u32))
    }

    fn index(self) -> usize {
        self.0.get() as usize - 1
    }

    /// The place, from 1.
    pub fn number(self) -> u32 {
        self.0.get()
    }

    /// The call whose [`SumId::number`] that is; none has 0.
    pub fn numbered(number: u32) -> Option<SumId> {
        NonZeroU32::new(number).map(SumId)
    }
}

/// Which calls have returned. A function that returns stores it here, without the lock of its lane.
pub(crate) struct CallStatuses(Box<[AtomicU8]>);

const RUNNING: u8 = 0;
const RETURNED: u8 = 1;
const FAILED: u8 = 2;
const CANCELLED: u8 = 3;

impl Default for CallStatuses {
    fn default() -> Self {
        CallStatuses((0..MOST).map(|_| AtomicU8::new(RUNNING)).collect())
    }
}

impl CallStatuses {
    /// The function of the call has returned, or was left for the reason given.
    pub fn set(&self, call: SumId, lost: Option<Lost>) {
        let how = match lost {
            None => RETURNED,
            Some(Lost::Cancelled) => CANCELLED,
            Some(_) => FAILED,
        };
        if let Some(place) = self.0.get(call.index()) {
            place.store(how, Release);
        }
    }

    /// Whether the function has returned, and for which reason it was left, if not by returning.
    fn get(&self, call: SumId) -> Option<Option<Lost>> {
        match self.0.get(call.index())?.load(Acquire) {
            RUNNING => None,
            FAILED => Some(Some(Lost::Failed)),
            CANCELLED => Some(Some(Lost::Cancelled)),
            _ => Some(None),
        }
    }

    fn clear(&self, call: SumId) {
        if let Some(place) = self.0.get(call.index()) {
            place.store(RUNNING, Relaxed);
        }
    }
}

/// What a call's launches gave so far.
struct Sum {
    /// Where the sum is due; none where the place is free.
    entry: Option<SeriesRef>,
    /// Launches that were begun and are neither measured nor lost.
    open: u32,
    /// The launches measured so far, added up.
    sample: Sample,
    lost: Option<Lost>,
    workload: Workload,
}

/// A call whose sum is complete.
pub(crate) struct FinishedSum {
    pub entry: SeriesRef,
    pub outcome: Result<Sample, Lost>,
    pub workload: Workload,
}

/// The calls of one lane that are being added up.
///
/// Invariant: a place is free or holds one call; it is freed when the call has returned and none of
/// its launches is in flight.
#[derive(Default)]
pub(crate) struct CallSums {
    sums: Vec<Sum>,
    free: Vec<SumId>,
    /// Calls with no launch in flight that had not returned when that was found.
    waiting: Vec<SumId>,
}

impl CallSums {
    /// Begins the sum of a call, or none where the bound is reached.
    #[inline]
    pub fn open(&mut self, entry: SeriesRef, workload: Workload) -> Option<SumId> {
        let sum =
            Sum { entry: Some(entry), open: 0, sample: Sample::NOTHING, lost: None, workload };
        if let Some(call) = self.free.pop() {
            *self.sums.get_mut(call.index())? = sum;
            return Some(call);
        }
        if self.sums.len() >= MOST {
            return None;
        }
        self.sums.push(sum);
        self.free.reserve(self.sums.len());
        self.waiting.reserve(self.sums.len());
        Some(SumId::at(self.sums.len() - 1))
    }

    /// A launch of the call was begun.
    #[inline]
    pub fn begin(&mut self, call: SumId) {
        if let Some(sum) = self.sums.get_mut(call.index()) {
            sum.open += 1;
        }
    }

    /// A launch of the call was measured or lost. Answers with the sum if that was the last.
    #[inline]
    pub fn end(
        &mut self,
        call: SumId,
        outcome: Result<Sample, Lost>,
        returns: &CallStatuses,
    ) -> Option<FinishedSum> {
        let sum = self.sums.get_mut(call.index())?;
        sum.open = sum.open.saturating_sub(1);
        match outcome {
            Ok(sample) => sum.sample.add(sample),
            Err(lost) => {
                sum.lost.get_or_insert(lost);
            }
        }
        if sum.open > 0 {
            return None;
        }
        let finished = self.finish(call, returns);
        if finished.is_none() && !self.waiting.contains(&call) {
            self.waiting.push(call);
        }
        finished
    }

    /// Finds a call that has returned since its last launch was measured. To be asked until there is
    /// none.
    pub fn returned(&mut self, returns: &CallStatuses) -> Option<FinishedSum> {
        let at = self.waiting.iter().position(|call| {
            let is_busy = self.sums.get(call.index()).is_some_and(|sum| sum.open > 0);
            is_busy || returns.get(*call).is_some()
        })?;
        let call = self.waiting.swap_remove(at);
        // One that has begun another launch comes back with that.
        self.finish(call, returns).or_else(|| self.returned(returns))
    }

    #[inline]
    fn finish(&mut self, call: SumId, returns: &CallStatuses) -> Option<FinishedSum> {
        let sum = self.sums.get_mut(call.index())?;
        if sum.open > 0 {
            return None;
        }
        let entry = sum.entry?;
        let left = returns.get(call)?;
        sum.entry = None;
        returns.clear(call);
        self.free.push(call);
        let outcome = match sum.lost.or(left) {
            Some(lost) => Err(lost),
            None => Ok(sum.sample),
        };
        Some(FinishedSum { entry, outcome, workload: sum.workload })
    }
}
