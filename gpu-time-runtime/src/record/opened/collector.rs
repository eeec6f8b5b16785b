//! Matches the records of GPU work to the opened calls that launched it, and records each finished
//! call in its series. This is done by the collector's own thread, ten times a second while calls
//! wait and whenever CUPTI's buffers fill, and by every report.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Once, OnceLock};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crate::base::lock::{Mutex, MutexGuard, Rank, locked_by};
use crate::base::{background, clock, fork, switches};
use crate::cupti::{self, DrainKind};
use crate::record::opened::alignment::Alignment;
use crate::record::opened::base::Measurement;
use crate::record::opened::call_exchange::{self, MAX_WAITING_WORK};
use crate::record::opened::foreign_launches;
use crate::record::opened::graph_sizes::GraphSizes;
use crate::record::opened::helpers::HelperLaunches;
use crate::record::opened::open_call::{self, FrameLaunch, OpenCall};
use crate::record::opened::unclaimed::UnclaimedRecords;
use crate::record::opened::waiting_call::{Outlook, WaitingCall};
use crate::record::phase::matching::windows;
use crate::record::stream_progress::StreamProgress;
use crate::types::activity::{Activity, GraphExec};
use crate::types::sample::Lost;

/// The time between two collections by the thread while calls wait for their records.
const PERIOD: Duration = Duration::from_millis(100);
/// The time from a flush of CUPTI's records to the next one by the thread. Much longer than [`PERIOD`], because
/// each flush blocks launches on other threads, and CUPTI keeps some memory for each where many threads launch.
pub(super) const FLUSH_PERIOD: Duration = Duration::from_millis(500);
/// The time for which the launches of groups are known after their calls were recorded.
const KEPT: Duration = Duration::from_secs(60);
/// The maximum number of such launches.
const MAX_KEPT: usize = 4_096;
/// The maximum number of calls that wait for records. If there are more, the oldest are counted as
/// lost.
pub(super) const MAX_WAITING: usize = 8_192;

/// The thread that collects.
struct CollectorThread {
    started: Once,
    /// Set once the thread runs.
    thread: OnceLock<Thread>,
}

static THREAD: CollectorThread = CollectorThread { started: Once::new(), thread: OnceLock::new() };

/// Records that CUPTI had no room for.
pub(crate) static DROPPED: AtomicU64 = AtomicU64::new(0);
/// Records without times, of calls.
pub(crate) static ZERO_TIMES: AtomicU64 = AtomicU64::new(0);
/// Records of groups that came after their calls had been recorded.
pub(crate) static LATE: AtomicU64 = AtomicU64::new(0);
/// Records that the collector had no room for before their calls ended.
pub(crate) static EVICTED: AtomicU64 = AtomicU64::new(0);
/// Calls that were lost because too many waited for their records.
pub(crate) static CROWDED_OUT: AtomicU64 = AtomicU64::new(0);

/// Calls that wait for records.
pub(crate) struct Collector {
    /// The calls by their numbers, which give the order in which they ended.
    calls: BTreeMap<u64, WaitingCall>,
    /// The number of the next call.
    next: u64,
    /// The number of their frames, launches and records.
    work: usize,
    /// Maps each correlation id to its launch: the number of the call, and the index of the launch
    /// in it.
    launches: Option<HashMap<u32, (u64, u32)>>,
    /// The progress of the GPU on each stream.
    progress: StreamProgress,
    /// The time at which CUPTI last said that it had dropped records, or the collector dropped one; 0 if neither
    /// ever did.
    dropped_ns: u64,
    /// The launches of groups whose calls have been recorded, and when.
    ended_groups: Option<HashMap<u32, EndedGroup>>,
    /// The numbers of records that launches of graphs have.
    graph_sizes: GraphSizes,
    /// Records that may belong to calls that have not ended.
    unclaimed: UnclaimedRecords,
    /// Launches of helper threads for calls that have not ended.
    helped: HelperLaunches,
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
    #[allow(clippy::vec_box, reason = "threads hold their calls as boxes")]
    spare: Vec<Box<OpenCall>>,
}

/// The launch of a group whose call has been recorded.
struct EndedGroup {
    at: Instant,
    graph: Option<GraphExec>,
}

static COLLECTOR: Mutex<Collector> = Mutex::new(Rank::Collector, Collector::new());

/// Set if the last report has given up while another thread kept the collector.
static IS_ABANDONED: AtomicBool = AtomicBool::new(false);

/// Adds a call that has ended.
pub(super) fn add(call: Box<OpenCall>) {
    match call_exchange::add_ended(call) {
        Ok(true) => THREAD.thread.get().into_iter().for_each(Thread::unpark),
        Ok(false) => {}
        // There is no thread, and no report.
        Err(call) => finish(WaitingCall::new(call), None, Some(Lost::Records), None),
    }
}

/// Starts the thread once CUPTI has begun to record, so that its buffers do not fill.
pub(crate) fn keep_up() {
    if cupti::has_recorded() {
        THREAD.started.call_once(|| {
            // Without the thread, reports collect.
            _ = background::spawn("gpu-time-kernels", || {
                _ = THREAD.thread.set(thread::current());
                cupti::wake_when_buffers_fill();
                run();
            });
        });
    }
}

fn run() {
    while !switches::is_closed() && !fork::is_forked() {
        cupti::stop_unused();
        if !is_waiting() && !cupti::is_recording() {
            thread::park_timeout(Duration::from_secs(1));
            continue;
        }
        // The records of a call that has not ended are taken only to make room for more.
        if (wait_for_records() || is_waiting())
            && let Some(mut collector) = locked_by(&COLLECTOR, Instant::now() + PERIOD)
        {
            let due = collector.due_drain();
            collector.collect(due);
        }
    }
}

/// Waits for [`PERIOD`], or until CUPTI's buffers fill. Returns `true` if they do.
fn wait_for_records() -> bool {
    let end = Instant::now() + PERIOD;
    loop {
        let rest = end.saturating_duration_since(Instant::now());
        let are_filling = cupti::are_buffers_filling();
        if are_filling || rest.is_zero() {
            return are_filling;
        }
        thread::park_timeout(rest);
    }
}

/// Returns `true` if calls wait for their records.
pub(crate) fn is_waiting() -> bool {
    call_exchange::waiting() > 0
}

/// Flushes CUPTI, and records the calls that are complete. Does nothing if another thread is still doing so
/// at the deadline.
pub(crate) fn collect(deadline: Instant) {
    if fork::is_forked() {
        return;
    }
    if let Some(mut collector) = locked_by(&COLLECTOR, deadline) {
        collector.collect(DrainKind::Flushed);
    }
}

/// Collects once more, and counts the calls that still wait for a record as lost. For the last report.
pub(crate) fn give_up(deadline: Instant) {
    if fork::is_forked() {
        return;
    }
    match locked_by(&COLLECTOR, deadline) {
        Some(mut collector) => {
            collector.collect(DrainKind::Last);
            collector.give_up();
        }
        None => IS_ABANDONED.store(true, Relaxed),
    }
}

/// Locks the collector, so that no records are taken meanwhile. `None` if another thread is still using it at the
/// deadline.
pub(crate) fn pause(deadline: Instant) -> Option<MutexGuard<'static, Collector>> {
    locked_by(&COLLECTOR, deadline)
}

impl Collector {
    /// Returns how often calls have looked for an unclaimed record.
    #[cfg(test)]
    pub fn lookups(&self) -> usize {
        self.unclaimed.lookups
    }

    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Lets time pass.
    #[cfg(test)]
    pub fn wait(&mut self, time: Duration) {
        self.calls.values_mut().for_each(|waiting| waiting.heard -= time);
        self.flushed.iter_mut().for_each(|flushed| *flushed -= time);
    }

    pub const fn new() -> Collector {
        Collector {
            calls: BTreeMap::new(),
            next: 0,
            work: 0,
            launches: None,
            progress: StreamProgress::new(),
            dropped_ns: 0,
            ended_groups: None,
            graph_sizes: GraphSizes::new(),
            unclaimed: UnclaimedRecords::new(),
            helped: HelperLaunches::new(),
            bases: Vec::new(),
            alignment: None,
            flushed: None,
            has_given_up: false,
            spare: Vec::new(),
        }
    }

    /// Adds a measurement. No records may have been taken since its first launch.
    pub fn add_base(&mut self, base: Measurement) {
        self.bases.push(base);
    }

    /// Returns which records the thread should take: a flush is due after [`FLUSH_PERIOD`], or if many calls wait.
    pub fn due_drain(&self) -> DrainKind {
        let has_waited = self.flushed.is_none_or(|flushed| flushed.elapsed() >= FLUSH_PERIOD);
        let are_many =
            call_exchange::waiting() >= MAX_WAITING as u64 / 2 || self.work >= MAX_WAITING_WORK / 2;
        if has_waited || are_many { DrainKind::Flushed } else { DrainKind::Completed }
    }

    /// Takes records from CUPTI, and records the calls that are complete.
    pub fn collect(&mut self, which: DrainKind) {
        let is_last = which == DrainKind::Last;
        // Checked before the records are taken, which may belong to launches of a call that has not
        // ended.
        let may_be_claimed = open_call::may_be_claimed();
        self.claim_ended();
        self.begin_round();
        self.alignment = Some(Alignment::read(self.alignment));
        let mut of_no_call = 0;
        let drained = {
            let mut windows = windows();
            windows.begin_round();
            let drained = cupti::drain(which, &mut |activity| {
                let is_of_window = windows.take(activity, &mut self.progress);
                let is_of_no_call = is_of_window || self.is_of_no_call(activity, is_last);
                of_no_call += u64::from(!activity.has_times() && is_of_no_call);
                if !is_of_window {
                    self.take(activity);
                }
            });
            if !drained.has_flushed {
                windows.repeat_round();
            }
            let has_dropped = drained.dropped > 0;
            windows.end_round(&mut self.progress, has_dropped, drained.has_flushed, is_last);
            drained
        };
        if drained.has_flushed {
            self.note_flush();
        } else {
            self.repeat_round();
        }
        self.note_dropped(drained.dropped);
        ZERO_TIMES.fetch_add(drained.zero_times - of_no_call, Relaxed);
        self.claim_ended();
        if !may_be_claimed && !open_call::may_be_claimed() && !call_exchange::has_ended() {
            self.unclaimed.clear();
            self.helped.clear();
        }
        self.finish(is_last && drained.has_flushed);
        self.bases.retain_mut(|base| !base.end_round(drained.has_flushed, is_last));
        self.ended_groups.get_or_insert_default().retain(|_, ended| ended.at.elapsed() < KEPT);
    }

    /// Returns `true` if a record is known to belong to no opened call. Windows are not told late records of those
    /// that they count as incomplete. Work that was enqueued during the exit is in no call either.
    pub fn is_of_no_call(&self, activity: &Activity, is_last: bool) -> bool {
        let launches = self.launches.as_ref();
        let awaits = || launches.is_some_and(|known| known.contains_key(&activity.correlation));
        foreign_launches::contains(activity.correlation) || is_last && !awaits()
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
        }
    }

    /// Begins a round. Must be called before the records of a collection are taken.
    pub fn begin_round(&mut self) {
        self.calls.values_mut().for_each(|waiting| waiting.quiet += 1);
    }

    /// Does not count the current round: CUPTI was not flushed, so a lack of records means nothing.
    pub fn repeat_round(&mut self) {
        self.calls.values_mut().for_each(|waiting| waiting.quiet = waiting.quiet.saturating_sub(1));
    }

    /// Takes over the calls that have ended since the last time.
    fn claim_ended(&mut self) {
        let mut calls = std::mem::take(&mut self.spare);
        call_exchange::take_ended(&mut calls);
        // After the calls, so that theirs are among them.
        self.helped.take_noted();
        self.claim(calls.drain(..));
        self.spare = calls;
    }

    /// Takes over calls that have ended, with the unclaimed records of their launches.
    pub fn claim(&mut self, ended: impl IntoIterator<Item = Box<OpenCall>>) {
        let launches = self.launches.get_or_insert_default();
        for mut call in ended {
            self.helped.give_to(&mut call);
            let number = self.next;
            self.next += 1;
            let mut waiting = WaitingCall::new(call);
            for at in 0..waiting.call.launches.len() {
                let correlation = waiting.call.launches[at].correlation;
                launches.insert(correlation, (number, at as u32));
                while let Some(record) = self.unclaimed.claim(correlation) {
                    if let Some(launch) = waiting.take(&record, at, self.alignment) {
                        self.progress.note(launch.stream, launch.correlation);
                    }
                }
            }
            self.work += waiting.work();
            self.calls.insert(number, waiting);
        }
    }

    /// Takes a record for the measurement or the call that made its launch, or keeps it as
    /// unclaimed.
    pub fn take(&mut self, activity: &Activity) {
        if self.bases.iter_mut().any(|base| base.take(activity)) {
            return;
        }
        let launch = self.launches.as_ref().and_then(|of| of.get(&activity.correlation).copied());
        let waiting =
            launch.and_then(|(number, at)| Some((self.calls.get_mut(&number)?, at as usize)));
        match waiting {
            Some((waiting, at)) => {
                let before = waiting.work();
                if let Some(launch) = waiting.take(activity, at, self.alignment) {
                    self.progress.note(launch.stream, launch.correlation);
                }
                self.work += waiting.work() - before;
            }
            None => self.keep(activity),
        }
    }

    /// Keeps a record that a call may claim when it ends. Counts one that came too late for its call, and the
    /// oldest one if it must make room.
    fn keep(&mut self, activity: &Activity) {
        let groups = self.ended_groups.as_ref();
        if let Some(group) = groups.and_then(|groups| groups.get(&activity.correlation)) {
            LATE.fetch_add(1, Relaxed);
            group.graph.into_iter().for_each(|graph| self.graph_sizes.note_late(graph));
            return;
        }
        if foreign_launches::contains(activity.correlation) {
            return;
        }
        if self.unclaimed.is_full() {
            EVICTED.fetch_add(1, Relaxed);
            self.dropped_ns = clock::now_ns();
        }
        self.unclaimed.keep(activity);
    }

    /// Records the calls that are complete, and counts as lost those that cannot become so. If too
    /// many calls wait, counts the oldest as lost. `is_last` means that there are no more records.
    pub fn finish(&mut self, is_last: bool) {
        let now = Instant::now();
        let sizes = &mut self.graph_sizes;
        self.calls.values_mut().for_each(|waiting| waiting.note_quiet_graphs(sizes));
        let outlooks = self.calls.iter().map(|(number, waiting)| {
            (*number, waiting.outlook(&self.progress, sizes, now, is_last))
        });
        let ended = outlooks.filter(|(_, outlook)| *outlook != Outlook::MoreExpected);
        let ended: Vec<_> = ended.collect();
        for (number, outlook) in &ended {
            let complete = self.calls.get(number).filter(|_| *outlook == Outlook::Complete);
            if let Some(waiting) = complete.filter(|of| !of.may_lack(self.dropped_ns)) {
                waiting.note_ended_graphs(sizes);
            }
        }
        for (number, outlook) in ended {
            if let Some(waiting) = self.calls.remove(&number) {
                self.work -= waiting.work();
                self.keep_groups(&waiting, now);
                let is_lost = outlook == Outlook::Lost
                    || waiting.may_lack(self.dropped_ns)
                    || waiting.has_short_graph(&self.graph_sizes);
                let has_given_up = self.has_given_up || IS_ABANDONED.load(Relaxed);
                let too_late = has_given_up.then_some(Lost::Unfinished);
                let lost = is_lost.then_some(Lost::Records).or(too_late);
                finish(waiting, self.launches.as_mut(), lost, self.alignment);
            }
        }
        let crowded_out = self.give_up_beyond(MAX_WAITING, MAX_WAITING_WORK);
        CROWDED_OUT.fetch_add(crowded_out, Relaxed);
    }

    /// Keeps the launches of groups in a call that is about to be recorded.
    fn keep_groups(&mut self, waiting: &WaitingCall, now: Instant) {
        if waiting.has_groups {
            let groups = self.ended_groups.get_or_insert_default();
            let launches = waiting.call.launches.iter().filter(|launch| launch.is_group);
            let space = MAX_KEPT.saturating_sub(groups.len());
            let ended = |launch: &FrameLaunch| {
                (launch.correlation, EndedGroup { at: now, graph: launch.graph })
            };
            groups.extend(launches.take(space).map(ended));
        }
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
        while (self.calls.len() > calls || self.work > work)
            && let Some((_, waiting)) = self.calls.pop_first()
        {
            self.work -= waiting.work();
            finish(waiting, self.launches.as_mut(), Some(Lost::Records), self.alignment);
            lost += 1;
        }
        lost
    }
}

/// Records a call that has been waited for, or counts it as lost, and keeps it for reuse.
fn finish(
    waiting: WaitingCall,
    launches: Option<&mut HashMap<u32, (u64, u32)>>,
    lost: Option<Lost>,
    alignment: Option<Alignment>,
) {
    if let Some(known) = launches {
        for launch in &waiting.call.launches {
            known.remove(&launch.correlation);
        }
    }
    call_exchange::give_back(waiting.record(lost, alignment));
}
