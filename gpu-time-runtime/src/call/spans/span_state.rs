//! The state of one span, which is part of an opened call or opens one.

use std::mem;
use std::time::Instant;

use crate::base::{inside, thread_id};
use crate::call::opened::{device_of, frame, series, without_stream};
use crate::call::spans::counts::{CountGuard, EXPECTED, LIVE, PARTS, SUSPENDED};
use crate::call::spans::sites::SpanSite;
use crate::call::{decide, ticket};
use crate::cuda;
use crate::record::opened::{self, CallSeries, FrameId, OpenCall, OpenedAs, OpenedFunction};
use crate::record::timeline::{self, CallId};
use crate::site::cost::{self, LONGEST_NS};
use crate::types::{device::DeviceId, key::SeriesKey, sample::Lost};

/// The recorded spans around a span that is entered on a different thread.
pub(super) struct EnclosingSpans {
    /// Their sites, the outermost first.
    pub callers: Vec<u32>,
    /// The number of spans of a phase that the innermost of them represents.
    pub weight: f64,
}

/// The state of a span, which the subscriber stores in the span's extensions.
pub(super) struct SpanState {
    of: &'static SpanSite,
    key: SeriesKey,
    call_id: CallId,
    place: SpanPlace,
    /// The number of spans that it represents: one divided by the probability of recording it. Set once a call of
    /// the span has been entered.
    weight: Option<f64>,
    /// The number of calls that one in the phase of its call stands for.
    phase_weight: f64,
    /// The span's entries are counted, to detect whether it is kept.
    is_watched: bool,
    /// Counts the span in [`PARTS`].
    _exists: CountGuard,
    /// Counts the span in [`SUSPENDED`] or [`EXPECTED`].
    awaited: Option<CountGuard>,
    /// Counts the span in [`LIVE`], if it is a chosen root.
    live: Option<CountGuard>,
    /// The number of entries that the layer has seen.
    entries: u32,
    /// The thread that entered the span last.
    thread: u64,
    /// The number of that thread's entries that it has not left.
    entered: u32,
}

enum SpanPlace {
    Nowhere,
    /// A root that was chosen with this probability, which opens a call when it is entered.
    Chosen(f64),
    /// A frame of a call, which may have ended.
    Frame(FrameId),
    /// The outermost frame of a suspended call, which belongs to no thread.
    Suspended(FrameId, Box<OpenCall>),
}

impl SpanState {
    /// Creates the state of a span that is not part of a call yet.
    pub fn new(of: &'static SpanSite, key: SeriesKey) -> SpanState {
        SpanState {
            of,
            key,
            call_id: CallId::default(),
            place: SpanPlace::Nowhere,
            weight: None,
            phase_weight: 1.0,
            is_watched: false,
            _exists: PARTS.count(),
            awaited: None,
            live: None,
            entries: 0,
            thread: 0,
            entered: 0,
        }
    }

    /// Creates the state of a root that was chosen with a probability of `share`.
    pub fn chosen(of: &'static SpanSite, key: SeriesKey, share: f64) -> SpanState {
        let mut span_state = SpanState::new(of, key);
        (span_state.place, span_state.live) = (SpanPlace::Chosen(share), Some(LIVE.count()));
        span_state.update_counts();
        span_state
    }

    /// Returns the site of a recorded span, and the number of spans of its phase that it represents. Returns `None` for
    /// a kept span: other threads may be inside it in calls that are not recorded.
    pub fn recorded(&self) -> Option<(u32, f64)> {
        if self.of.kept.get() {
            return None;
        }
        Some((self.of.site.id(), self.weight? / self.phase_weight))
    }

    /// Enters the span on this thread. `is_root` is `true` if the span is a root.
    /// `chosen` is set if the entry was chosen to open a call, with this probability, which applies only to kept
    /// spans. `around` returns the recorded spans around this one, if there are any.
    pub fn enter(
        &mut self,
        is_root: bool,
        chosen: Option<f64>,
        around: impl FnOnce() -> Option<EnclosingSpans>,
    ) {
        self.metered(|span_state| span_state.enter_here(is_root, chosen, around));
    }

    fn enter_here(
        &mut self,
        is_root: bool,
        chosen: Option<f64>,
        around: impl FnOnce() -> Option<EnclosingSpans>,
    ) {
        if self.entered == 0 {
            self.entries = self.entries.saturating_add(1);
            self.of.kept.note_entered(self.entries);
        }
        let is_kept = self.of.kept.get();
        if let SpanPlace::Frame(frame) = self.place
            && self.entered > 0
            && self.thread == thread_id::current()
            && !opened::is_open(frame)
        {
            // The layer missed the exit, because the span around this one was left first.
            self.place = SpanPlace::Nowhere;
            self.entered = 0;
            self.lose(frame, Lost::Unfinished);
        }
        let place = match mem::replace(&mut self.place, SpanPlace::Nowhere) {
            SpanPlace::Chosen(share) if is_root && !is_kept => self.open(share),
            SpanPlace::Suspended(frame, call) if !is_kept => {
                match opened::resume(frame, Some(call)) {
                    Some(call) => return self.place = SpanPlace::Suspended(frame, call),
                    None => SpanPlace::Frame(frame),
                }
            }
            SpanPlace::Frame(frame) if opened::is_open(frame) && (self.entered > 0 || !is_kept) => {
                if self.entered == 0 {
                    opened::resume(frame, None);
                }
                self.entered += 1;
                return self.place = SpanPlace::Frame(frame);
            }
            // Another thread is inside the span, too.
            SpanPlace::Frame(frame) if self.entered > 0 => {
                // A span that is not kept has a frame only if it is recorded.
                if !is_kept || chosen.is_some() || opened::is_inside() {
                    self.miss(chosen);
                }
                return self.place = SpanPlace::Frame(frame);
            }
            place => {
                // The span has turned out to be kept, so the suspended call is several calls.
                if let SpanPlace::Suspended(_, call) = place {
                    self.end(call, Some(Lost::Cancelled));
                }
                self.begin_here(chosen.filter(|_| is_kept), around)
            }
        };
        // Watching starts only with a chosen entry: while a span is watched, the layer examines every
        // outermost entry.
        self.is_watched = !is_kept && (self.is_watched || chosen.is_some());
        if matches!(place, SpanPlace::Frame(_)) {
            (self.thread, self.entered) = (thread_id::current(), 1);
        }
        self.place = place;
    }

    /// Begins a call of the span if the thread is inside an opened call, the entry was chosen, or the spans
    /// around it are recorded on another thread.
    fn begin_here(
        &mut self,
        chosen: Option<f64>,
        around: impl FnOnce() -> Option<EnclosingSpans>,
    ) -> SpanPlace {
        if opened::is_inside() {
            self.begin(None, |_, subject| opened::enter(subject))
        } else if let Some(share) = chosen {
            self.open(share)
        } else {
            around().map_or(SpanPlace::Nowhere, |around| self.open_under(&around))
        }
    }

    /// Opens a call for a chosen root, or adds a frame to the opened call that the thread is now inside.
    fn open(&mut self, share: f64) -> SpanPlace {
        let share = Some(share).filter(|_| !opened::is_inside());
        self.begin(share, |timed, subject| {
            opened::enter_root(share.map(|share| (share * timed).recip()), subject)
        })
    }

    /// Opens a call on this thread, for a span inside spans that are recorded on another thread.
    fn open_under(&mut self, around: &EnclosingSpans) -> SpanPlace {
        self.begin(None, |_, subject| opened::enter_under(&around.callers, around.weight, subject))
    }

    /// Counts the span, and enters it as a frame. If it is a root, it was chosen with the probability `chosen`. `enter`
    /// also takes the probability with which it is timed.
    fn begin(
        &mut self,
        chosen: Option<f64>,
        enter: impl FnOnce(f64, OpenedFunction) -> Option<FrameId>,
    ) -> SpanPlace {
        let site = &self.of.site;
        let Some(timed) = inside::outside(|| decide::span(site, chosen)) else {
            return SpanPlace::Nowhere;
        };
        let opened_as = if opened::is_late() { OpenedAs::Late } else { OpenedAs::OfPhase };
        self.call_id = timeline::begin(site);
        // Its call knows how many spans it stands for.
        let subject = without_stream(self.series(), self.call_id, opened_as);
        let frame = frame(subject, |subject| enter(timed, subject));
        if opened_as == OpenedAs::Late {
            ticket::count_span(site, None);
            return frame.map_or(SpanPlace::Nowhere, SpanPlace::Frame);
        }
        let Some(frame) = frame else {
            ticket::count_span(site, Some(1.0));
            return SpanPlace::Nowhere;
        };
        self.phase_weight = opened::phase_weight();
        self.weight = opened::weight(frame);
        if self.weight.is_some() {
            ticket::count_span(site, self.weight);
        }
        SpanPlace::Frame(frame)
    }

    /// Counts a call as lost, because another thread is inside the span.
    fn miss(&self, chosen: Option<f64>) {
        let weight = match (chosen, self.recorded()) {
            (Some(share), _) => share.recip(),
            (None, Some((_, weight))) => weight * self.phase_weight,
            (None, None) => 1.0,
        };
        ticket::count_span(&self.of.site, Some(weight));
        opened::count_lost(&self.series(), cuda::only_device(), Lost::Thread);
    }

    /// Leaves the span on this thread.
    pub fn exit(&mut self) {
        self.metered(SpanState::exit_here);
    }

    fn exit_here(&mut self) {
        let SpanPlace::Frame(frame) = self.place else { return };
        let is_here = opened::is_open(frame);
        if !is_here && (self.entered == 0 || self.thread != thread_id::current()) {
            return;
        }
        self.entered = self.entered.saturating_sub(1);
        if !is_here {
            // The span around this one was left first.
            self.place = SpanPlace::Nowhere;
            return self.lose(frame, Lost::Unfinished);
        }
        if self.entered > 0 {
            return;
        }
        if frame.nth == 0 {
            if let Some(call) = opened::suspend(frame) {
                if self.of.kept.get() {
                    self.place = SpanPlace::Nowhere;
                    self.end(call, None);
                } else {
                    self.place = SpanPlace::Suspended(frame, call);
                }
            }
        } else {
            opened::leave(frame, None, device);
            if self.of.kept.get() {
                opened::close(frame);
            }
            timeline::end(self.call_id);
        }
    }

    /// Closes the span. Ends its call if it is suspended.
    pub fn close(&mut self) {
        self.of.kept.note_closed(self.entries);
        match mem::replace(&mut self.place, SpanPlace::Nowhere) {
            SpanPlace::Suspended(_, call) => self.end(call, None),
            SpanPlace::Frame(frame) => opened::close(frame),
            SpanPlace::Chosen(_) | SpanPlace::Nowhere => {}
        }
        self.is_watched = false;
        self.update_counts();
    }

    /// Ends the call that the span has opened.
    #[allow(clippy::boxed_local, reason = "calls are kept as boxes")]
    fn end(&mut self, call: Box<OpenCall>, lost: Option<Lost>) {
        opened::end_suspended(call, lost, device);
        timeline::end(self.call_id);
        self.weight = None;
    }

    /// Counts the span in [`SUSPENDED`] or [`EXPECTED`] if its next entry matters, and in neither
    /// otherwise.
    fn update_counts(&mut self) {
        let count = match self.place {
            SpanPlace::Suspended(..) => Some(&SUSPENDED),
            SpanPlace::Chosen(_) => Some(&EXPECTED),
            _ if self.is_watched => Some(&EXPECTED),
            _ => None,
        };
        self.awaited = count.map(|count| count.count());
        if self.of.kept.get() {
            self.live = None;
        }
    }

    /// Runs `change` and updates the counts. Charges the host time to the call while a budget is set.
    fn metered(&mut self, change: impl FnOnce(&mut SpanState)) {
        let began = cost::is_on().then(Instant::now);
        change(self);
        self.update_counts();
        if let Some(began) = began {
            let ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX).min(LONGEST_NS);
            match &mut self.place {
                SpanPlace::Suspended(_, call) => call.cost_ns += ns,
                _ => opened::add_cost(ns),
            }
        }
    }

    /// Counts the span as lost, because its call was handed over before the span ended.
    fn lose(&self, frame: FrameId, lost: Lost) {
        opened::lose(frame, &self.series(), lost);
        timeline::end(self.call_id);
    }

    fn series(&self) -> CallSeries {
        series(&self.of.site, self.key)
    }
}

/// Returns the device of a context.
fn device(context: usize) -> DeviceId {
    device_of(context, cuda::only_device())
}
