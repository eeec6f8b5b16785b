//! A span that is a part of an opened call, or that opens one.

use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use crate::base::{inside, thread_id};
use crate::call::spans::roots::Chosen;
use crate::call::{decide, first, opened::LAUNCH_COST_NS};
use crate::cupti;
use crate::record::opened::{self, CallSeries, FrameId, OpenCall, Subject};
use crate::record::threads;
use crate::record::timeline::{self, CallId};
use crate::site::callsite::CallSite;
use crate::site::cost::{self, LONGEST_NS};
use crate::types::sample::{CacheState, Lost};
use crate::types::{device::DeviceId, key::SeriesKey, workload::Workload};

/// The spans that are chosen and not entered, on any thread.
static WAITING: AtomicUsize = AtomicUsize::new(0);
/// The chosen roots that have not been closed.
static LIVE: AtomicUsize = AtomicUsize::new(0);

/// Returns `true` if a span waits that is to open a call, or to go on with one.
#[inline]
pub(super) fn are_waiting() -> bool {
    WAITING.load(Relaxed) > 0
}

/// Returns `true` if there is a chosen root, whose spans inside may be entered on any thread.
#[inline]
pub(super) fn are_live() -> bool {
    LIVE.load(Relaxed) > 0
}

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
    site: &'static CallSite,
    key: SeriesKey,
    call_id: CallId,
    place: Place,
    /// Set once it is entered.
    represented: Option<Represented>,
    /// Counted in [`LIVE`].
    is_chosen: bool,
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
    pub fn new(site: &'static CallSite, key: SeriesKey) -> Part {
        Part {
            site,
            key,
            call_id: CallId::default(),
            place: Place::Nowhere,
            represented: None,
            is_chosen: false,
            thread: 0,
            entered: 0,
        }
    }

    /// Creates the state of a root that was chosen.
    pub fn chosen(site: &'static CallSite, key: SeriesKey, chosen: Chosen) -> Part {
        WAITING.fetch_add(1, Relaxed);
        LIVE.fetch_add(1, Relaxed);
        let mut part = Part::new(site, key);
        (part.place, part.is_chosen) = (Place::Chosen(chosen), true);
        part
    }

    /// Returns the site of a span that is recorded, and what it stands for.
    pub fn recorded(&self) -> Option<(u32, Represented)> {
        Some((self.site.id(), self.represented?))
    }

    /// Enters the span on this thread. `is_outermost`: no other span is entered here. `around` returns
    /// the recorded spans around it, if there are any.
    pub fn enter(&mut self, is_outermost: bool, around: impl FnOnce() -> Option<Around>) {
        self.metered(|part| part.enter_here(is_outermost, around));
    }

    fn enter_here(&mut self, is_outermost: bool, around: impl FnOnce() -> Option<Around>) {
        let place = match mem::replace(&mut self.place, Place::Nowhere) {
            Place::Chosen(chosen) => {
                WAITING.fetch_sub(1, Relaxed);
                self.open(chosen)
            }
            Place::Suspended(frame, call) => match opened::resume(frame, Some(call)) {
                Some(call) => return self.place = Place::Suspended(frame, call),
                None => {
                    WAITING.fetch_sub(1, Relaxed);
                    Place::Frame(frame)
                }
            },
            Place::Frame(frame) if opened::is_open(frame) => {
                if self.entered == 0 {
                    opened::resume(frame, None);
                }
                self.entered += 1;
                return self.place = Place::Frame(frame);
            }
            // Entered on another thread, too.
            Place::Frame(frame) if self.entered > 0 => return self.place = Place::Frame(frame),
            _ if opened::is_inside() => {
                let share = if is_outermost { self.site.kernels_share() } else { 0.0 };
                self.begin(share, None, opened::enter)
            }
            place => match around().filter(|_| opened::is_outermost()) {
                Some(around) => self.open_under(&around),
                None => place,
            },
        };
        if matches!(place, Place::Frame(_)) {
            (self.thread, self.entered) = (thread_id::current(), 1);
        }
        self.place = place;
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
        let Some(timed) = inside::outside(|| decide::span(self.site, root)) else {
            return Place::Nowhere;
        };
        self.call_id = timeline::begin(self.site);
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
            decide::count_span(self.site, Some(1.0), 0);
            self.lose(Lost::Records);
            return Place::Nowhere;
        };
        if let Some((weight, passed)) = opened::represented(frame) {
            self.represented = Some(Represented { weight, passed });
            decide::count_span(self.site, Some(weight), passed);
        }
        Place::Frame(frame)
    }

    /// Leaves the span on this thread.
    pub fn exit(&mut self) {
        self.metered(Part::exit_here);
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
                WAITING.fetch_add(1, Relaxed);
                self.place = Place::Suspended(frame, call);
            }
        } else {
            _ = opened::leave(frame, None, device);
            timeline::end(self.call_id);
        }
    }

    /// Ends the span.
    pub fn close(&mut self) {
        match mem::replace(&mut self.place, Place::Nowhere) {
            Place::Chosen(_) => _ = WAITING.fetch_sub(1, Relaxed),
            Place::Suspended(_, call) => {
                WAITING.fetch_sub(1, Relaxed);
                if cost::is_on() {
                    let launches = call.launches.len() as f64 * LAUNCH_COST_NS;
                    self.site.cost.count_preparation(launches + call.cost_ns as f64);
                }
                opened::end_suspended(call, None, device);
                timeline::end(self.call_id);
            }
            Place::Frame(_) | Place::Nowhere => {}
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
        let Part { site, key, .. } = *self;
        let (thread, cache) = (threads::current(), CacheState::AsFound);
        CallSeries { site, thread, launch: None, cache, key }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if self.is_chosen {
            LIVE.fetch_sub(1, Relaxed);
        }
    }
}

/// Returns the device of a context, of which there is none without a launch.
fn device(context: usize) -> DeviceId {
    if context == 0 { first::only_device() } else { first::device(context) }
}
