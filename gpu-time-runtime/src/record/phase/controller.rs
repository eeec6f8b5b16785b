//! The thread that begins and ends phases.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, fence};
use std::thread;
use std::time::{Duration, Instant};

use gpu_time_report::{Coverage, value};

use crate::base::lock::{Mutex, Rank, locked};
use crate::base::switches::{self, RecordingState};
use crate::base::{background, clock, console, fork};
use crate::cuda;
use crate::record::collector::{self, records, records_by};
use crate::record::launches;
use crate::record::opened::{self, devices};
use crate::record::phase::schedule::Schedule;
use crate::record::phase::{current, window};
use crate::stats::coverage::CoverageSums;
use crate::types::record_mode::{Needs, PhasePlan, RecordMode};
use crate::types::site_time::SiteTime;
use crate::{cupti, cupti::RecordingGuard, health};

/// The time for which CUPTI stays on after a phase, so that launches that began in it are recorded.
const TAIL: Duration = Duration::from_millis(1);
/// The interval at which notes are taken during a phase.
const STEP: Duration = Duration::from_millis(5);
/// The same during a phase without an end.
const LONG_STEP: Duration = Duration::from_millis(20);
/// The longest sleep. After it, the thread checks whether the process is ending.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// The longest wait for the records of a phase from the start, before CUPTI is given up.
const RECORDS_PATIENCE: Duration = Duration::from_secs(10);
/// The longest time that the program waits for recording to begin before it creates a context.
const START_PATIENCE: Duration = Duration::from_millis(500);
/// The longest time that a report waits for another thread that takes records.
const REPORT_PATIENCE: Duration = Duration::from_secs(2);

/// The orders to the thread.
struct PhaseOrders {
    recording: RecordMode,
    /// The time of [`RecordMode::Start`] is over.
    is_start_over: bool,
    /// The number of changes that end a phase in progress.
    changes: u64,
    requested: Option<Duration>,
    /// The program asked for records, or has called a function that needs them.
    is_wanted: bool,
    has_thread: bool,
    /// The reason why the thread could not be started. The next order that needs it tries again.
    no_thread: Option<String>,
    /// Calls are on the stack while phases may begin.
    is_marking: bool,
    /// The number of runs of `until_stable` and `compare` in progress, in which no planned phase begins.
    suspensions: u32,
    /// In these, functions were called that need records, and functions that need events.
    run_needs: Needs,
    /// The time for which they kept phases from beginning, and since when they do.
    suspended: (Duration, Option<Instant>),
}

/// The state that the thread shares with the rest of the runtime.
struct PhaseState {
    orders: Mutex<PhaseOrders>,
    is_ordered: AtomicBool,
    /// Planned phases are suspended, and nothing has needed records so far.
    is_suspended: AtomicBool,
    /// A run is recorded because all functions that it has called need records.
    is_run_recorded: AtomicBool,
    /// The thread records, or is about to.
    is_recording: AtomicBool,
    /// Called before each phase.
    before_opening: OnceLock<fn()>,
}

static STATE: PhaseState = PhaseState {
    orders: Mutex::new(
        Rank::PhaseOrders,
        PhaseOrders {
            recording: RecordMode::Off,
            is_start_over: false,
            changes: 0,
            requested: None,
            is_wanted: false,
            has_thread: false,
            no_thread: None,
            is_marking: false,
            suspensions: 0,
            run_needs: Needs { events: false, records: false },
            suspended: (Duration::ZERO, None),
        },
    ),
    is_ordered: AtomicBool::new(false),
    is_suspended: AtomicBool::new(false),
    is_run_recorded: AtomicBool::new(false),
    is_recording: AtomicBool::new(false),
    before_opening: OnceLock::new(),
};

/// Sets when to record. Unless it is `wanted` now, the thread starts with the first call that needs
/// [records](want). Drops the request that waits unless `may_record`.
pub(crate) fn set(recording: RecordMode, wanted: bool, may_record: bool) {
    STATE.is_ordered.store(wanted && recording != RecordMode::Off, Relaxed);
    order(|orders| {
        orders.changes += u64::from(!may_record);
        orders.requested.take_if(|_| !may_record);
        orders.change(|orders| {
            orders.is_start_over &= orders.recording == recording;
            orders.recording = recording;
            orders.is_wanted |= wanted;
        });
    });
}

/// Lets no planned phase begin until the returned value is dropped, and ends the one in progress. If functions are called
/// that [need](want_in_run) records, everything is recorded instead. If others need events as well, the two take turns.
pub(crate) fn suspend() -> Suspension {
    order(|orders| orders.change(|orders| orders.suspensions += 1));
    Suspension(())
}

/// Keeps planned phases from beginning.
#[must_use]
pub(crate) struct Suspension(());

impl Drop for Suspension {
    fn drop(&mut self) {
        if fork::is_forked() {
            return;
        }
        order(|orders| {
            orders.change(|orders| {
                orders.suspensions -= 1;
                if orders.suspensions == 0 {
                    orders.run_needs = Needs::default();
                }
            });
        });
    }
}

/// Notes what a call needs in a run in which planned phases are suspended: records, which there are none of, or events,
/// while everything is recorded because other calls need records. With both, phases take turns again.
#[cold]
pub(crate) fn want_in_run(needs: Needs) {
    order(|orders| {
        let all = orders.run_needs.and(needs);
        if orders.suspensions > 0 && all != orders.run_needs {
            orders.change(|orders| orders.run_needs = all);
        }
    });
}

/// Returns `true` if planned phases are suspended.
pub(crate) fn is_suspended() -> bool {
    STATE.is_suspended.load(Relaxed)
}

/// Returns `true` if a run is recorded because all functions that it has called need records.
pub(crate) fn is_run_recorded() -> bool {
    STATE.is_run_recorded.load(Relaxed)
}

/// Returns `true` if the program or its user asked for records, whether or not its functions need them.
pub(crate) fn is_ordered() -> bool {
    STATE.is_ordered.load(Relaxed)
}

/// Notes that a call needs records.
#[inline]
pub(crate) fn want() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    if !ONCE.is_completed() {
        ONCE.call_once(|| {
            order(|orders| orders.is_wanted = true);
        });
    }
}

/// Requests a phase of this length, or of the plan's length by default. It begins as soon as the process has a
/// CUDA context.
pub(crate) fn request(length: Option<Duration>) {
    let change = |orders: &mut PhaseOrders| {
        let usual = orders.recording.plan().map_or(PhasePlan::USUAL_LENGTH, PhasePlan::length);
        let length = length.unwrap_or(usual).min(RecordMode::LONGEST);
        orders.add(length);
    };
    order(change);
}

/// Calls `prepare` before each phase. Only the first call has an effect.
pub(crate) fn before_opening(prepare: fn()) {
    _ = STATE.before_opening.set(prepare);
}

/// Returns how busy the device with this ordinal was. `None` if there were no phases.
pub(crate) fn coverage(device: u32) -> Option<Coverage> {
    let covered = covered();
    let coverage = read_sums(|sums| sums.report(device, covered.as_secs_f64()))??;
    Some(value!(Coverage { covered_ns: covered.as_nanos() as f64, ..coverage }))
}

/// Returns the times of annotated functions on the device with this ordinal, as phases tell.
pub(crate) fn site_times(device: u32) -> Vec<SiteTime> {
    let covered_s = covered().as_secs_f64();
    read_sums(|sums| sums.site_times(device, covered_s)).unwrap_or_default()
}

/// Returns what `read` finds in the sums over all windows. `None` if another thread keeps them locked, because CUPTI does
/// not hand over its records.
fn read_sums<T>(read: impl FnOnce(&CoverageSums) -> T) -> Option<T> {
    let records = records_by(Instant::now() + REPORT_PATIENCE)?;
    Some(read(&records.windows.sums))
}

/// Returns the time that the phases stand for: the run from the time on from which they could begin, without that of runs
/// of `until_stable` and `compare` in which none could.
fn covered() -> Duration {
    let (total, since) = locked(&STATE.orders).suspended;
    let suspended = total + since.map_or(Duration::ZERO, |since| since.elapsed());
    window::ready().map_or(Duration::ZERO, |ready| match recording_until() {
        Some(until) => until.saturating_duration_since(ready),
        None => window::until().saturating_duration_since(ready).saturating_sub(suspended),
    })
}

/// Returns the end of a phase from the start of the process, if it is over.
fn recording_until() -> Option<Instant> {
    let orders = locked(&STATE.orders);
    match orders.recording {
        RecordMode::Start(length) if orders.is_start_over => {
            Some(clock::started().monotonic + length)
        }
        _ => None,
    }
}

/// Returns `true` if phases have ever been planned or requested, and could begin.
pub(crate) fn is_used() -> bool {
    locked(&STATE.orders).has_thread
}

/// Returns a warning if phases were planned or requested, and none could begin.
pub(crate) fn warning() -> Option<String> {
    let no_thread = locked(&STATE.orders).no_thread.clone();
    if let Some(why) = no_thread {
        return Some(format!("nothing can be recorded in phases: {why}"));
    }
    let has_context = !cuda::contexts().is_empty() || !devices::recorded().is_empty();
    let has_begun = has_context || window::ready().is_some();
    // Without CUPTI, the report says what is missing.
    let lacks_context = is_used() && !has_begun && cupti::why_unavailable().is_none();
    lacks_context.then(|| {
        "nothing was recorded: phases begin once a device has a primary context, or a timed call has used a GPU by \
         events or CUPTI"
            .to_owned()
    })
}

/// Waits until no phase is in progress. Timing must be switched off.
pub(crate) fn wait_for_end(deadline: Instant) {
    window::wake();
    // Pairs with the fence in `switch_on`.
    fence(SeqCst);
    let is_recording = || STATE.is_recording.load(Relaxed) || window::is_open();
    clock::wait_until(deadline, TAIL, || !is_recording());
}

/// Ends the windows with the program, whose last report follows.
pub(crate) fn end() {
    if is_used() && !fork::is_forked() {
        window::end();
    }
}

impl PhaseOrders {
    /// Returns when to record from now on.
    fn effective(&self) -> RecordMode {
        match self.recording {
            RecordMode::Start(_) if self.is_start_over => RecordMode::Off,
            RecordMode::Phases(_) if self.suspensions > 0 => {
                self.run_needs.record_mode(self.recording)
            }
            recording => recording,
        }
    }

    /// Makes a change, which ends a phase in progress if it changes when to record.
    fn change(&mut self, change: impl FnOnce(&mut PhaseOrders)) {
        let before = self.effective();
        change(self);
        let now = self.effective();
        if now != before {
            self.changes += 1;
            match now {
                RecordMode::On | RecordMode::Start(_) => current::begin_endless(),
                RecordMode::Off | RecordMode::Phases(_) => current::end_endless(),
            }
        }
        let Needs { records, events } = self.run_needs;
        let is_suspended = self.suspensions > 0 && !records;
        STATE.is_suspended.store(is_suspended, Relaxed);
        STATE.is_run_recorded.store(records && !events, Relaxed);
        let (total, since) = &mut self.suspended;
        *total += since.take().map_or(Duration::ZERO, |since| since.elapsed());
        // Before phases can begin, nothing keeps them from it.
        if is_suspended && window::ready().is_some() {
            *since = Some(Instant::now());
        }
        self.mark();
    }

    fn needs_thread(&self) -> bool {
        self.requested.is_some() || self.is_wanted && self.effective() != RecordMode::Off
    }

    /// Joins a request with the one that waits, if there is one: the longer length counts.
    fn add(&mut self, length: Duration) {
        self.requested = Some(self.requested.map_or(length, |waits| waits.max(length)));
        self.mark();
    }

    /// Marks calls as long as a phase may begin, so that those around it are known.
    fn mark(&mut self) {
        let may_begin = self.effective().plan().is_some() || self.requested.is_some();
        if may_begin && !self.is_marking {
            switches::begin_recording(RecordingState::Soon);
        } else if !may_begin && self.is_marking {
            switches::end_recording(RecordingState::Soon);
        }
        self.is_marking = may_begin;
    }
}

fn order(change: impl FnOnce(&mut PhaseOrders)) {
    if fork::is_forked() || switches::is_closed() {
        return;
    }
    let mut orders = locked(&STATE.orders);
    change(&mut orders);
    let is_first = orders.needs_thread() && !orders.has_thread;
    orders.has_thread |= is_first;
    drop(orders);
    if is_first {
        note_start(&STATE.orders, background::spawn("gpu-time-phases", run));
    }
    window::wake();
}

/// Notes whether the thread could be started. If not, says why, and drops the request, which nothing will
/// answer.
fn note_start(orders: &Mutex<PhaseOrders>, started: io::Result<()>) {
    let no_thread =
        started.err().map(|error| format!("failed to start the thread for phases: {error}"));
    no_thread.iter().for_each(|why| console::say(why));
    let mut orders = locked(orders);
    if no_thread.is_some() {
        (orders.has_thread, orders.requested) = (false, None);
    }
    orders.no_thread = no_thread;
}

fn run() {
    window::set_thread();
    let mut schedule = Schedule::default();
    while !has_ended() {
        let now = Instant::now();
        let (recording, requested) = ordered(has_orders() && can_begin());
        if let RecordMode::On | RecordMode::Start(_) = recording {
            record_on(recording);
            _ = schedule.next(None, now);
            give_up_after_start();
            continue;
        }
        let planned = schedule.next(recording.plan(), now);
        if let Some(length) = requested {
            let has_recorded = record(length, None);
            let mut orders = locked(&STATE.orders);
            if has_recorded {
                // Calls were marked until the phase had begun.
                orders.mark();
            } else {
                orders.add(length);
                drop(orders);
                thread::park_timeout(STEP);
            }
        } else if let Some((plan, at)) = planned
            && now >= at
        {
            if !record(plan.length(), Some(plan)) {
                // A later one would not be at a random time.
                records().windows.sums.add_missed(plan.length().as_nanos() as u64);
            }
            schedule.advance();
        } else {
            let pause = planned.map(|(_, at)| at.saturating_duration_since(now));
            thread::park_timeout(pause.unwrap_or(LONGEST_SLEEP).min(LONGEST_SLEEP));
        }
    }
}

fn has_ended() -> bool {
    switches::is_closed() || fork::is_forked()
}

fn has_orders() -> bool {
    let orders = locked(&STATE.orders);
    orders.effective() != RecordMode::Off || orders.requested.is_some()
}

/// Returns the orders, if they can be carried out now. Takes the request.
fn ordered(can_begin: bool) -> (RecordMode, Option<Duration>) {
    let mut orders = locked(&STATE.orders);
    if !can_begin {
        return (RecordMode::Off, None);
    }
    let (recording, requested) = (orders.effective(), orders.requested.take());
    if let RecordMode::On | RecordMode::Start(_) = recording {
        // The phase in progress answers the request.
        orders.mark();
    }
    (recording, requested)
}

/// Returns `true` if timing is on and the process has a context. Without a context, there is no GPU work to record,
/// and no reason to load CUPTI, unless the start is recorded: what CUPTI leaves behind is least if it has begun before
/// the first context.
fn can_begin() -> bool {
    switches::is_on() && (is_start(locked(&STATE.orders).effective()) || has_context())
}

fn is_start(recording: RecordMode) -> bool {
    matches!(recording, RecordMode::Start(_))
}

/// Waits for a phase from the start to begin, unless there is a context already.
pub(crate) fn wait_for_start() {
    let deadline = Instant::now() + START_PATIENCE;
    if is_start(locked(&STATE.orders).effective()) && !has_context() {
        let has_begun = || cupti::is_recording() || cupti::why_unavailable().is_some();
        clock::wait_until(deadline, TAIL, has_begun);
    }
}

/// Gives CUPTI up once a phase from the start is over, so that other tools can have it.
fn give_up_after_start() {
    let is_over = || {
        let orders = locked(&STATE.orders);
        orders.is_start_over && is_start(orders.recording) && orders.requested.is_none()
    };
    if is_over() && cupti::is_in_use() {
        collector::wait_until_collected(Instant::now() + RECORDS_PATIENCE);
        let mut pause = STEP;
        while is_over() && !has_ended() && !cupti::never_stops() && !cupti::give_up() {
            // A call that began while CUPTI recorded may be open for long.
            thread::sleep(pause);
            pause = (2 * pause).min(LONGEST_SLEEP);
        }
    }
}

/// Returns `true` if the process has a context. The driver knows primary contexts even if no call was timed on
/// them.
fn has_context() -> bool {
    !cuda::contexts().is_empty() || !cuda::active_devices().is_empty()
}

/// Remembers the devices whose primary context exists.
fn note_devices() {
    cuda::active_devices().into_iter().for_each(devices::note);
    devices::recorded().iter().for_each(health::observe);
}

/// CUPTI records, and a window takes what is launched.
struct Recorded {
    _switched_on: RecordingGuard,
    _is_recording: Counted,
}

/// Counts the thread's recording as in progress.
struct Counted;

impl Counted {
    fn new() -> Counted {
        STATE.is_recording.store(true, Relaxed);
        switches::begin_recording(RecordingState::Now);
        Counted
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        switches::end_recording(RecordingState::Now);
        STATE.is_recording.store(false, Relaxed);
    }
}

/// Switches CUPTI on. `Err(true)` if CUPTI is unavailable, and `Err(false)` if that is not possible now: another thread
/// loads code, during which CUPTI cannot be switched on, or too many windows wait for records.
fn switch_on() -> Result<Recorded, bool> {
    cupti::observe_launches(opened::OBSERVER);
    let is_recording = Counted::new();
    // Timing may have been switched off since the caller looked, and nobody may be waiting any more.
    fence(SeqCst);
    if !switches::is_on() {
        return Err(false);
    }
    STATE.before_opening.get().into_iter().for_each(|prepare| prepare());
    if cupti::is_available() {
        note_devices();
    }
    if !records().windows.has_room() {
        return Err(false);
    }
    let switched_on = cupti::switch_on().ok_or_else(|| !cupti::is_available())?;
    collector::keep_up();
    Ok(Recorded { _switched_on: switched_on, _is_recording: is_recording })
}

/// Records until something else is ordered. Waits a little if that is not possible now.
fn record_on(recording: RecordMode) {
    let recorded = match switch_on() {
        Ok(recorded) => recorded,
        Err(is_unavailable) => {
            thread::park_timeout(if is_unavailable { LONGEST_SLEEP } else { STEP });
            return;
        }
    };
    let since_start = || clock::started().monotonic.elapsed();
    let is_over = || matches!(recording, RecordMode::Start(length) if since_start() >= length);
    let mut divided = Instant::now();
    while locked(&STATE.orders).effective() == recording && switches::is_on() {
        if has_ended() {
            // The last report divides what is open.
            return;
        }
        if !window::is_open() && has_context() {
            window::open(window::LENGTH, false);
        }
        if is_over() {
            let mut orders = locked(&STATE.orders);
            if orders.recording == recording {
                orders.is_start_over = true;
                current::end_endless();
            }
            break;
        }
        thread::park_timeout(LONG_STEP);
        take_launches();
        if divided.elapsed() >= window::LENGTH {
            divided = Instant::now();
            records().divide_window(cupti::now_ns());
        }
    }
    close(recorded);
}

/// Records a phase of this length, which is requested unless it belongs to a plan. Returns `false` if that is not
/// possible now. Returns `true` without a phase if CUPTI is unavailable. A planned phase that begins late does not end
/// later.
fn record(length: Duration, plan: Option<PhasePlan>) -> bool {
    let wanted = Instant::now();
    let is_first = window::ready().is_none();
    let changes = locked(&STATE.orders).changes;
    let recorded = match switch_on() {
        Ok(recorded) => recorded,
        Err(is_unavailable) => return is_unavailable,
    };
    let now = Instant::now();
    // The program may be more likely to launch once it has loaded code.
    let end_at = if plan.is_some() && !is_first { wanted } else { now } + length;
    if now >= end_at {
        return false;
    }
    window::open(length, plan.is_some());
    current::begin(plan.map_or(1.0, PhasePlan::weight) as f32);
    let is_over = || !switches::is_on() || locked(&STATE.orders).changes != changes;
    loop {
        let rest = end_at.saturating_duration_since(Instant::now());
        if has_ended() {
            return true;
        }
        if rest.is_zero() || is_over() {
            break;
        }
        thread::park_timeout(rest.min(STEP));
        take_launches();
    }
    current::end();
    close(recorded);
    true
}

/// Takes the launches that have been made, unless another thread is about to do so.
fn take_launches() {
    if let Some(mut records) = records_by(Instant::now()) {
        records.take_launches();
    }
}

/// Closes the window, and switches CUPTI off soon after.
fn close(recorded: Recorded) {
    launches::set_window(false);
    let end_ns = cupti::now_ns();
    thread::sleep(TAIL);
    drop(recorded);
    note_devices();
    records().close_window(end_ns);
    window::note_closed();
    collector::wake();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orders(requested: Option<Duration>) -> PhaseOrders {
        let recording = RecordMode::Off;
        PhaseOrders {
            recording,
            is_start_over: false,
            changes: 0,
            requested,
            is_wanted: false,
            has_thread: true,
            no_thread: None,
            is_marking: false,
            suspensions: 0,
            run_needs: Needs::default(),
            suspended: (Duration::ZERO, None),
        }
    }

    #[test]
    fn longest_request_stays() {
        let mut orders = orders(None);
        for (ms, expected) in [(5, 5), (20, 20), (10, 20)] {
            orders.add(Duration::from_millis(ms));
            assert_eq!(orders.requested, Some(Duration::from_millis(expected)));
        }
        orders.requested = None;
        orders.mark();
    }

    #[test]
    fn run_records_what_its_functions_need() {
        let plan = RecordMode::Phases(PhasePlan::USUAL);
        let effective = |suspensions, records, events| {
            let run_needs = Needs { records, events };
            PhaseOrders { recording: plan, suspensions, run_needs, ..orders(None) }.effective()
        };
        assert_eq!(effective(0, false, false), plan);
        assert_eq!(effective(1, false, true), RecordMode::Off);
        assert_eq!(effective(1, true, false), RecordMode::On);
        assert_eq!(effective(2, true, true), plan);
    }

    #[test]
    fn thread_that_failed_to_start_is_missing() {
        let orders = Mutex::new(Rank::PhaseOrders, orders(Some(PhasePlan::USUAL_LENGTH)));
        note_start(&orders, Err(io::Error::other("no memory")));
        let expected = "failed to start the thread for phases: no memory";
        let failed = locked(&orders);
        assert_eq!((failed.has_thread, failed.no_thread.as_deref()), (false, Some(expected)));
        assert!(failed.requested.is_none());
        drop(failed);
        note_start(&orders, Ok(()));
        assert_eq!(locked(&orders).no_thread, None);
    }
}
