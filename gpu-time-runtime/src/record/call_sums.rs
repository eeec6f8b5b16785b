//! Sums of the launches of calls in launches scope.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

use crate::record::series_counters::{SeriesOutcome, SeriesRef};
use crate::types::sample::{Lost, Sample};
use crate::types::workload::Workload;

/// Calls that a thread may sum up at once.
const MAX_SUMS: usize = 1_024;

/// Identifies a call whose launches are being summed up, by its slot, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SumId(NonZeroU32);

impl SumId {
    /// The sum in the slot at this index.
    fn at(index: usize) -> SumId {
        SumId(NonZeroU32::MIN.saturating_add(index as u32))
    }

    fn index(self) -> usize {
        self.0.get() as usize - 1
    }

    /// The slot, counted from 1.
    pub fn number(self) -> u32 {
        self.0.get()
    }

    /// The sum with this [`SumId::number`]; no sum has 0.
    pub fn numbered(number: u32) -> Option<SumId> {
        NonZeroU32::new(number).map(SumId)
    }
}

/// The calls that have returned since the last drain, each with its status.
///
/// A linked list through a fixed array: a returning call pushes itself without the recorder's lock, and
/// the holder of that lock takes the whole list at once.
pub(crate) struct CallStatuses {
    /// The [`SumId::number`] of the call that returned last, or 0.
    head: AtomicU32,
    /// For each slot, the number of the call that returned before it, and in the upper half how the
    /// call ended.
    entries: Box<[AtomicU32]>,
}

const RETURNED: u32 = 0;
const FAILED: u32 = 1;
const CANCELLED: u32 = 2;

impl Default for CallStatuses {
    fn default() -> Self {
        let entries = (0..MAX_SUMS).map(|_| AtomicU32::new(0)).collect();
        CallStatuses { head: AtomicU32::new(0), entries }
    }
}

impl CallStatuses {
    /// Adds a call that has returned, or was left for the reason given. Called once for each call.
    pub fn set(&self, call: SumId, lost: Option<Lost>) {
        let Some(entry) = self.entries.get(call.index()) else { return };
        let status = match lost {
            None => RETURNED,
            Some(Lost::Cancelled) => CANCELLED,
            Some(_) => FAILED,
        };
        let mut head = self.head.load(Relaxed);
        loop {
            entry.store(status << 16 | head, Relaxed);
            match self.head.compare_exchange_weak(head, call.number(), Release, Relaxed) {
                Ok(_) => return,
                Err(newer) => head = newer,
            }
        }
    }

    /// Takes every call out, with the reason why it was left if it did not return.
    fn take(&self) -> impl Iterator<Item = (SumId, Option<Lost>)> {
        let mut next = self.head.swap(0, Acquire);
        std::iter::from_fn(move || {
            let call = SumId::numbered(next)?;
            let entry = self.entries.get(call.index())?.load(Relaxed);
            next = entry & 0xffff;
            let lost = match entry >> 16 {
                FAILED => Some(Lost::Failed),
                CANCELLED => Some(Lost::Cancelled),
                _ => None,
            };
            Some((call, lost))
        })
    }
}

/// The sum of the launches that a call has made so far.
struct Sum {
    series: SeriesRef,
    /// Launches that were opened and are neither measured nor lost, plus one until the call returns.
    open: u32,
    /// The launches measured so far, added up.
    sample: Sample,
    /// The reason of the first lost launch.
    lost: Option<Lost>,
    /// The reason why the call was left without returning.
    left: Option<Lost>,
    workload: Workload,
}

/// The calls of one thread whose launches are being summed up.
///
/// Invariant: a slot is free or holds one call; it is freed when the call has returned and none of its
/// launches is in flight.
#[derive(Default)]
pub(crate) struct CallSums {
    sums: Vec<Sum>,
    free: Vec<SumId>,
}

impl CallSums {
    /// Begins the sum of a call; `None` if there are too many.
    #[inline]
    pub fn begin(&mut self, series: SeriesRef, workload: Workload) -> Option<SumId> {
        let sum =
            Sum { series, open: 1, sample: Sample::NOTHING, lost: None, left: None, workload };
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

    /// Adds a launch of the call that was measured or lost. Returns the sum if that completes it.
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

    /// Ends the calls that have returned. Returns the sums that this completes.
    pub fn end_returned(&mut self, returned: &CallStatuses) -> impl Iterator<Item = SeriesOutcome> {
        returned.take().filter_map(|(call, lost)| {
            let sum = self.sums.get_mut(call.index())?;
            sum.left = lost;
            self.close(call)
        })
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
        Some(SeriesOutcome { series: sum.series, outcome, workload: sum.workload })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returned_calls_are_taken_once_each() {
        let returned = CallStatuses::default();
        for index in 0..3 {
            let lost = [None, Some(Lost::Cancelled), Some(Lost::Failed)][index];
            returned.set(SumId::at(index), lost);
        }
        let taken: Vec<_> = returned.take().map(|(call, lost)| (call.index(), lost)).collect();
        assert_eq!(taken, [(2, Some(Lost::Failed)), (1, Some(Lost::Cancelled)), (0, None)]);
        assert_eq!(returned.take().count(), 0);
    }

    #[test]
    fn calls_that_return_during_a_take_are_not_lost() {
        const THREADS: usize = 4;
        let returned = CallStatuses::default();
        let mut taken: Vec<usize> = Vec::new();
        std::thread::scope(|scope| {
            let returned = &returned;
            for thread in 0..THREADS {
                let calls = (thread..MAX_SUMS).step_by(THREADS);
                scope.spawn(move || calls.for_each(|index| returned.set(SumId::at(index), None)));
            }
            while taken.len() < MAX_SUMS {
                taken.extend(returned.take().map(|(call, _)| call.index()));
            }
        });
        taken.sort_unstable();
        assert!(taken.into_iter().eq(0..MAX_SUMS));
    }
}
