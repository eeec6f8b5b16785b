//! Windows: the parts of phases in which all work is recorded, as far as they wait for the records of their launches.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::record::awaited::{Awaited, KnownLaunch, KnownLaunches, Outlook, PATIENCE, release};
use crate::record::launches;
use crate::stats::coverage::{CoverageSums, WindowWork};
use crate::types::activity::Activity;

/// The maximum number of windows that wait for records.
const MOST_WAITING: usize = 1_024;
/// No window opens while the others have more launches and records than this.
const MOST_WAITING_WORK: usize = 4_000_000;
/// The maximum number of launches in one window.
const MOST_LAUNCHES: usize = 2_000_000;
/// The maximum number of records in one window.
const MOST_RECORDS: usize = 4_000_000;

/// The windows that wait for records, and the sums over all finished windows.
#[derive(Default)]
pub(crate) struct Windows {
    /// By their numbers, which give their order. Only the last one may be open.
    waiting: BTreeMap<u64, WaitingWindow>,
    /// The number of the next window.
    next: u64,
    /// The time at which the open one began.
    began_ns: u64,
    /// The time at which one was closed last.
    closed: Option<Instant>,
    pub sums: CoverageSums,
}

struct WaitingWindow {
    awaited: Awaited,
    records: Vec<WindowWork>,
    length_ns: u64,
    end_ns: u64,
    is_drawn: bool,
    is_closed: bool,
    is_incomplete: bool,
}

impl Windows {
    /// Returns `true` if a closed window waits for records.
    pub fn are_waiting(&self) -> bool {
        self.waiting.values().any(|window| window.is_closed)
    }

    /// Returns `true` if a window was closed after this time.
    pub fn have_closed_since(&self, time: Instant) -> bool {
        self.closed.is_some_and(|closed| closed > time)
    }

    /// Returns `true` if another window may open. Whether one is in the figures must not depend on what is enqueued
    /// in it, so those that wait are never given up for a new one.
    pub fn has_room(&self) -> bool {
        let work = |window: &WaitingWindow| window.awaited.launches.len() + window.records.len();
        self.waiting.len() < MOST_WAITING
            && self.waiting.values().map(work).sum::<usize>() <= MOST_WAITING_WORK
    }

    /// Opens a window that is planned to be of this length. There must be [room](Self::has_room) for it. If it
    /// `is_drawn`, it stands for other times as well.
    pub fn open(&mut self, length_ns: u64, now_ns: u64, is_drawn: bool) {
        self.began_ns = now_ns;
        self.waiting.insert(self.next, WaitingWindow::new(length_ns, is_drawn));
        self.next += 1;
    }

    /// Closes the open window, which ended at `end_ns`, if there is one.
    pub fn close(&mut self, end_ns: u64) {
        let (length_ns, now) = (end_ns.saturating_sub(self.began_ns), Instant::now());
        if let Some(window) = self.open_window() {
            (window.length_ns, window.end_ns) = (length_ns, end_ns);
            window.is_closed = true;
            window.awaited.heard = now;
            window.is_incomplete |= launches::take_lost();
            self.closed = Some(now);
        }
    }

    /// Closes the open window, if there is one, and opens another one that follows it.
    pub fn divide(&mut self, now_ns: u64) {
        if self.open_window().is_some() && self.has_room() {
            self.close(now_ns);
            self.open(0, now_ns, false);
        }
    }

    fn open_window(&mut self) -> Option<&mut WaitingWindow> {
        self.waiting.values_mut().next_back().filter(|last| !last.is_closed)
    }

    /// Adds a launch to the open window. Returns the window's number, if there is one.
    pub fn add(&mut self, known: &KnownLaunch) -> Option<u64> {
        let window = self.open_window()?;
        if window.awaited.launches.len() >= MOST_LAUNCHES {
            window.is_incomplete = true;
            return None;
        }
        window.awaited.add(known, false);
        Some(self.next - 1)
    }

    /// Forgets a failed launch.
    pub fn forget(&mut self, known: &KnownLaunch) {
        if let Some(window) = known.window.and_then(|number| self.waiting.get_mut(&number)) {
            window.awaited.forget(known, false);
        }
    }

    /// Returns what the windows wait for.
    pub fn awaited(&mut self) -> impl Iterator<Item = &mut Awaited> {
        self.waiting.values_mut().map(|window| &mut window.awaited)
    }

    /// Adds a record to the window of its launch, before that knows of it.
    pub fn take(&mut self, activity: &Activity, known: &KnownLaunch) {
        let Some(window) = known.window.and_then(|number| self.waiting.get_mut(&number)) else {
            return;
        };
        window.awaited.hear(known, false);
        if !activity.has_times() || window.records.len() >= MOST_RECORDS {
            window.is_incomplete = true;
        } else {
            window.records.push(WindowWork {
                device: activity.device,
                start_ns: activity.start_ns,
                end_ns: activity.end_ns,
                name: activity.work.name,
                site: known.launch.site,
            });
        }
    }

    /// Counts all windows that wait as incomplete, because CUPTI has dropped records.
    pub fn lose_all(&mut self) {
        self.waiting.values_mut().for_each(|window| window.is_incomplete = true);
    }

    /// Adds windows to the sums that are complete, as `outlook` says, and counts those that can no longer become so. Gives
    /// up their launches. `is_last` means that no round follows.
    pub fn finish(
        &mut self,
        is_last: bool,
        known: &mut KnownLaunches,
        now: Instant,
        outlook: impl Fn(&Awaited, &KnownLaunches) -> Outlook,
    ) {
        let sums = &mut self.sums;
        // Adjacent windows are added in their order, because work of one may run as long as that of the next.
        let mut is_in_order = true;
        self.waiting.retain(|_, window| {
            if !window.is_closed && !is_last {
                return true;
            }
            let may_add = window.is_drawn || is_in_order || is_last;
            let outlook =
                if window.is_incomplete { Outlook::Lost } else { outlook(&window.awaited, known) };
            match outlook {
                // Nothing is known of a window without launches that is open.
                _ if !window.is_closed && window.awaited.launches.is_empty() => {}
                Outlook::Complete if window.is_closed && may_add => {
                    sums.add(window.length_ns, window.is_drawn, &mut window.records);
                    if !window.is_drawn {
                        sums.keep_running(std::mem::take(&mut window.records), window.end_ns);
                    }
                }
                Outlook::Complete if !is_last => return true,
                // All later ones of the kind wait for this one, and no report knows what they found.
                Outlook::MoreExpected if !is_last && window.awaited.silence(now) <= PATIENCE => {
                    is_in_order &= window.is_drawn;
                    return true;
                }
                // Records may be missing at the end of the process, because the work of a deep
                // queue still runs.
                _ => sums.add_incomplete(window.length_ns, window.is_drawn),
            }
            window.give_up(known);
            false
        });
    }
}

impl WaitingWindow {
    fn new(length_ns: u64, is_drawn: bool) -> WaitingWindow {
        WaitingWindow {
            awaited: Awaited::new(),
            records: Vec::new(),
            length_ns,
            end_ns: 0,
            is_drawn,
            is_closed: false,
            is_incomplete: false,
        }
    }

    /// Gives up the launches, whose records are not needed any more.
    fn give_up(&self, known: &mut KnownLaunches) {
        for id in &self.awaited.launches {
            release(known, *id, |of| of.window = None);
        }
    }
}

#[cfg(test)]
mod tests;
