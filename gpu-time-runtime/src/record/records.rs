//! The table of records: which call and which window each of CUPTI's records belongs to.
//!
//! Launches come from a [queue](crate::record::launches). Each is in the table, by its correlation id, as long as an opened
//! call or a window needs its records. A call is recorded once it has ended and its launches have theirs, and a window once
//! it is closed and its launches have theirs.

use std::collections::VecDeque;
use std::collections::btree_map::{BTreeMap, Entry};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::base::clock;
use crate::cupti::{self, DrainKind, DrainOutcome};
use crate::record::alignment::Alignment;
use crate::record::awaited::{Awaited, KnownLaunch, KnownLaunches, Outlook, release};
use crate::record::graph_sizes::GraphSizes;
use crate::record::launches::{self, LaunchEvent, NotedLaunch};
use crate::record::opened::base::Measurement;
use crate::record::opened::call_exchange::{self, Ended, MAX_WAITING_WORK, Refused};
use crate::record::opened::open_call::{OpenCall, Whereabouts};
use crate::record::opened::waiting_call::{MAX_ACTIVITIES, WaitingCall};
use crate::record::phase::windows::Windows;
use crate::record::stream_progress::StreamProgress;
use crate::types::activity::Activity;
use crate::types::sample::Lost;

/// The time from a flush of CUPTI's records to the next one by the collector's thread. Each flush blocks launches on other
/// threads, and CUPTI keeps some memory for each where many threads launch.
pub(super) const FLUSH_PERIOD: Duration = Duration::from_millis(500);
/// The time for which the launches of groups are known after their calls were recorded.
const KEPT: Duration = Duration::from_secs(60);
/// The maximum number of such launches.
const MAX_KEPT: usize = 4_096;
/// The maximum number of calls that wait for records. If there are more, the oldest are counted as
/// lost.
pub(super) const MAX_WAITING: usize = 8_192;

/// The maximum number of launches of helper threads for a call that has not ended. Further ones belong to no call.
const MAX_BY_HELPERS: usize = 65_536;

/// The number of launches for which the table may keep room that it does not need.
const MAX_SPARE: usize = 65_536;

/// Records that CUPTI had no room for.
pub(crate) static DROPPED: AtomicU64 = AtomicU64::new(0);
/// Records without times, of calls.
pub(crate) static ZERO_TIMES: AtomicU64 = AtomicU64::new(0);
/// Records of groups that came after their calls had been recorded.
pub(crate) static LATE: AtomicU64 = AtomicU64::new(0);
/// Calls that were lost because too many waited for their records.
pub(crate) static CROWDED_OUT: AtomicU64 = AtomicU64::new(0);

/// Closed windows wait for their records.
pub(super) static WINDOWS_WAIT: AtomicBool = AtomicBool::new(false);

/// Set if the last report has given up while another thread kept the records.
pub(super) static IS_ABANDONED: AtomicBool = AtomicBool::new(false);

/// The launches that records are awaited for, with the calls and windows that need them.
#[derive(Default)]
pub(crate) struct Records {
    launches: KnownLaunches,
    /// What calls have that have not ended, by their numbers.
    running: BTreeMap<u64, UnendedCall>,
    /// The ended calls, in the order in which they ended.
    waiting: BTreeMap<u64, WaitingCall>,
    /// The number of the next ended call.
    next: u64,
    /// The number of the frames, launches and records of ended calls.
    work: usize,
    pub windows: Windows,
    /// The progress of the GPU on each stream.
    progress: StreamProgress,
    /// The numbers of records that launches of graphs have.
    graph_sizes: GraphSizes,
    /// The launches of groups whose calls have been recorded, and when, in this order. They stay in the table for a while.
    ended_groups: VecDeque<(Instant, u32)>,
    /// The time at which CUPTI last said that it had dropped records; 0 if it never did.
    dropped_ns: u64,
    /// Measurements of the empty kernel that wait for their records.
    bases: Vec<Measurement>,
    /// The alignment at the last collection.
    alignment: Option<Alignment>,
    /// The time of the last flush.
    flushed: Option<Instant>,
    /// Set once the last report has given up. Its rows have counted all calls as lost that were open, so that
    /// later parts of these must not be in its call tree.
    has_given_up: bool,
    /// Empty. Takes the place of the list of calls that have ended.
    spare: Ended,
}

/// What a call has that has not ended, apart from what was handed over in parts.
#[derive(Default)]
struct UnendedCall {
    /// The correlation ids of its launches.
    launches: Vec<u32>,
    /// The number of those that helper threads made.
    by_helpers: usize,
    /// Their records.
    records: Vec<Activity>,
    /// Launches or records are missing, so that all further parts of the call are lost.
    is_incomplete: bool,
}

impl UnendedCall {
    fn take(&mut self, record: &Activity, is_by_helper: bool) {
        if self.records.len() < MAX_ACTIVITIES {
            self.records.push(*record);
        } else {
            self.is_incomplete |= !is_by_helper;
        }
    }
}

impl Records {
    #[cfg(test)]
    pub fn unended_calls(&self) -> usize {
        self.running.len()
    }

    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns the launches that ended calls wait for, with the positions of their frames.
    #[cfg(test)]
    pub fn waited_for(&self) -> Vec<Vec<(u32, u32)>> {
        let known = &self.launches;
        let of_call = |waiting: &WaitingCall| {
            let launches = waiting.launches(known);
            launches.map(|of| (of.launch.correlation, of.frame.unwrap().1)).collect()
        };
        self.waiting.values().map(of_call).collect()
    }

    /// Lets time pass.
    #[cfg(test)]
    pub fn wait(&mut self, time: Duration) {
        self.awaited().for_each(|awaited| awaited.wait(time));
        self.flushed.iter_mut().for_each(|flushed| *flushed -= time);
    }

    /// Adds a measurement. No records may have been taken since its first launch.
    pub fn add_base(&mut self, base: Measurement) {
        self.bases.push(base);
    }

    /// Returns which records the collector's thread should take: a flush is due after [`FLUSH_PERIOD`], after a window
    /// was closed, or if many calls wait.
    pub fn due_drain(&self) -> DrainKind {
        let has_waited = self.flushed.is_none_or(|flushed| {
            flushed.elapsed() >= FLUSH_PERIOD || self.windows.have_closed_since(flushed)
        });
        let are_many =
            call_exchange::waiting() >= MAX_WAITING as u64 / 2 || self.work >= MAX_WAITING_WORK / 2;
        if has_waited || are_many { DrainKind::Flushed } else { DrainKind::Completed }
    }

    /// Takes records from CUPTI, and records the calls and windows that are complete.
    pub fn collect(&mut self, which: DrainKind) {
        self.collect_from(which, cupti::drain);
    }

    /// Does the same with records from `drain`.
    pub fn collect_from(
        &mut self,
        which: DrainKind,
        drain: impl FnOnce(DrainKind, &mut dyn FnMut(&Activity)) -> DrainOutcome,
    ) {
        let is_last = which == DrainKind::Last;
        self.claim_ended();
        self.begin_round();
        self.alignment = Some(Alignment::read(self.alignment));
        // Records of launches that were made since.
        let mut early = Vec::new();
        let drained = drain(which, &mut |activity| {
            if !self.take(activity) {
                early.push(*activity);
            }
        });
        self.claim_ended();
        early.iter().for_each(|activity| _ = self.take(activity));
        if drained.has_flushed {
            self.note_flush();
        } else {
            self.repeat_round();
        }
        self.note_dropped(drained.dropped);
        self.finish(is_last && drained.has_flushed);
        self.finish_windows(is_last && drained.has_flushed, is_last);
        self.bases.retain_mut(|base| !base.end_round(drained.has_flushed, is_last));
        self.forget_ended_groups();
    }

    /// Notes that CUPTI has been flushed.
    pub fn note_flush(&mut self) {
        self.flushed = Some(Instant::now());
    }

    /// Notes that CUPTI has dropped this many records since the last time.
    pub fn note_dropped(&mut self, records: u64) {
        if records > 0 {
            DROPPED.fetch_add(records, Relaxed);
            self.dropped_ns = clock::now_ns();
            self.windows.lose_all();
        }
    }

    /// Begins a round. Must be called before the records of a collection are taken.
    pub fn begin_round(&mut self) {
        let now = Instant::now();
        self.awaited().for_each(|awaited| awaited.begin_round(now));
    }

    /// Does not count the current round: CUPTI was not flushed, so a lack of records means nothing.
    pub fn repeat_round(&mut self) {
        self.awaited().for_each(Awaited::repeat_round);
    }

    /// Returns what ended calls and windows wait for.
    fn awaited(&mut self) -> impl Iterator<Item = &mut Awaited> {
        let of_calls = self.waiting.values_mut().map(|waiting| &mut waiting.awaited);
        of_calls.chain(self.windows.awaited())
    }

    /// Takes the launches that threads have made since the last time. Returns the number of those in the open window.
    pub fn take_launches(&mut self) -> usize {
        let mut in_window = 0;
        for event in launches::take() {
            match event {
                LaunchEvent::Made(launch) => {
                    in_window += usize::from(launch.is_in_window);
                    self.add(launch);
                }
                LaunchEvent::Failed(correlation) => self.forget(correlation),
                LaunchEvent::Disowned(correlation) => self.disown(correlation),
            }
        }
        in_window
    }

    /// Adds a launch.
    pub fn add(&mut self, launch: NotedLaunch) {
        let mut known = KnownLaunch::new(launch);
        if launch.is_in_window {
            known.window = self.windows.add(&known);
        }
        if let Some(owner) = launch.owner {
            let running = self.running.entry(owner.call).or_default();
            running.by_helpers += usize::from(owner.is_by_helper);
            if owner.is_by_helper && running.by_helpers > MAX_BY_HELPERS {
                known.launch.owner = None;
            } else {
                running.launches.push(launch.correlation);
            }
        }
        if !known.is_over() {
            self.launches.insert(launch.correlation, known);
        }
    }

    /// Forgets a failed launch, which will have no record.
    pub fn forget(&mut self, correlation: u32) {
        let launches = &mut self.launches;
        let Some(known) = launches.get(&correlation).filter(|known| known.device.is_none()) else {
            return;
        };
        self.windows.forget(known);
        let is_by_helper = known.launch.is_by_helper();
        if let Some(waiting) = known.frame.and_then(|(call, _)| self.waiting.get_mut(&call)) {
            let work = waiting.work();
            waiting.awaited.forget(known, is_by_helper);
            self.work -= work - waiting.work();
        }
        // A running call may keep the id, which is of no launch then.
        launches.remove(&correlation);
    }

    /// Notes that a launch of a helper thread belongs to no call.
    pub fn disown(&mut self, correlation: u32) {
        let launches = &mut self.launches;
        let Some(known) = launches.get_mut(&correlation) else { return };
        if let Some(waiting) = known.frame.and_then(|(call, _)| self.waiting.get_mut(&call)) {
            let work = waiting.work();
            waiting.awaited.forget(known, true);
            self.work -= work - waiting.work();
        } else if let Some(owner) = known.launch.owner
            && let Entry::Occupied(mut running) = self.running.entry(owner.call)
        {
            running.get_mut().launches.pop_if(|id| *id == correlation);
            if running.get().launches.is_empty() {
                // Its call may have been handed over already.
                running.remove();
            }
        }
        release(launches, correlation, |of| (of.launch.owner, of.launch.site) = (None, None));
    }

    /// Takes a record for the measurement, or for the window and the call that need it. Returns `false` if none does, as
    /// far as is known.
    pub fn take(&mut self, activity: &Activity) -> bool {
        if self.bases.iter_mut().any(|base| base.take(activity)) {
            return true;
        }
        let Some(known) = self.launches.get_mut(&activity.correlation) else { return false };
        self.progress.note(known.launch.stream, known.launch.correlation);
        self.windows.take(activity, known);
        let waiting = known.frame.and_then(|(call, _)| self.waiting.get_mut(&call));
        match (known.launch.owner, waiting) {
            (Some(owner), Some(waiting)) => {
                let work = waiting.work();
                waiting.awaited.hear(known, owner.is_by_helper);
                waiting.take(activity, known, self.alignment);
                self.work += waiting.work() - work;
            }
            (Some(owner), None) => {
                self.running.entry(owner.call).or_default().take(activity, owner.is_by_helper);
            }
            // It came too late for the call of its group.
            (None, _) if known.has_ended => {
                LATE.fetch_add(1, Relaxed);
                known.launch.graph.into_iter().for_each(|graph| self.graph_sizes.note_late(graph));
            }
            (None, _) => {}
        }
        if known.launch.owner.is_some() && !activity.has_times() {
            ZERO_TIMES.fetch_add(1, Relaxed);
        }
        known.device.get_or_insert(activity.device);
        known.records += 1;
        true
    }

    /// Takes over the calls that have ended since the last time.
    fn claim_ended(&mut self) {
        let mut ended = std::mem::take(&mut self.spare);
        call_exchange::take_ended(&mut ended);
        // After the calls, so that their launches are among them.
        self.take_launches();
        ended.calls.drain(..).for_each(|call| self.claim(call));
        ended.refused.drain(..).for_each(|refused| self.refuse(refused));
        self.spare = ended;
    }

    /// Takes over a call that has ended, or a part of one, with its launches and their records.
    pub fn claim(&mut self, call: Box<OpenCall>) {
        let number = self.next;
        self.next += 1;
        let mut waiting = WaitingCall::new(call);
        if let Some(running) = self.running.remove(&waiting.call.number) {
            waiting.is_incomplete |= running.is_incomplete;
            let later = self.hand_over(running, &mut waiting, number);
            let goes_on = waiting.call.frames.iter().any(|frame| frame.goes_on);
            if !later.launches.is_empty() || later.is_incomplete && goes_on {
                self.running.insert(waiting.call.number, later);
            }
        }
        self.work += waiting.work();
        self.waiting.insert(number, waiting);
    }

    /// Moves launches to the call with this number, or the part of one, that has their frames. Returns those whose frames
    /// have not ended.
    fn hand_over(
        &mut self,
        running: UnendedCall,
        waiting: &mut WaitingCall,
        number: u64,
    ) -> UnendedCall {
        let launches = &mut self.launches;
        let mut later =
            UnendedCall { is_incomplete: running.is_incomplete, ..UnendedCall::default() };
        for id in running.launches {
            let Some(known) = launches.get_mut(&id) else { continue };
            let Some(owner) = known.launch.owner else { continue };
            match waiting.call.find(owner.nth) {
                Whereabouts::Here(frame) => {
                    known.frame = Some((number, frame));
                    waiting.awaited.add(known, owner.is_by_helper);
                }
                Whereabouts::Later => {
                    later.launches.push(id);
                    later.by_helpers += usize::from(owner.is_by_helper);
                }
                Whereabouts::Gone => release(launches, id, |of| of.launch.owner = None),
            }
        }
        for record in running.records {
            let known = launches.get(&record.correlation);
            match known.map(|known| (known, known.frame)) {
                Some((known, Some(_))) => waiting.take(&record, known, self.alignment),
                Some((_, None)) => later.records.push(record),
                None => {}
            }
        }
        later
    }

    /// Forgets what a call has whose end there was no room for. If other parts of it follow, they lack launches.
    pub fn refuse(&mut self, refused: Refused) {
        if refused.goes_on {
            self.running.entry(refused.call).or_default().is_incomplete = true;
            return;
        }
        let running = self.running.remove(&refused.call).unwrap_or_default();
        let launches = &mut self.launches;
        for id in running.launches {
            release(launches, id, |of| of.launch.owner = None);
        }
    }

    /// Records the calls that are complete, and counts as lost those that cannot become so. If too
    /// many calls wait, counts the oldest as lost. `is_last` means that there are no more records.
    pub fn finish(&mut self, is_last: bool) {
        let now = Instant::now();
        let known = &mut self.launches;
        let sizes = &mut self.graph_sizes;
        self.waiting.values().for_each(|waiting| waiting.note_quiet_graphs(known, sizes));
        let outlooks = self.waiting.iter().map(|(number, waiting)| {
            let outlook = waiting.awaited.outlook(known, &self.progress, sizes, now, is_last);
            (*number, outlook)
        });
        let ended = outlooks.filter(|(_, outlook)| *outlook != Outlook::MoreExpected);
        let ended: Vec<_> = ended.collect();
        for (number, outlook) in &ended {
            let complete = self.waiting.get(number).filter(|_| *outlook == Outlook::Complete);
            if let Some(waiting) = complete.filter(|of| !of.may_lack(known, self.dropped_ns)) {
                waiting.note_ended_graphs(known, sizes);
            }
        }
        for (number, outlook) in ended {
            if let Some(waiting) = self.waiting.remove(&number) {
                let known = &mut self.launches;
                let is_lost = outlook == Outlook::Lost
                    || waiting.may_lack(known, self.dropped_ns)
                    || waiting.has_short_graph(known, &self.graph_sizes);
                let has_given_up = self.has_given_up || IS_ABANDONED.load(Relaxed);
                let too_late = has_given_up.then_some(Lost::Unfinished);
                self.end(waiting, is_lost.then_some(Lost::Records).or(too_late));
            }
        }
        let crowded_out = self.give_up_beyond(MAX_WAITING, MAX_WAITING_WORK);
        CROWDED_OUT.fetch_add(crowded_out, Relaxed);
    }

    /// Forgets the launches of groups whose calls were recorded long ago, or that are too many.
    fn forget_ended_groups(&mut self) {
        let is_old = |(at, _): &&(Instant, u32)| at.elapsed() >= KEPT;
        while let Some((_, id)) = self.ended_groups.front().filter(is_old) {
            self.launches.remove(id);
            self.ended_groups.pop_front();
        }
    }

    /// Records a call that has been waited for, or counts it as lost, and keeps it for reuse.
    fn end(&mut self, waiting: WaitingCall, lost: Option<Lost>) {
        self.work -= waiting.work();
        let known = &mut self.launches;
        let devices = waiting.recorded_devices(known);
        for id in &waiting.awaited.launches {
            let Some(of) = known.get_mut(id) else { continue };
            of.launch.owner = None;
            of.has_ended = of.launch.is_group && self.ended_groups.len() < MAX_KEPT;
            if of.has_ended {
                self.ended_groups.push_back((Instant::now(), *id));
            } else if of.is_over() {
                known.remove(id);
            }
        }
        call_exchange::give_back(waiting.record(lost, &devices, self.alignment));
    }

    /// Adds the windows that are complete to the sums, and counts those that cannot become so. `has_all` means that CUPTI
    /// has returned all records, and `is_last` that no round follows.
    pub fn finish_windows(&mut self, has_all: bool, is_last: bool) {
        let launches = &mut self.launches;
        let sizes = &self.graph_sizes;
        let now = Instant::now();
        self.windows.finish(is_last, launches, now, |awaited, known| {
            awaited.outlook(known, &self.progress, sizes, now, has_all)
        });
        if launches.capacity() > MAX_SPARE + 8 * launches.len() {
            launches.shrink_to(MAX_SPARE);
        }
        self.note_windows();
    }

    /// Counts all calls that still wait as lost, and those that end from now on.
    pub fn give_up(&mut self) {
        self.give_up_beyond(0, 0);
        self.has_given_up = true;
    }

    /// Counts the oldest calls as lost until at most `calls` are left, with at most this much work. Returns the number
    /// of lost calls.
    fn give_up_beyond(&mut self, calls: usize, work: usize) -> u64 {
        let mut lost = 0;
        while (self.waiting.len() > calls || self.work > work)
            && let Some((_, waiting)) = self.waiting.pop_first()
        {
            self.end(waiting, Some(Lost::Records));
            lost += 1;
        }
        lost
    }

    /// Closes the open window, which ended at `end_ns`. Returns the number of its launches that were taken now.
    #[cfg(feature = "kernels")]
    pub fn close_window(&mut self, end_ns: u64) -> usize {
        let launches = self.take_launches();
        self.windows.close(end_ns);
        self.note_windows();
        launches
    }

    fn note_windows(&self) {
        WINDOWS_WAIT.store(self.windows.are_waiting(), Relaxed);
    }

    /// Closes the open window, if there is one, and opens another one that follows it.
    #[cfg(feature = "kernels")]
    pub fn divide_window(&mut self, now_ns: u64) {
        self.take_launches();
        self.windows.divide(now_ns);
        self.note_windows();
    }
}
