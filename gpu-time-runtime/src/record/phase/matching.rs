//! Matches records of GPU work to the windows in which the work was enqueued.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use crate::base::lock::{Mutex, MutexGuard, Rank, locked, locked_by};
use crate::record::phase::notes::{self, LaunchEvent, Note};
use crate::record::stream_progress::StreamProgress;
use crate::stats::coverage::{CoverageSums, WindowWork};
use crate::types::activity::Activity;

/// The longest time that a window waits for the records of its launches.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest time that a report waits for another thread that matches records.
const REPORT_PATIENCE: Duration = Duration::from_secs(2);
/// A window with groups of activities is complete after this many collections without a new record, once
/// the GPU has gone on to later launches: a group has any number of records.
const QUIET: u32 = 2;
/// The maximum number of windows that wait for records.
const MOST_WAITING: usize = 1_024;
/// No window opens while the others have more launches and records than this.
const MOST_WAITING_WORK: usize = 4_000_000;
/// The maximum number of launches in one window.
const MOST_LAUNCHES: usize = 2_000_000;
/// The maximum number of records in one window.
const MOST_RECORDS: usize = 4_000_000;
/// The maximum number of records that are kept because the note of their launch may still arrive.
const MOST_EARLY: usize = 65_536;

static WINDOWS: Mutex<Windows> = Mutex::new(Rank::Windows, Windows::new());

/// The windows that wait for records, and the sums over all finished windows.
pub(crate) struct Windows {
    /// The last one is open if `is_open`.
    waiting: VecDeque<WaitingWindow>,
    is_open: bool,
    /// The time at which the open one began.
    began_ns: u64,
    /// Records that arrived while a window was open, before the note of their launch.
    early: Vec<Activity>,
    sums: CoverageSums,
}

struct WaitingWindow {
    launches: HashMap<u32, NotedLaunch>,
    /// The smallest and the largest correlation id of a launch.
    ids: Option<[u32; 2]>,
    /// The number of launches without a record, apart from groups.
    missing: usize,
    has_groups: bool,
    records: Vec<WindowWork>,
    length_ns: u64,
    end_ns: u64,
    is_drawn: bool,
    closed: Option<Instant>,
    /// The number of collections since the last record.
    quiet: u32,
    is_incomplete: bool,
}

struct NotedLaunch {
    note: Note,
    has_record: bool,
}

/// Locks the windows.
pub(crate) fn windows() -> MutexGuard<'static, Windows> {
    locked(&WINDOWS)
}

/// Returns what `read` finds in the sums over all windows. `None` if another thread keeps the windows locked, because
/// CUPTI does not hand over its records.
pub(super) fn read<T>(read: impl FnOnce(&CoverageSums) -> T) -> Option<T> {
    let windows = locked_by(&WINDOWS, Instant::now() + REPORT_PATIENCE)?;
    Some(read(&windows.sums))
}

impl Windows {
    pub const fn new() -> Windows {
        Windows {
            waiting: VecDeque::new(),
            is_open: false,
            began_ns: 0,
            early: Vec::new(),
            sums: CoverageSums::new(),
        }
    }

    /// Returns `true` if a closed window waits for records.
    pub fn are_waiting(&self) -> bool {
        self.waiting.iter().any(|window| window.closed.is_some())
    }

    /// Returns `true` if another window may open. Whether one is in the figures must not depend on what is enqueued
    /// in it, so those that wait are never given up for a new one.
    pub fn has_room(&self) -> bool {
        let work = |window: &WaitingWindow| window.launches.len() + window.records.len();
        self.waiting.len() < MOST_WAITING
            && self.waiting.iter().map(work).sum::<usize>() <= MOST_WAITING_WORK
    }

    /// Counts a planned window of this length that could not open.
    pub fn miss(&mut self, length_ns: u64) {
        self.sums.add_missed(length_ns);
    }

    /// Opens a window that is planned to be of this length. There must be [room](Self::has_room) for it. If it
    /// `is_drawn`, it stands for other times as well.
    pub fn open(&mut self, length_ns: u64, now_ns: u64, is_drawn: bool) {
        (self.is_open, self.began_ns) = (true, now_ns);
        self.waiting.push_back(WaitingWindow::new(length_ns, is_drawn));
    }

    /// Closes the open window, which ended at `end_ns`.
    pub fn close(&mut self, end_ns: u64) {
        self.end(end_ns);
        self.early.clear();
    }

    fn end(&mut self, end_ns: u64) {
        let length_ns = end_ns.saturating_sub(self.began_ns);
        self.take_notes();
        self.is_open = false;
        if let Some(window) = self.waiting.back_mut() {
            (window.length_ns, window.end_ns) = (length_ns, end_ns);
            window.closed = Some(Instant::now());
            window.is_incomplete |= notes::take_lost();
        }
    }

    /// Closes the open window, if there is one, and opens another one that follows it.
    pub fn divide(&mut self, now_ns: u64) {
        if self.is_open && self.has_room() {
            self.end(now_ns);
            self.open(0, now_ns, false);
        }
    }

    /// Moves the notes left so far to the open window. Returns their number.
    pub fn take_notes(&mut self) -> usize {
        let Some(window) = self.waiting.back_mut().filter(|_| self.is_open) else { return 0 };
        let take = |event| match event {
            LaunchEvent::Launch(note) => window.note(note),
            LaunchEvent::Failure(correlation) => window.forget(correlation),
        };
        notes::take().map(take).count()
    }

    /// Begins a round. Must be called before the records of a collection are taken.
    pub fn begin_round(&mut self) {
        self.take_notes();
        self.waiting.iter_mut().for_each(|window| window.quiet += 1);
    }

    /// Does not count the current round: CUPTI was not flushed, so a lack of records means nothing.
    pub fn repeat_round(&mut self) {
        self.waiting.iter_mut().for_each(|window| window.quiet = window.quiet.saturating_sub(1));
    }

    /// Adds a record to the window of its launch. Returns `true` if there is such a window, and the record does
    /// not belong to an opened call as well.
    pub fn take(&mut self, activity: &Activity, progress: &mut StreamProgress) -> bool {
        // The newest window first, because correlation ids wrap around.
        for window in self.waiting.iter_mut().rev() {
            if let Some(&NotedLaunch { note, .. }) = window.take(activity) {
                progress.note(note.stream_id, note.correlation);
                return !note.is_opened;
            }
        }
        if self.is_open {
            if self.early.len() < MOST_EARLY {
                self.early.push(*activity);
            } else if let Some(window) = self.waiting.back_mut() {
                window.is_incomplete = true;
            }
        }
        false
    }

    /// Ends a round. Adds complete windows to the sums, and counts those that can no longer become
    /// complete. `progress` is that of the GPU on each stream. `has_dropped` means that CUPTI has dropped records,
    /// `has_flushed` that it was flushed, and `is_last` that no round follows.
    pub fn end_round(
        &mut self,
        progress: &mut StreamProgress,
        has_dropped: bool,
        has_flushed: bool,
        is_last: bool,
    ) {
        if self.take_notes() > 0 {
            for activity in std::mem::take(&mut self.early) {
                self.take(&activity, progress);
            }
        }
        let sums = &mut self.sums;
        // Adjacent windows are added in their order, because work of one may run as long as that of the next.
        let mut is_in_order = true;
        self.waiting.retain_mut(|window| {
            window.is_incomplete |= has_dropped;
            let may_add = window.is_drawn || is_in_order || is_last;
            let Some(closed) = window.closed else {
                if is_last && !window.launches.is_empty() {
                    sums.add_incomplete(window.length_ns, window.is_drawn);
                }
                return !is_last;
            };
            let is_late = closed.elapsed() > PATIENCE;
            let has_all = is_last && has_flushed;
            if !window.is_incomplete && may_add && window.is_complete(progress, has_all, is_late) {
                sums.add(window.length_ns, window.is_drawn, &mut window.records);
                if !window.is_drawn {
                    sums.keep_running(std::mem::take(&mut window.records), window.end_ns);
                }
            } else if window.is_incomplete || is_last || is_late {
                // Records may be missing at the end of the process, because the work of a deep
                // queue still runs.
                sums.add_incomplete(window.length_ns, window.is_drawn);
            } else {
                is_in_order &= window.is_drawn;
                return true;
            }
            false
        });
        self.is_open &= !is_last;
    }
}

impl WaitingWindow {
    fn new(length_ns: u64, is_drawn: bool) -> WaitingWindow {
        WaitingWindow {
            launches: HashMap::new(),
            ids: None,
            missing: 0,
            has_groups: false,
            records: Vec::new(),
            length_ns,
            end_ns: 0,
            is_drawn,
            closed: None,
            quiet: 0,
            is_incomplete: false,
        }
    }

    /// Adds a launch.
    fn note(&mut self, note: Note) {
        if self.launches.len() >= MOST_LAUNCHES {
            self.is_incomplete = true;
            return;
        }
        self.has_groups |= note.is_group;
        let [first, last] = self.ids.unwrap_or([note.correlation; 2]);
        self.ids = Some([first.min(note.correlation), last.max(note.correlation)]);
        let launch = NotedLaunch { note, has_record: false };
        if self.launches.insert(note.correlation, launch).is_none() {
            self.missing += usize::from(!note.is_group);
        }
    }

    /// Forgets a failed launch, which will have no record.
    fn forget(&mut self, correlation: u32) {
        if let Some(NotedLaunch { note, has_record: false, .. }) =
            self.launches.remove(&correlation)
        {
            self.missing -= usize::from(!note.is_group);
        }
    }

    /// Takes a record of one of the window's launches. Returns that launch, or `None` if it is not in this window.
    fn take(&mut self, activity: &Activity) -> Option<&NotedLaunch> {
        // Most records are of few of the windows.
        self.ids.filter(|[first, last]| (first..=last).contains(&&activity.correlation))?;
        let launch = self.launches.get_mut(&activity.correlation)?;
        self.quiet = 0;
        if !launch.has_record {
            launch.has_record = true;
            self.missing -= usize::from(!launch.note.is_group);
        }
        if !activity.has_times() || self.records.len() >= MOST_RECORDS {
            self.is_incomplete = true;
        } else {
            self.records.push(WindowWork {
                device: activity.device,
                start_ns: activity.start_ns,
                end_ns: activity.end_ns,
                name: activity.work.name,
                site: launch.note.site,
            });
        }
        Some(launch)
    }

    /// Returns `true` if the records of all launches are there. `has_all` means that CUPTI has returned all records.
    ///
    /// A group without a record may be empty, or CUPTI may withhold its records because other work in the same buffer
    /// has not ended. Therefore it counts as empty only if the window `is_late`. A group with records then counts as
    /// complete even if it was the last launch on its stream.
    fn is_complete(&self, progress: &StreamProgress, has_all: bool, is_late: bool) -> bool {
        let has_ended = |launch: &NotedLaunch| {
            let is_past = progress.are_past(launch.note.stream_id, launch.note.correlation);
            if is_late { is_past || launch.has_record } else { is_past && launch.has_record }
        };
        let mut groups = self.launches.values().filter(|launch| launch.note.is_group);
        let mut have_ended = || self.quiet >= QUIET && groups.all(has_ended);
        self.missing == 0 && (!self.has_groups || has_all || have_ended())
    }
}

#[cfg(test)]
mod tests;
