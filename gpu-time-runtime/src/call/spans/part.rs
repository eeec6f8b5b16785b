//! A span that is a part of an opened call, or that opens one.

use std::mem;
use std::time::Instant;

use crate::base::{inside, thread_id};
use crate::call::spans::counts::{Counted, EXPECTED, LIVE, PARTS, SUSPENDED};
use crate::call::spans::roots::Chosen;
use crate::call::spans::sites::SpanSite;
use crate::call::{decide, first, opened::LAUNCH_COST_NS};
use crate::cupti;
use crate::record::opened::{self, CallSeries, FrameId, OpenCall, Subject};
use crate::record::threads;
use crate::record::timeline::{self, CallId};
use crate::site::cost::{self, LONGEST_NS};
use crate::types::sample::{CacheState, Lost};
use crate::types::{device::DeviceId, key::SeriesKey, workload::Workload};

/// The spans around one that is entered on another thread than they are.
pub(super) struct Around {
    /// Their sites, the outermost first.
    pub callers: Vec<u32>,
    /// The innermost one's.
    pub represented: Represented,
}

/// The number of spans that one stands for.
#[derive(Clone, Copy)]
pub(super) struct Represented {
    /// By the probability of recording it.
    weight: f64,
    /// By the number of roots that were passed over before the one around it.
    passed: u64,
}

/// The state of a span, kept with its other data by the subscriber.
pub(super) struct Part {
    of: &'static SpanSite,
    key: SeriesKey,
    call_id: CallId,
    place: Place,
    /// Set once it is entered.
    represented: Option<Represented>,
    /// Its entries are looked at, to find out whether it is kept.
    is_watched: bool,
    /// In [`PARTS`].
    _exists: Counted,
    /// In [`SUSPENDED`] or [`EXPECTED`].
    awaited: Option<Counted>,
    /// In [`LIVE`], if it is a chosen root.
    live: Option<Counted>,
    /// The number of times that it was seen to be entered.
    entries: u32,
    /// The thread that entered it last, and how often it has entered it.
    thread: u64,
    entered: u32,
}

enum Place {
    Nowhere,
    /// Opens a call when it is entered.
    Chosen(Chosen),
    /// A frame of a call, which may have ended.
    Frame(FrameId),
    /// The outermost frame of a call that is not on any thread.
    Suspended(FrameId, Box<OpenCall>),
}

impl Part {
    /// Creates the state of a span that is in no call yet.
    pub fn new(of: &'static SpanSite, key: SeriesKey) -> Part {
        Part {
            of,
            key,
            call_id: CallId::default(),
            place: Place::Nowhere,
            represented: None,
            is_watched: false,
            _exists: PARTS.count(),
            awaited: None,
            live: None,
            entries: 0,
            thread: 0,
            entered: 0,
        }
    }

    /// Creates the state of a root that was chosen.
    pub fn chosen(of: &'static SpanSite, key: SeriesKey, chosen: Chosen) -> Part {
        let mut part = Part::new(of, key);
        (part.place, part.live) = (Place::Chosen(chosen), Some(LIVE.count()));
        part.update_counts();
        part
    }

    /// Returns the site of a span that is recorded, and what it stands for. `None` for one that is kept:
    /// other threads may be inside of it in calls that are not recorded.
    pub fn recorded(&self) -> Option<(u32, Represented)> {
        if self.of.kept.get() {
            return None;
        }
        Some((self.of.site.id(), self.represented?))
    }

    /// Enters the span on this thread. `is_outermost`: no other span is entered here. `chosen` is set if
    /// this entry is to be recorded should the span be kept. `around` returns the recorded spans around
    /// it, if there are any.
    pub fn enter(
        &mut self,
        is_outermost: bool,
        chosen: Option<Chosen>,
        around: impl FnOnce() -> Option<Around>,
    ) {
        self.metered(|part| {
            part.enter_here(is_outermost, chosen, around);
            part.update_counts();
        });
    }

    fn enter_here(
        &mut self,
        is_outermost: bool,
        chosen: Option<Chosen>,
        around: impl FnOnce() -> Option<Around>,
    ) {
        if self.entered == 0 {
            self.entries = self.entries.saturating_add(1);
            self.of.kept.note_entered(self.entries);
        }
        let is_kept = self.of.kept.get();
        if let Place::Frame(frame) = self.place
            && self.entered > 0
            && self.thread == thread_id::current()
            && !opened::is_open(frame)
        {
            // It was left unseen, after the span around it.
            self.place = Place::Nowhere;
            self.entered = 0;
            self.lose(Lost::Thread);
        }
        let place = match mem::replace(&mut self.place, Place::Nowhere) {
            Place::Chosen(chosen) if is_outermost && !is_kept => self.open(chosen),
            Place::Suspended(frame, call) if !is_kept => match opened::resume(frame, Some(call)) {
                Some(call) => return self.place = Place::Suspended(frame, call),
                None => Place::Frame(frame),
            },
            Place::Frame(frame) if opened::is_open(frame) && (self.entered > 0 || !is_kept) => {
                if self.entered == 0 {
                    opened::resume(frame, None);
                }
                self.entered += 1;
                return self.place = Place::Frame(frame);
            }
            // Entered on another thread, too.
            Place::Frame(frame) if self.entered > 0 => {
                if is_kept && (chosen.is_some() || opened::is_inside()) {
                    self.miss(chosen);
                }
                return self.place = Place::Frame(frame);
            }
            place => {
                // Several calls were taken for one.
                if let Place::Suspended(_, call) = place {
                    self.end(call, Some(Lost::Cancelled));
                }
                self.begin_here(is_outermost, chosen.filter(|_| is_kept), around)
            }
        };
        // Only a few are looked at, since every entry then is.
        self.is_watched = !is_kept && (self.is_watched || chosen.is_some());
        if matches!(place, Place::Frame(_)) {
            (self.thread, self.entered) = (thread_id::current(), 1);
        }
        self.place = place;
    }

    /// Begins a call of the span, if it is in an opened one, chosen, or inside of recorded spans.
    fn begin_here(
        &mut self,
        is_outermost: bool,
        chosen: Option<Chosen>,
        around: impl FnOnce() -> Option<Around>,
    ) -> Place {
        if opened::is_inside() {
            let share = if is_outermost { self.of.site.kernels_share() } else { 0.0 };
            self.begin(share, None, opened::enter)
        } else if let Some(chosen) = chosen {
            self.open(chosen)
        } else {
            match around().filter(|_| opened::is_outermost()) {
                Some(around) => self.open_under(&around),
                None => Place::Nowhere,
            }
        }
    }

    /// Opens a call for a chosen root, unless the thread is inside one meanwhile.
    fn open(&mut self, Chosen { share, passed }: Chosen) -> Place {
        self.begin(share, Some(passed).filter(|_| !opened::is_inside()), |subject| {
            let is_inside = opened::is_inside();
            let frame = opened::enter(subject)?;
            if !is_inside {
                opened::set_passed(passed);
            }
            Some(frame)
        })
    }

    /// Opens a call on this thread, for a span inside of others on another thread.
    fn open_under(&mut self, around: &Around) -> Place {
        let Represented { weight, passed } = around.represented;
        self.begin(weight.recip(), None, |subject| {
            let frame = opened::enter_under(&around.callers, subject)?;
            opened::set_passed(passed);
            Some(frame)
        })
    }

    /// Counts the span, and enters it as a frame. `share` is the probability of opening it, and
    /// `root` the number of roots passed over if it is a chosen one.
    fn begin(
        &mut self,
        share: f64,
        root: Option<u64>,
        enter: impl FnOnce(Subject) -> Option<FrameId>,
    ) -> Place {
        let site = &self.of.site;
        let Some(timed) = inside::outside(|| decide::span(site, root)) else {
            return Place::Nowhere;
        };
        self.call_id = timeline::begin(site);
        cupti::observe_launches(opened::OBSERVER);
        let subject = Subject {
            of: self.series(),
            stream: None,
            // The weight of a root is that of all spans inside.
            weight: 1.0,
            share: share * timed,
            workload: Workload::UNKNOWN,
            call_id: self.call_id,
        };
        let Some(frame) = enter(subject) else {
            decide::count_span(site, Some(1.0), 0);
            self.lose(Lost::Records);
            return Place::Nowhere;
        };
        if let Some((weight, passed)) = opened::represented(frame) {
            self.represented = Some(Represented { weight, passed });
            decide::count_span(site, Some(weight), passed);
        }
        Place::Frame(frame)
    }

    /// Counts a call that is lost, because another thread is inside of the span.
    fn miss(&self, chosen: Option<Chosen>) {
        let (weight, passed) =
            chosen.map_or((1.0, 0), |chosen| (chosen.share.recip(), chosen.passed));
        decide::count_span(&self.of.site, Some(weight), passed);
        opened::count_lost(&self.series(), first::only_device(), Lost::Thread);
    }

    /// Leaves the span on this thread.
    pub fn exit(&mut self) {
        self.metered(|part| {
            part.exit_here();
            part.update_counts();
        });
    }

    fn exit_here(&mut self) {
        let Place::Frame(frame) = self.place else { return };
        let is_here = opened::is_open(frame);
        if !is_here && (self.entered == 0 || self.thread != thread_id::current()) {
            return;
        }
        self.entered = self.entered.saturating_sub(1);
        if !is_here {
            // Left after the span around it.
            self.place = Place::Nowhere;
            return self.lose(Lost::Thread);
        }
        if self.entered > 0 {
            return;
        }
        if frame.index == 0 {
            if let Some(call) = opened::suspend(frame) {
                if self.of.kept.get() {
                    self.place = Place::Nowhere;
                    self.end(call, None);
                } else {
                    self.place = Place::Suspended(frame, call);
                }
            }
        } else {
            _ = opened::leave(frame, None, device);
            timeline::end(self.call_id);
        }
    }

    /// Ends the span.
    pub fn close(&mut self) {
        self.of.kept.note_closed(self.entries);
        if let Place::Suspended(_, call) = mem::replace(&mut self.place, Place::Nowhere) {
            self.end(call, None);
        }
        self.is_watched = false;
        self.update_counts();
    }

    /// Ends the call that the span has opened.
    #[allow(clippy::boxed_local, reason = "calls are kept as boxes")]
    fn end(&mut self, call: Box<OpenCall>, lost: Option<Lost>) {
        if cost::is_on() {
            let launches = call.launches.len() as f64 * LAUNCH_COST_NS;
            self.of.site.cost.count_preparation(launches + call.cost_ns as f64);
        }
        opened::end_suspended(call, lost, device);
        timeline::end(self.call_id);
        self.represented = None;
    }

    /// Counts the span for as long as its next entry matters.
    fn update_counts(&mut self) {
        let count = match self.place {
            Place::Suspended(..) => Some(&SUSPENDED),
            Place::Chosen(_) => Some(&EXPECTED),
            _ if self.is_watched => Some(&EXPECTED),
            _ => None,
        };
        self.awaited = count.map(|count| count.count());
        if self.of.kept.get() {
            self.live = None;
        }
    }

    /// Runs `change`, and charges its host time to the call while a budget is set.
    fn metered(&mut self, change: impl FnOnce(&mut Part)) {
        let began = cost::is_on().then(Instant::now);
        change(self);
        if let Some(began) = began {
            let ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX).min(LONGEST_NS);
            match &mut self.place {
                Place::Suspended(_, call) => call.cost_ns += ns,
                _ => opened::add_cost(ns),
            }
        }
    }

    /// Counts the span as lost.
    fn lose(&self, lost: Lost) {
        opened::count_lost(&self.series(), first::only_device(), lost);
        timeline::end(self.call_id);
    }

    fn series(&self) -> CallSeries {
        let Part { of: SpanSite { site, .. }, key, .. } = *self;
        let (thread, cache) = (threads::current(), CacheState::AsFound);
        CallSeries { site, thread, launch: None, cache, key }
    }
}

/// Returns the device of a context, of which there is none without a launch.
fn device(context: usize) -> DeviceId {
    if context == 0 { first::only_device() } else { first::device(context) }
}
