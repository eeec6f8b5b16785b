//! The thread that opens and closes windows.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use gpu_time_report::{Coverage, value};

use crate::base::lock::{Mutex, Rank, locked};
use crate::base::switches::{self, RecordingPhase};
use crate::base::{background, clock, console, fork};
use crate::cuda::{self, DeviceInfo};
use crate::record::opened::{self, collector};
use crate::record::window::matching::{self, windows};
use crate::record::window::notes;
use crate::record::window::schedule::{Collections, Schedule};
use crate::site::cost;
use crate::types::window_plan::WindowPlan;
use crate::{cupti, health};

/// The time before a window in which calls are already marked, so that a launch in the window is attributed to
/// a function that began earlier.
const LEAD: Duration = Duration::from_millis(500);
/// The time for which CUPTI stays on after a window, so that launches that began in it are
/// recorded.
const TAIL: Duration = Duration::from_millis(1);
/// The interval at which notes are taken during a window.
const STEP: Duration = Duration::from_millis(5);
/// The number of launches after which records are collected during a window. CUPTI's buffers have
/// space for more.
const LAUNCHES_PER_COLLECTION: usize = 4_096;
/// The longest sleep. After it, the thread checks whether the process is ending.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// The host time of switching recording on and off.
const SWITCH_COST_NS: u64 = 6_000;

/// The requests to the thread.
struct WindowOrders {
    plan: Option<WindowPlan>,
    requested: Option<WindowRequest>,
    has_thread: bool,
    /// The reason why the thread could not be started. The next order that needs it tries again.
    no_thread: Option<String>,
}

/// A window that is to open as soon as possible.
struct WindowRequest {
    length: Duration,
    /// Exists from the request on, unless the window must wait for a context.
    marking: Option<Marking>,
}

/// The state that the thread shares with the rest of the runtime.
struct WindowState {
    orders: Mutex<WindowOrders>,
    /// Set once the thread runs.
    thread: OnceLock<Thread>,
    /// Called before each window.
    before_opening: OnceLock<fn()>,
    /// The devices whose primary context existed during a window. By the time of a report, it may be
    /// gone.
    devices: Mutex<Vec<DeviceInfo>>,
    /// The time for which windows were wanted and the process had no context.
    without_context: OnceLock<Duration>,
    /// The time that the first window took to open, mostly to load CUPTI.
    preparation: OnceLock<Duration>,
    /// The host time of windows that has not been charged to the budget yet.
    cost_ns: AtomicU64,
}

static STATE: WindowState = WindowState {
    orders: Mutex::new(
        Rank::WindowOrders,
        WindowOrders { plan: None, requested: None, has_thread: false, no_thread: None },
    ),
    thread: OnceLock::new(),
    before_opening: OnceLock::new(),
    devices: Mutex::new(Rank::WindowDevices, Vec::new()),
    without_context: OnceLock::new(),
    preparation: OnceLock::new(),
    cost_ns: AtomicU64::new(0),
};

/// Sets the plan by which windows are opened. Without a plan, they are only opened on request. Drops the request that
/// waits unless it `may_open`.
pub(crate) fn set(plan: Option<WindowPlan>, may_open: bool) {
    let change = |orders: &mut WindowOrders| {
        orders.plan = plan;
        orders.requested.take_if(|_| !may_open);
    };
    order(change, plan.is_some());
}

/// Requests a window of this length, or of the plan's length by default. It opens as soon as the process has a
/// CUDA context. Calls that begin after the request are attributed.
pub(crate) fn request(length: Option<Duration>) {
    let may_open = has_context();
    let change = |orders: &mut WindowOrders| {
        let usual = orders.plan.map_or(WindowPlan::USUAL_LENGTH, WindowPlan::length);
        let length = length.unwrap_or(usual).min(WindowPlan::LONGEST);
        let request = orders.add(WindowRequest { length, marking: None });
        if may_open {
            request.marking.get_or_insert_with(|| Marking::begin(RecordingPhase::Soon));
        }
    };
    order(change, true);
}

/// Wakes the thread, for example because a CUDA context has been found.
pub(crate) fn wake() {
    if let Some(thread) = STATE.thread.get() {
        thread.unpark();
    }
}

/// Calls `prepare` before each window. Only the first call has an effect.
pub(crate) fn before_opening(prepare: fn()) {
    _ = STATE.before_opening.set(prepare);
}

/// Returns the devices whose primary context existed during a window.
pub(crate) fn devices() -> Vec<DeviceInfo> {
    locked(&STATE.devices).clone()
}

/// Returns how busy the device with this ordinal was, as [`matching::coverage`] does, and the time that the windows
/// stand for: the run without the time in which they were wanted and could not open yet.
pub(crate) fn coverage(device: u32) -> Option<Coverage> {
    let closed = [&STATE.without_context, &STATE.preparation];
    let closed: Duration = closed.into_iter().filter_map(OnceLock::get).sum();
    let covered = clock::started().monotonic.elapsed().saturating_sub(closed);
    Some(value!(Coverage { covered_ns: covered.as_nanos() as f64, ..matching::coverage(device)? }))
}

/// Returns `true` if windows have ever been planned or requested, and could be opened.
pub(crate) fn is_used() -> bool {
    locked(&STATE.orders).has_thread
}

/// Returns a warning if windows were planned or requested, and none could open.
pub(crate) fn warning() -> Option<String> {
    let no_thread = locked(&STATE.orders).no_thread.clone();
    if let Some(why) = no_thread {
        return Some(format!("no window can be opened: {why}"));
    }
    let has_context = !cuda::contexts().is_empty() || !locked(&STATE.devices).is_empty();
    // Without CUPTI, the report says what is missing.
    let lacks_context = is_used() && !has_context && cupti::why_unavailable().is_none();
    lacks_context.then(|| {
        "no window was opened: windows begin once a device has a primary context, or a timed call has \
         used a GPU by events or CUPTI"
            .to_owned()
    })
}

/// Returns the cost of windows since the last call, in nanoseconds of host time.
pub(crate) fn take_cost_ns() -> u64 {
    STATE.cost_ns.swap(0, Relaxed)
}

impl WindowOrders {
    /// Joins a request with the one that waits, if there is one: the longer length counts.
    fn add(&mut self, new: WindowRequest) -> &mut WindowRequest {
        let length = new.length;
        let request = self.requested.get_or_insert(new);
        request.length = request.length.max(length);
        request
    }

    /// Returns `true` if a planned window is not the next one to open.
    fn has_changed(&self) -> bool {
        self.requested.is_some() || self.plan.is_none()
    }
}

fn order(change: impl FnOnce(&mut WindowOrders), needs_thread: bool) {
    if fork::is_forked() || switches::is_closed() {
        return;
    }
    let mut orders = locked(&STATE.orders);
    change(&mut orders);
    let is_first = needs_thread && !orders.has_thread;
    orders.has_thread |= is_first;
    drop(orders);
    if is_first {
        note_start(&STATE.orders, background::spawn("gpu-time-windows", run));
    }
    wake();
}

/// Notes whether the thread could be started. If not, says why, and drops the request, which nothing will
/// answer.
fn note_start(orders: &Mutex<WindowOrders>, started: io::Result<()>) {
    let no_thread =
        started.err().map(|error| format!("failed to start the thread for windows: {error}"));
    no_thread.iter().for_each(|why| console::say(why));
    let mut orders = locked(orders);
    if no_thread.is_some() {
        (orders.has_thread, orders.requested) = (false, None);
    }
    orders.no_thread = no_thread;
}

fn run() {
    _ = STATE.thread.set(thread::current());
    let mut schedule = Schedule::default();
    let mut collections = Collections::default();
    // The first order starts the thread.
    let wanted_since = Instant::now();
    while !has_ended() {
        let mut now = Instant::now();
        let has_orders = has_orders();
        let can_open = has_orders && can_open(wanted_since);
        let (plan, requested) = {
            let mut orders = locked(&STATE.orders);
            if let Some(request) = &mut orders.requested
                && has_orders
                && !can_open
            {
                request.marking = None;
            }
            (orders.plan.filter(|_| can_open), orders.requested.take_if(|_| can_open))
        };
        let planned = schedule.next(plan, now);
        let is_near = |now| planned.is_some_and(|(_, at)| now + LEAD >= at);
        // Checked before a window is opened, because windows that follow each other closely leave no other time.
        if collections.are_due(now, || windows().are_waiting()) {
            let _marking = is_near(now).then(|| Marking::begin(RecordingPhase::Soon));
            collect();
            now = Instant::now();
        }
        if let Some(request) = requested {
            if !record(request.length, false) {
                locked(&STATE.orders).add(request);
                thread::park_timeout(STEP);
            }
            collections.restart();
        } else if let Some((length, at)) = planned
            && is_near(now)
        {
            if let Some(_marking) = Marking::begin_until(at)
                && !record(length, true)
            {
                // A later one would not be at a random time.
                windows().miss(length.as_nanos() as u64);
            }
            schedule.advance();
            collections.restart();
        } else {
            let lead =
                planned.map(|(_, at)| at.saturating_duration_since(now).saturating_sub(LEAD));
            let sleep = [lead, collections.wait(now)].into_iter().flatten().min();
            thread::park_timeout(sleep.unwrap_or(LONGEST_SLEEP).min(LONGEST_SLEEP));
        }
    }
}

fn has_ended() -> bool {
    switches::is_closed() || fork::is_forked()
}

fn has_orders() -> bool {
    let orders = locked(&STATE.orders);
    orders.plan.is_some() || orders.requested.is_some()
}

/// Returns `true` if timing is on and the process has a context. Without a context, there is no GPU work to record,
/// and no reason to load CUPTI.
fn can_open(wanted_since: Instant) -> bool {
    if !switches::is_on() || !has_context() {
        return false;
    }
    STATE.without_context.get_or_init(|| wanted_since.elapsed());
    true
}

/// Returns `true` if the process has a context. The driver knows primary contexts even if no call was timed on
/// them.
fn has_context() -> bool {
    !cuda::contexts().is_empty() || !cuda::active_devices().is_empty()
}

/// Remembers the devices whose primary context exists.
fn note_devices() {
    let is_known = |of: u32| locked(&STATE.devices).iter().any(|device| device.ordinal == of);
    for ordinal in cuda::active_devices() {
        // Only this thread adds devices.
        if !is_known(ordinal) {
            let device = DeviceInfo::of(ordinal);
            health::observe(&device);
            locked(&STATE.devices).push(device);
        }
    }
}

/// Marks calls that begin while it exists, so that their launches are attributed.
///
/// Invariant: the recording has begun.
struct Marking(RecordingPhase);

impl Marking {
    fn begin(recording: RecordingPhase) -> Marking {
        switches::begin_recording(recording);
        Marking(recording)
    }

    /// Begins marking, then waits until `at`. Returns `None` if the process ends, a window is requested or none is
    /// planned any more in the meantime.
    fn begin_until(at: Instant) -> Option<Marking> {
        let marking = Marking::begin(RecordingPhase::Soon);
        loop {
            let rest = at.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                return Some(marking);
            }
            if has_ended() || locked(&STATE.orders).has_changed() {
                return None;
            }
            thread::park_timeout(rest);
        }
    }
}

impl Drop for Marking {
    fn drop(&mut self) {
        switches::end_recording(self.0);
    }
}

/// Records a window of this length. Returns `false` if that is not possible now, because another thread loads code,
/// while which CUPTI cannot be switched on, or too many windows wait for records. Returns `true` without a window
/// if CUPTI is unavailable. A planned window that opens late does not end later.
fn record(length: Duration, is_planned: bool) -> bool {
    let began = Instant::now();
    cupti::observe_launches(opened::OBSERVER);
    let _open = Marking::begin(RecordingPhase::Now);
    STATE.before_opening.get().into_iter().for_each(|prepare| prepare());
    if cupti::is_available() {
        note_devices();
    }
    if !windows().has_room() {
        return false;
    }
    let wanted = Instant::now();
    let Some(switched_on) = cupti::switch_on() else { return !cupti::is_available() };
    let is_first = STATE.preparation.get().is_none();
    STATE.preparation.get_or_init(|| began.elapsed());
    let now = Instant::now();
    // The program may be more likely to launch once it has loaded code.
    let end = if is_planned && !is_first { wanted } else { now } + length;
    if now >= end {
        return false;
    }
    collector::keep_up();
    windows().open(length.as_nanos() as u64);
    notes::open();
    let began_ns = cupti::now_ns();
    let (mut launches, mut collected) = (0, 0);
    loop {
        let rest = end.saturating_duration_since(Instant::now());
        if has_ended() {
            // CUPTI may be gone, and the last report does not wait for this window.
            notes::close();
            return true;
        }
        if rest.is_zero() {
            break;
        }
        thread::sleep(rest.min(STEP));
        launches += windows().take_notes();
        if launches - collected > LAUNCHES_PER_COLLECTION {
            collected = launches;
            collect();
        }
    }
    notes::close();
    let length_ns = cupti::now_ns().saturating_sub(began_ns);
    thread::sleep(TAIL);
    drop(switched_on);
    note_devices();
    let mut windows = windows();
    launches += windows.take_notes();
    windows.close(length_ns);
    drop(windows);
    charge(SWITCH_COST_NS + cupti::cost_ns(launches));
    true
}

/// Collects CUPTI's records. This may block launches on other threads, so its time is charged.
fn collect() {
    let began = Instant::now();
    collector::collect(began + LONGEST_SLEEP);
    charge(began.elapsed().as_nanos() as u64);
}

fn charge(ns: u64) {
    if cost::is_on() {
        count_cost(ns);
    }
}

/// Counts host time to charge to the budget.
pub(crate) fn count_cost(ns: u64) {
    STATE.cost_ns.fetch_add(ns, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_request_stays() {
        let mut orders =
            WindowOrders { plan: None, requested: None, has_thread: true, no_thread: None };
        for (ms, expected) in [(5, 5), (20, 20), (10, 20)] {
            orders.add(WindowRequest { length: Duration::from_millis(ms), marking: None });
            let longest = orders.requested.as_ref().map(|request| request.length);
            assert_eq!(longest, Some(Duration::from_millis(expected)));
        }
    }

    #[test]
    fn thread_that_failed_to_start_is_missing() {
        let usual = WindowRequest { length: WindowPlan::USUAL_LENGTH, marking: None };
        let orders =
            WindowOrders { plan: None, requested: Some(usual), has_thread: true, no_thread: None };
        let orders = Mutex::new(Rank::WindowOrders, orders);
        note_start(&orders, Err(io::Error::other("no memory")));
        let expected = "failed to start the thread for windows: no memory";
        let failed = locked(&orders);
        assert_eq!((failed.has_thread, failed.no_thread.as_deref()), (false, Some(expected)));
        assert!(failed.requested.is_none());
        drop(failed);
        note_start(&orders, Ok(()));
        assert_eq!(locked(&orders).no_thread, None);
    }
}
