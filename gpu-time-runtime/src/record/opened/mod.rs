//! Opened calls: timed calls whose kernels, copies and memsets are recorded by CUPTI.
//!
//! An opened call is the outermost timed call on the thread that makes it. It includes all annotated functions
//! that it calls. Each of these functions, and the call's own, is a *frame*. While the call runs, every launch
//! is noted with the innermost frame. When the call ends, it goes to the [collector](crate::record::collector), which
//! waits for the records of its launches. A long call goes there in [parts] while it runs.

mod attribution;
pub(crate) mod base;
pub(super) mod call_exchange;
pub(crate) mod devices;
pub(super) mod open_call;
mod parts;
pub(super) mod waiting_call;

use std::cell::Cell;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::time::{Duration, Instant};

use crate::base::lock::{locked, locked_by};
use crate::base::switches::{self, RecordingState};
use crate::base::{clock, fork, inside};
use crate::cuda;
use crate::cupti::{self, LaunchObserver};
use crate::record::launches::LaunchOwner;
use crate::record::open_frames::OpenFrame;
pub(crate) use crate::record::opened::open_call::{
    CallSeries, FrameId, OpenCall, OpenedAs, OpenedFunction,
};
use crate::record::phase::{current, window};
use crate::record::{collector, launches, open_frames, stack, threads};
use crate::site::{callsite::CallSite, cost};
use crate::stats::call_tree::{HELPERS, place::PathId};
use crate::types::activity::EnqueueCall;
use crate::types::{device::DeviceId, sample::Lost, workload::Workload};

/// The calls that are open on threads, as far as the end of the process waits for them.
struct OpenCalls {
    /// The number of calls that the end of the process would wait for now, each marked as
    /// [awaited](OpenCall::is_awaited).
    awaited: AtomicUsize,
    /// The process is ending, so calls must hand over what has ended inside them. Those that are opened from now on
    /// are not waited for.
    is_ending: AtomicBool,
}

static OPEN_CALLS: OpenCalls =
    OpenCalls { awaited: AtomicUsize::new(0), is_ending: AtomicBool::new(false) };

/// The longest wait for threads inside opened calls at the end of the process.
const PATIENCE: Duration = Duration::from_millis(50);

/// A thread's opened call. It is taken out while it is changed, so a signal handler that makes a timed call in
/// the meantime finds none.
struct OpenSlot(Cell<Option<Box<OpenCall>>>);

/// Hands over a call that is still open when its thread or the process ends.
impl Drop for OpenSlot {
    fn drop(&mut self) {
        let Some(mut call) = self.0.take() else { return };
        IS_OPEN.set(false);
        open_frames::end_call();
        if fork::is_forked() {
            // Another thread may have held a lock at the fork.
            return std::mem::forget(call);
        }
        let _inside = inside::enter();
        call.switched_on = None;
        call.give_up();
        GIVEN_UP.set(call.number);
        let was_awaited = std::mem::take(&mut call.is_awaited);
        hand_over(call);
        OPEN_CALLS.count_answer(was_awaited);
        switches::end_recording(RecordingState::Now);
    }
}

thread_local! {
    static OPEN: OpenSlot = const { OpenSlot(Cell::new(None)) };
    /// Set while the thread has an opened call, even while that is taken out of `OPEN`. It has no
    /// destructor, so callbacks can read it while the thread exits.
    static IS_OPEN: Cell<bool> = const { Cell::new(false) };
    /// The number of the thread's last call that was handed over before it had ended.
    static LAST_CUT: Cell<u64> = const { Cell::new(0) };
    /// The number of the call that was open at the end of the thread, with which all of its functions have ended.
    static GIVEN_UP: Cell<u64> = const { Cell::new(0) };
}

/// Returns `true` if the calling thread is inside an opened call.
#[inline(always)]
pub(crate) fn is_inside() -> bool {
    cfg!(feature = "kernels") && switches::is_recording() && IS_OPEN.get()
}

/// Returns `true` if the calling thread is inside an opened call whose phase is over.
pub(crate) fn is_late() -> bool {
    is_inside()
        && current::phase().is_none()
        && with_open(|call| call.phase.is_some()).unwrap_or_default()
}

/// Returns `true` if any thread is inside an opened call, or a phase is in progress. Recording then slows
/// all launches.
pub(crate) fn are_open() -> bool {
    switches::is_recording()
}

/// Opens a call, or enters a function inside the thread's opened call. Returns `None` if nothing
/// can be recorded.
pub(crate) fn enter(subject: OpenedFunction) -> Option<FrameId> {
    enter_root(None, subject)
}

/// Does the same as [`enter`], for a span. If this opens a call, `weight` is the number of root spans that it stands for.
pub(crate) fn enter_root(weight: Option<f64>, subject: OpenedFunction) -> Option<FrameId> {
    if !is_inside() {
        open(stack::path(), weight)?;
    }
    with_open(|call| call.enter(subject)).flatten()
}

/// Opens a call inside these callers, outermost first, which run on another thread. Each span in it stands for `weight`
/// spans. The thread must not be inside a call.
#[cfg(feature = "tracing")]
pub(crate) fn enter_under(
    callers: &[u32],
    weight: f64,
    subject: OpenedFunction,
) -> Option<FrameId> {
    let around = callers.iter().fold(None, |path, site| stack::path_of(path, *site));
    open(around, Some(weight))?;
    with_open(|call| call.enter(subject)).flatten()
}

/// Hands over what has ended inside the thread's opened call if that is due. Takes the call off the thread if its time is
/// over. For the begin of a call.
pub(crate) fn refresh() {
    if is_inside() {
        hand_over_part();
    }
}

/// Returns the reason why a function could not be [entered](enter).
pub(crate) fn why_not_entered() -> Lost {
    if is_inside() {
        // An opened call accepts no more functions once too many of them have not ended.
        Lost::Long
    } else if is_thread_ending() {
        Lost::Unfinished
    } else {
        Lost::Records
    }
}

/// Returns `true` if the thread is running its destructors, and cannot keep an opened call any more.
fn is_thread_ending() -> bool {
    OPEN.try_with(|_| ()).is_err()
}

/// Opens a call without frames, inside the function with this path.
fn open(around: Option<PathId>, span_weight: Option<f64>) -> Option<()> {
    if is_thread_ending() {
        return None;
    }
    let switched_on = cupti::switch_on()?;
    launches::prepare();
    window::begin();
    collector::keep_up();
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let mut call = call_exchange::take_idle();
    call.number = NEXT.fetch_add(1, Relaxed);
    call.switched_on = Some(switched_on);
    (call.around, call.phase) = (around, current::phase());
    call.span_weight = span_weight;
    put(call);
    Some(())
}

/// Counts a call that could not be entered as lost.
pub(crate) fn count_lost(of: &CallSeries, device: DeviceId, lost: Lost) {
    let mut recorder = locked(&of.thread.recorder);
    let series = recorder.series.begin(of.site, of.identity(device));
    recorder.deliver(series, Err(lost), Workload::UNKNOWN);
}

/// Ends a function of the thread's opened call. `device` returns the device of a context. If the
/// function is the outermost one, hands the call over to the collector. Returns `false` if the
/// function's call is not open on this thread.
pub(crate) fn leave(
    frame: FrameId,
    lost: Option<Lost>,
    device: impl FnOnce(usize) -> DeviceId,
) -> bool {
    match with_frame(frame, |call, at| call.leave(at, lost, device)) {
        Some(true) => end(hand_over).unwrap_or_default(),
        Some(false) => hand_over_part(),
        None => return false,
    }
    true
}

/// Counts a function as lost whose call was handed over before the function ended.
pub(crate) fn lose(frame: FrameId, of: &CallSeries, lost: Lost) {
    if GIVEN_UP.get() == frame.call {
        return;
    }
    locked(&of.thread.recorder).series.count_opened(frame.series, Some(lost));
}

/// Notes that a span which was left will not be entered again.
#[cfg(feature = "tracing")]
pub(crate) fn close(frame: FrameId) {
    with_frame(frame, |call, at| {
        if let Some(frame) = call.frames.get_mut(at) {
            frame.is_over = frame.left_ns > 0;
        }
    });
}

/// Hands a call over to the collector, and charges its cost to the outermost function.
fn hand_over(mut call: Box<OpenCall>) {
    let cost_ns = std::mem::take(&mut call.cost_ns) + cupti::cost_ns(call.launches);
    if let Some(outermost) = call.frames.first().filter(|_| cost::is_on()) {
        outermost.subject.of.site.cost.count_preparation(cost_ns as f64);
    }
    collector::add(call);
}

/// Hands over the part of the thread's call that has ended, if the call is long or the process ends.
fn hand_over_part() {
    if with_open(|call| call.is_over_time()).unwrap_or_default() {
        end(|mut call| {
            LAST_CUT.set(call.number);
            call.is_cut = true;
            call.lose_unfinished(Lost::Long);
            hand_over(call);
        });
        return;
    }
    let is_ending = OPEN_CALLS.is_ending.load(Relaxed);
    if let Some(reason) = with_open(|call| call.due_part(is_ending)).flatten() {
        let mut part = call_exchange::take_idle();
        with_open(|call| call.split_off(&mut part, reason));
        hand_over(part);
        if is_ending {
            let was_awaited = with_open(|call| {
                // The rest of the call is lost. Its records would fill CUPTI's buffers during the report.
                call.switched_on = None;
                std::mem::take(&mut call.is_awaited)
            });
            OPEN_CALLS.count_answer(was_awaited.unwrap_or_default());
        }
    }
}

/// At the end of the process, asks all threads for what has ended inside their open calls. Waits for the
/// answers, but not for long, because the threads may be waiting themselves.
pub(crate) fn ask_for_parts() {
    let deadline = Instant::now() + PATIENCE;
    OPEN_CALLS.is_ending.store(true, Relaxed);
    clock::wait_until(deadline, clock::BRIEFLY, || OPEN_CALLS.awaited.load(Acquire) == 0);
}

impl OpenCalls {
    /// Marks a call that is about to be open as awaited, unless the process is ending.
    fn count(&self, call: &mut OpenCall) {
        if !self.is_ending.load(Relaxed) {
            call.is_awaited = true;
            self.awaited.fetch_add(1, Relaxed);
        }
    }

    /// Notes that a call has ended, or has handed over what had ended inside it, after it did so.
    fn count_answer(&self, was_awaited: bool) {
        if was_awaited {
            // Pairs with the load in `ask_for_parts`.
            self.awaited.fetch_sub(1, Release);
        }
    }
}

/// At the end of the process, counts all calls as lost that have not been recorded.
pub(crate) fn give_up(deadline: Instant) {
    collector::give_up(deadline);
    for thread in threads::all() {
        if let Some(mut recorder) = locked_by(&thread.recorder, deadline) {
            recorder.series.lose_opened(Lost::Unfinished);
        }
    }
}

/// Returns the site of the outermost function of the thread's opened call.
#[cold]
pub(crate) fn outermost() -> Option<&'static CallSite> {
    with_open(|call| call.frames.first().map(|frame| frame.subject.of.site)).flatten()
}

/// Returns `true` if the frame's call is open on this thread.
#[cfg(feature = "tracing")]
pub(crate) fn is_open(frame: FrameId) -> bool {
    with_frame(frame, |_, _| ()).is_some()
}

/// Returns `true` if the frame's call was handed over before it had ended, because it took too long.
pub(crate) fn was_cut(frame: FrameId) -> bool {
    LAST_CUT.get() == frame.call
}

/// Returns the number of calls that the call of a frame represents. Returns `None` if the frame's call is not
/// open on this thread.
pub(crate) fn weight(frame: FrameId) -> Option<f64> {
    with_frame(frame, |call, at| Some(call.frames.get(at)?.weight())).flatten()
}

/// Returns the number of calls that one stands for which enters the thread's call now.
#[cfg(feature = "tracing")]
pub(crate) fn phase_weight() -> f64 {
    let phase = with_open(|call| call.phase_of_entry()).flatten();
    phase.map_or(1.0, |phase| phase.weight.into())
}

/// Adds the host time that the runtime took for a span to the thread's call.
#[cfg(feature = "tracing")]
pub(crate) fn add_cost(ns: u64) {
    with_open(|call| call.cost_ns += ns);
}

/// Notes the beginning or the end of a launch that events would bracket.
pub(crate) fn set_launching(frame: FrameId, is_launching: bool) {
    with_frame(frame, |call, at| {
        if let Some(frame) = call.frames.get_mut(at) {
            frame.is_launching = is_launching;
        }
    });
}

/// Suspends a function. If it is the outermost frame, takes its call off the thread and returns the
/// call. Otherwise, returns `None` and only leaves the frame until it is [resumed](resume).
pub(crate) fn suspend(frame: FrameId) -> Option<Box<OpenCall>> {
    if frame.nth == 0 {
        with_frame(frame, |_, _| ())?;
        return end(|call| call);
    }
    with_frame(frame, |call, at| call.at = call.frames.get(at).and_then(|frame| frame.parent));
    None
}

/// Continues a suspended function on this thread. `call` is the result of [`suspend`]. If the
/// thread is inside another call, returns `call` marked as incomplete, because its further work
/// counts for the other call. If the thread is ending, returns `call` without its unfinished functions.
pub(crate) fn resume(frame: FrameId, call: Option<Box<OpenCall>>) -> Option<Box<OpenCall>> {
    let Some(mut call) = call else {
        with_frame(frame, |call, at| call.go_on(at));
        return None;
    };
    if is_inside() {
        call.is_incomplete = true;
        return Some(call);
    }
    if is_thread_ending() {
        call.lose_unfinished(Lost::Unfinished);
        return Some(call);
    }
    call.switched_on = cupti::switch_on();
    call.is_incomplete |= call.switched_on.is_none();
    put(call);
    None
}

/// Ends a suspended call. `device` returns the device of a context.
pub(crate) fn end_suspended(
    mut call: Box<OpenCall>,
    lost: Option<Lost>,
    device: impl FnOnce(usize) -> DeviceId,
) {
    call.leave(0, lost, device);
    hand_over(call);
}

/// Notes the launches that threads make.
pub(crate) const OBSERVER: LaunchObserver = LaunchObserver { launched, failed };

/// Notes a launch by the calling thread. Called from CUPTI's callback for driver calls, so it takes no lock and allocates
/// nothing.
fn launched(launched: EnqueueCall) {
    // The runtime's own launches, such as those of a calibration, belong to no function.
    if inside::is_inside() {
        base::note(&launched);
        return;
    }
    window::note_launch();
    let of_call = with_open(|call| (call.note(&launched), call.innermost_site()));
    let (owner, site) = of_call.unwrap_or_default();
    if IS_OPEN.get() || open_frames::is_inside() {
        let has_room = launches::add(&launched, owner, site.or_else(stack::innermost_site));
        if owner.is_some() && !has_room {
            with_open(OpenCall::lose_launch);
        }
        return;
    }
    // A helper thread, unless what it enqueues goes into a graph and does not run now.
    let runs = launched.capture.is_none() && !launched.lacks_records;
    let helped = if runs { open_frames::only_thread() } else { None };
    let owner = helped.and_then(|of| of.frame).map(|OpenFrame { call, nth }| LaunchOwner {
        call,
        nth,
        enqueued_ns: cuda::now_ns(),
        is_by_helper: true,
        is_after_stop: false,
    });
    // Not the function's own work, but annotated.
    launches::add(&launched, owner, stack::innermost_site().or(helped.map(|_| HELPERS)));
    if helped.is_some_and(|of| of.has_ended()) {
        // It may have been added too late for the call.
        launches::disown(launched.correlation);
    }
}

/// Forgets the calling thread's last launch, which has failed and will have no record.
fn failed(correlation: u32) {
    if !inside::is_inside() && !launches::fail(correlation) {
        with_open(OpenCall::lose_launch);
    }
}

/// Runs `change` on the call of a frame and the frame's position. Returns `None` if the call is not open
/// on this thread.
fn with_frame<T>(frame: FrameId, change: impl FnOnce(&mut OpenCall, usize) -> T) -> Option<T> {
    with_open(|call| {
        let at = call.position(frame.nth).filter(|_| call.number == frame.call)?;
        Some(change(call, at))
    })
    .flatten()
}

/// Runs `change` on the thread's open call.
fn with_open<T>(change: impl FnOnce(&mut OpenCall) -> T) -> Option<T> {
    if !IS_OPEN.get() {
        return None;
    }
    let mut call = OPEN.try_with(|open| open.0.take()).ok()??;
    let changed = change(&mut call);
    open_frames::set(call.open_frame());
    _ = OPEN.try_with(|open| open.0.set(Some(call)));
    Some(changed)
}

fn put(mut call: Box<OpenCall>) {
    let open = |slot: &OpenSlot| {
        OPEN_CALLS.count(&mut call);
        open_frames::set(call.open_frame());
        slot.0.set(Some(call));
    };
    if OPEN.try_with(open).is_ok() {
        IS_OPEN.set(true);
        switches::begin_recording(RecordingState::Now);
    }
}

/// Takes the open call off the thread and stops recording. Counts the recording as ended only after `leave`, which
/// takes over the call: until then, records may belong to a call that nobody has.
fn end<T>(leave: impl FnOnce(Box<OpenCall>) -> T) -> Option<T> {
    let mut call = OPEN.try_with(|open| open.0.take()).ok()??;
    call.switched_on = None;
    IS_OPEN.set(false);
    open_frames::end_call();
    let was_awaited = std::mem::take(&mut call.is_awaited);
    let left = leave(call);
    OPEN_CALLS.count_answer(was_awaited);
    switches::end_recording(RecordingState::Now);
    Some(left)
}

#[cfg(test)]
mod tests;
