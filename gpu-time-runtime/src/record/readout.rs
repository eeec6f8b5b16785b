//! Reads the series counters of all threads while the threads keep recording.
//!
//! A bracket is opened and ended under the lock of its recorder, so all counters that a step affects change together.
//! The counters of one series on one thread are therefore consistent, although not all series are read at the same
//! time, and the identities of [`BracketCounts`](crate::stats::bracket_counts::BracketCounts) hold for the sums.

use std::time::{Duration, Instant};

use crate::base::lock::locked_by;
use crate::base::rounds::in_rounds;
use crate::record::graph;
use crate::record::series_counters::{SeriesCounters, SeriesTable};
use crate::record::threads::{self, ThreadRecorder};

/// The number of series to copy while a recorder is locked, which takes a few microseconds.
pub(crate) const SERIES_PER_LOCK: usize = 128;

/// Reads the counters of every series of every thread and of graphs. Locks one recorder at a time,
/// for up to [`SERIES_PER_LOCK`] series.
///
/// Waits no longer than `patience` in total for recorders that stay locked. Returns the number of
/// threads that could not be read to the end.
pub(crate) fn read_series(patience: Duration, read: impl FnMut(&SeriesCounters)) -> usize {
    read_threads(threads::all(), patience, read)
}

fn read_threads(
    threads: Vec<&'static ThreadRecorder>,
    mut patience: Duration,
    mut read: impl FnMut(&SeriesCounters),
) -> usize {
    // `None` stands for the table of graphs, and `next` for the first series of a table that has not been read.
    let tables = threads.into_iter().map(Some).chain([None]).map(|thread| (thread, 0)).collect();
    // Allocated here, so that nothing is allocated while a recorder is locked.
    let mut copied = Vec::with_capacity(SERIES_PER_LOCK);
    let mut stuck = 0;
    in_rounds(tables, |(thread, next)| {
        copied.clear();
        match thread {
            None => copy(&graph::series(), *next, &mut copied),
            Some(thread) => {
                let began = Instant::now();
                let Some(recorder) = locked_by(&thread.recorder, began + patience) else {
                    patience = Duration::ZERO;
                    stuck += 1;
                    return false;
                };
                patience = patience.saturating_sub(began.elapsed());
                copy(&recorder.series, *next, &mut copied);
            }
        }
        *next += copied.len();
        copied.iter().for_each(&mut read);
        copied.len() == SERIES_PER_LOCK
    });
    stuck
}

fn copy(table: &SeriesTable, first: usize, copied: &mut Vec<SeriesCounters>) {
    copied.extend_from_slice(table.counters(first, SERIES_PER_LOCK));
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::{ptr, thread};

    use super::*;
    use crate::base::lock::{Mutex, Rank, locked, try_locked};
    use crate::gpu::fake::site;
    use crate::record::open_frames::ThreadFrames;
    use crate::record::recorder::Recorder;
    use crate::record::series_counters::SeriesOutcome;
    use crate::site::thread_counters::ThreadCounters;
    use crate::site::{callsite::CallSite, series_id::SeriesIdentity};
    use crate::stats::bracket_counts::BracketCounts;
    use crate::types::sample::{CacheState, Lost, Sample};
    use crate::types::{device::DeviceId, key::SeriesKey, workload::Workload};

    fn identity(launch: usize) -> SeriesIdentity {
        let device = DeviceId::Cuda(0);
        let function = SeriesIdentity::function(device, CacheState::AsFound, SeriesKey::NONE);
        SeriesIdentity { launch: Some(launch as u32), ..function }
    }

    /// Creates the recorder of a thread that has opened one bracket for each of `launches`
    /// launches.
    fn recorder(site: &'static CallSite, launches: usize) -> &'static ThreadRecorder {
        let mut recorder = Recorder::default();
        (0..launches).for_each(|launch| _ = recorder.series.begin(site, identity(launch)));
        Box::leak(Box::new(ThreadRecorder {
            counters: ThreadCounters::NONE,
            recorder: Mutex::new(Rank::Recorder, recorder),
            frames: ThreadFrames::new(),
        }))
    }

    /// A thread waits only while a bounded number of its own series is copied. The lock itself
    /// asserts that a thread never holds two recorders at once, because they have the same rank.
    #[test]
    fn recorders_are_read_in_bounded_turns() {
        const LAUNCHES: [usize; 3] = [2 * SERIES_PER_LOCK + 7, SERIES_PER_LOCK - 1, 300];
        let sites = LAUNCHES.map(|_| site());
        let recorders: Vec<_> =
            sites.iter().zip(LAUNCHES).map(|(site, launches)| recorder(site, launches)).collect();
        let mut turns: Vec<(usize, usize)> = Vec::new();
        let stuck = read_threads(recorders.clone(), Duration::ZERO, |counters| {
            assert!(recorders.iter().all(|thread| try_locked(&thread.recorder).is_some()));
            let is_its = |site: &&CallSite| ptr::eq(*site, counters.site);
            let Some(at) = sites.iter().position(is_its) else { return };
            match turns.last_mut() {
                Some((same, series)) if *same == at => *series += 1,
                _ => turns.push((at, 1)),
            }
        });
        assert_eq!(stuck, 0);
        let full = SERIES_PER_LOCK;
        let last = 300 - 2 * full;
        assert_eq!(
            turns,
            [(0, full), (1, full - 1), (2, full), (0, full), (2, full), (0, 7), (2, last)]
        );
    }

    #[test]
    fn stuck_thread_is_left_out() {
        let site = site();
        let recorders = vec![recorder(site, 3), recorder(site, 5), recorder(site, 2)];
        let stuck = try_locked(&recorders[1].recorder).unwrap();
        let mut begun = 0;
        let count = |counters: &SeriesCounters| {
            begun += if ptr::eq(counters.site, site) { counters.counts.timed } else { 0 };
        };
        let read = |count| read_threads(recorders.clone(), Duration::from_millis(1), count);
        let read_by_another = |count| thread::scope(|scope| scope.spawn(|| read(count)).join());
        assert_eq!(read_by_another(count).unwrap(), 1);
        drop(stuck);
        assert_eq!(begun, 5);
    }

    #[test]
    fn identities_hold_while_threads_record() {
        const SERIES: usize = 200;
        let (site, is_over) = (site(), AtomicBool::new(false));
        let recorders: Vec<_> = (0..4).map(|_| recorder(site, 0)).collect();
        let record = |thread: &ThreadRecorder| {
            let mut open = Vec::new();
            for call in 0usize.. {
                if is_over.load(Relaxed) && call > 10_000 {
                    return;
                }
                let mut recorder = locked(&thread.recorder);
                open.push(recorder.series.begin(site, identity(call * 7 % SERIES)));
                if open.len() > 50 {
                    let mut sample = Sample::new(1_000.0).unwrap();
                    sample.flags.fed = call % 3 == 0;
                    sample.flags.at_floor = call % 5 == 0;
                    let outcome = if call % 11 == 0 { Err(Lost::Failed) } else { Ok(sample) };
                    let series = open.swap_remove(call * 31 % 50);
                    let workload = Workload::UNKNOWN;
                    recorder.series.record(&[SeriesOutcome {
                        series,
                        outcome,
                        workload,
                        place: None,
                    }]);
                }
            }
        };
        thread::scope(|scope| {
            for thread in &recorders {
                scope.spawn(|| record(thread));
            }
            let mut last = 0;
            for _ in 0..200 {
                let mut series = [BracketCounts::default(); SERIES];
                read_threads(recorders.clone(), Duration::from_secs(60), |counters| {
                    if ptr::eq(counters.site, site) {
                        series[counters.id.launch.unwrap() as usize].add(&counters.counts);
                    }
                });
                for counts in &series {
                    let BracketCounts { timed, in_flight, measured, lost, .. } = *counts;
                    let BracketCounts { fed, starved, at_floor, .. } = *counts;
                    assert_eq!(timed, measured + in_flight + lost.total(), "{counts:?}");
                    assert_eq!(measured, fed + starved + at_floor, "{counts:?}");
                }
                let timed = series.iter().map(|counts| counts.timed).sum();
                assert!(timed >= last, "{timed} after {last}");
                last = timed;
            }
            is_over.store(true, Relaxed);
        });
    }
}
