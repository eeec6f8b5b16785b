//! Opened calls: CUPTI records their work, and no events are recorded around it.

use crate::base::lock::{Mutex, Rank, locked};
use crate::call::first;
use crate::call::stream::{Life, StreamGuard};
use crate::cuda;
use crate::cupti;
use crate::gpu::Gpu;
use crate::record::opened::{self, CallSeries, FrameId, OpenCall, OpenedAs, OpenedFunction};
use crate::record::phase::{controller, current};
use crate::record::threads::{self, StreamCall};
use crate::record::timeline::{self, CallId};
use crate::site::callsite::CallSite;
use crate::types::record_mode::Needs;
use crate::types::sample::{CacheState, Lost};
use crate::types::settings::Settings;
use crate::types::{device::DeviceId, key::SeriesKey, workload::Workload};

/// An annotated function in an opened call, from its entry to its end.
pub(crate) struct OpenedCall {
    of: CallSeries,
    call_id: CallId,
    frame: FrameId,
    /// The device to count the call on if it launches nothing, and until records name another.
    device: DeviceId,
    /// The call, while the function is suspended.
    suspended: Mutex<Suspended>,
}

/// The call of a suspended function.
enum Suspended {
    /// The function is not suspended.
    No,
    /// The function is suspended, and is not the outermost one of its opened call.
    Inside,
    /// The function is the outermost one of this opened call, which is suspended. The function itself may
    /// have been resumed inside another opened call.
    Outermost(Box<OpenCall>),
}

/// Enters a call on a stream as a function of the thread's opened call, or opens it. Returns `None` if that is not
/// possible. Then the call is lost if the thread is inside an opened call. Otherwise, events can time it.
#[cold]
pub(super) fn enter_on(
    call: &StreamCall,
    guard: &impl StreamGuard,
    opened_as: OpenedAs,
) -> Option<OpenedCall> {
    let StreamCall { site, context, stream, call_id, key, work, weight, .. } = *call;
    if controller::is_run_recorded() && site.needs_events() {
        controller::want_in_run(Needs::EVENTS);
    }
    let strong = guard.upgrade();
    let is_inside = opened::is_inside();
    if !is_inside && call.obstacle(Life::of(&strong)).is_some() {
        return None;
    }
    let cache = if is_inside || site.is_plain() {
        CacheState::AsFound
    } else {
        // Enqueued before recording starts, so that the flush is not among the records.
        flush(call)
    };
    let launch = site.spec.is_single.then_some(0);
    enter(OpenedFunction {
        of: CallSeries { site, thread: call.thread, launch, cache, key },
        stream: Some(context.stream_id(stream)),
        weight,
        opened_as,
        workload: work,
        call_id,
        device: context.device_id(),
    })
}

/// Returns the series of a call that names no stream.
pub(super) fn series(site: &'static CallSite, key: SeriesKey) -> CallSeries {
    CallSeries { site, thread: threads::current(), launch: None, cache: CacheState::AsFound, key }
}

/// Describes a call that names no stream, and represents no others.
pub(super) fn without_stream(
    of: CallSeries,
    call_id: CallId,
    opened_as: OpenedAs,
) -> OpenedFunction {
    OpenedFunction {
        of,
        stream: None,
        weight: 1.0,
        opened_as,
        workload: Workload::UNKNOWN,
        call_id,
        device: cuda::only_device(),
    }
}

/// Enters a call that begins after the phase of the thread's opened call. It is not counted as timed.
pub(super) fn enter_late(site: &'static CallSite) -> Option<OpenedCall> {
    let call_id = timeline::begin(site);
    enter(without_stream(series(site, SeriesKey::NONE), call_id, OpenedAs::Late))
}

/// Enters the call that a subject describes. Returns `None` if that fails.
pub(super) fn enter(subject: OpenedFunction) -> Option<OpenedCall> {
    let OpenedFunction { of, call_id, device, .. } = subject;
    let frame = frame(subject, opened::enter)?;
    let suspended = Mutex::new(Rank::SuspendedCall, Suspended::No);
    Some(OpenedCall { of, call_id, frame, device, suspended })
}

/// Enters the call that a subject describes by `enter`. If that fails, counts it as lost, unless it does not count as
/// timed or events can time it.
pub(super) fn frame(
    subject: OpenedFunction,
    enter: impl FnOnce(OpenedFunction) -> Option<FrameId>,
) -> Option<FrameId> {
    let OpenedFunction { of, call_id, stream, device, opened_as, .. } = subject;
    let events_can_time_it = stream.is_some() && !opened::is_inside();
    cupti::observe_launches(opened::OBSERVER);
    let frame = enter(subject);
    if frame.is_none() {
        if opened_as == OpenedAs::First {
            of.site.opens_next();
        }
        if !events_can_time_it {
            if opened_as != OpenedAs::Late {
                opened::count_lost(&of, device, opened::why_not_entered());
            }
            timeline::end(call_id);
        }
    }
    frame
}

/// Enqueues the flush that the attribute asks for, and returns the state of the cache after it.
#[cold]
fn flush(call: &StreamCall) -> CacheState {
    let StreamCall { site, context, stream, .. } = call;
    let settings = Settings { hold: None, ..site.settings() };
    let (prepare, cache) = call.preparation(settings, false, None);
    match prepare.cold.map(|cold| context.flush(*stream, cold)) {
        Some(Err(_)) => CacheState::Partial,
        _ => cache,
    }
}

/// Returns why a call that begins now is recorded, or `None` if it is not.
#[inline(always)]
pub(super) fn opens(site: &'static CallSite) -> Option<OpenedAs> {
    if opened::is_inside() {
        Some(OpenedAs::OfPhase)
    } else if site.is_opened() {
        opens_now(site)
    } else {
        None
    }
}

#[cold]
fn opens_now(site: &'static CallSite) -> Option<OpenedAs> {
    if site.needs_records() {
        controller::want();
    }
    if !cupti::is_available() {
        return None;
    }
    if site.opens_first() {
        return Some(OpenedAs::First);
    }
    if site.needs_records() && controller::is_suspended() {
        controller::want_in_run(Needs::RECORDS);
    }
    current::phase().map(|_| OpenedAs::OfPhase)
}

impl OpenedCall {
    /// Marks the start of a launch that would have its own bracket if the call were timed by events.
    pub(crate) fn start_launch(&self) -> FrameId {
        opened::set_launching(self.frame, true);
        self.frame
    }

    /// Returns the number of calls that this one represents.
    pub(super) fn weight(&self) -> Option<f64> {
        opened::weight(self.frame)
    }

    /// Returns the reason why the call is not in the thread's opened call any more.
    fn why_not_here(&self) -> Lost {
        let is_same_thread = std::ptr::eq(threads::current(), self.of.thread);
        if opened::was_cut(self.frame) {
            Lost::Long
        } else if is_same_thread {
            // The outermost call ended first.
            Lost::Unfinished
        } else {
            // The function moved without it.
            Lost::Thread
        }
    }

    fn leave(&self, lost: Option<Lost>) {
        if !opened::leave(self.frame, lost, |context| device_of(context, self.device)) {
            opened::lose(self.frame, &self.of, lost.unwrap_or_else(|| self.why_not_here()));
        }
    }
    pub(super) fn end(&self, lost: Option<Lost>) -> CallId {
        let suspended = std::mem::replace(&mut *locked(&self.suspended), Suspended::No);
        match suspended {
            Suspended::No => self.leave(lost),
            // Dropped without being resumed.
            Suspended::Inside => self.leave(lost.or(Some(Lost::Cancelled))),
            Suspended::Outermost(call) => {
                opened::end_suspended(call, lost, |context| device_of(context, self.device));
            }
        }
        self.call_id
    }

    pub(super) fn pause(&self) {
        let mut suspended = locked(&self.suspended);
        if matches!(*suspended, Suspended::Outermost(_)) {
            // The thread is inside another call, so this one was not resumed.
            return;
        }
        *suspended = match opened::suspend(self.frame) {
            Some(call) => Suspended::Outermost(call),
            None => Suspended::Inside,
        };
    }

    pub(super) fn resume(&self) {
        let mut suspended = locked(&self.suspended);
        let call = match std::mem::replace(&mut *suspended, Suspended::No) {
            Suspended::No => return,
            Suspended::Inside => None,
            Suspended::Outermost(call) => Some(call),
        };
        if let Some(call) = opened::resume(self.frame, call) {
            *suspended = Suspended::Outermost(call);
        }
    }
}

/// Returns the device of a context. For 0, which means that nothing was launched, and for a context that may have been
/// destroyed, returns the other one.
pub(super) fn device_of(context: usize, otherwise: DeviceId) -> DeviceId {
    let launched_on = if context == 0 { None } else { first::device(context) };
    launched_on.unwrap_or(otherwise)
}
