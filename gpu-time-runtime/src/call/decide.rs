//! Whether a call is timed: what is known of that before its stream is, and what its stream decides.

use crate::base::fork;
use crate::control::budget_control;
use crate::cuda;
use crate::record::threads;
use crate::site::callsite::CallSite;
use crate::site::cost;
use crate::site::counters::Outcome;
use crate::site::counters::Slot;
use crate::types::handles::Stream;

/// Whether a call is timed, as far as that is known before its stream is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Drawn {
    /// It stands for so many calls.
    Weight(f32),
    /// Whether it goes into a graph must be known first.
    Later,
    /// Timing is off, but it may go into a graph that must keep its shape.
    Off,
}

/// Decides about a call whose stream is known, before anything is asked that only timed calls need.
pub struct Gate {
    site: &'static CallSite,
    drawn: Drawn,
}

impl Gate {
    pub(crate) fn new(site: &'static CallSite, drawn: Drawn) -> Gate {
        Gate { site, drawn }
    }

    /// How many calls this one stands for; none where that was not drawn, which goes for captured ones.
    pub(crate) fn weight(&self) -> Option<f32> {
        match self.drawn {
            Drawn::Weight(weight) => Some(weight),
            Drawn::Later | Drawn::Off => None,
        }
    }

    /// Whether the call may be timed, on this stream of this context. Else it has been counted.
    #[inline(always)] // into the one closure that asks
    pub fn lets_pass(&mut self, stream: usize, context: usize) -> bool {
        let (site, stream) = (self.site, Stream(stream));
        match self.drawn {
            Drawn::Off => return true,
            Drawn::Later if !cuda::is_captured(stream, context) => match draw(site) {
                Some(weight) => self.drawn = Drawn::Weight(weight),
                None => return false,
            },
            Drawn::Later | Drawn::Weight(_) => {}
        }
        if let Some(slot) = threads::slot(site)
            && slot.use_lease(context)
        {
            if !goes_into_graph(site, stream, context) {
                slot.count(Outcome::Warmup);
                return false;
            }
            slot.return_lease();
        }
        true
    }
}

/// Whether the call's launches become nodes of a graph, which is no warm-up: then the shape of the
/// graph would depend on how many calls went before.
#[inline]
pub(crate) fn goes_into_graph(site: &'static CallSite, stream: Stream, context: usize) -> bool {
    site.spec.graph && cuda::is_captured(stream, context) && !cuda::is_recording()
}

/// Calls at most that are passed over before the sampling rate is asked for again; fewer with a budget,
/// which changes the rate.
const LONGEST_GAP: u64 = 4_096;
const LONGEST_GAP_WITH_BUDGET: u64 = 64;

/// Decides whether a call is timed where not all are: with which weight, if so. Else counts it.
#[inline]
pub(crate) fn draw(site: &'static CallSite) -> Option<f32> {
    if !site.is_sampled() {
        return Some(1.0);
    }
    match threads::slot(site) {
        Some(slot) if slot.pass_over(site.epoch()) => None,
        slot => draw_slowly(site, slot),
    }
}

#[cold]
fn draw_slowly(site: &'static CallSite, known: Option<&'static Slot>) -> Option<f32> {
    if fork::is_forked() {
        return None;
    }
    let slot = known.or_else(|| {
        threads::current();
        threads::slot(site)
    });
    // The lane of a thread that is new may be in the middle of a gap of the thread that had it before.
    if known.is_none() && slot.is_some_and(|slot| slot.pass_over(site.epoch())) {
        return None;
    }
    let is_metered = cost::is_on();
    let _look = site.meter.look();
    if is_metered {
        // Before it is drawn, so that the call gains by what is decided.
        budget_control::look(site, slot.map_or(1, Slot::decided));
    }
    let weight = match slot {
        Some(slot) => {
            let longest = if is_metered { LONGEST_GAP_WITH_BUDGET } else { LONGEST_GAP };
            slot.draw(site.sampling(), site.epoch(), longest)
        }
        None => site.shared_counts.draw(site.sampling()),
    };
    if is_metered && weight.is_some() {
        site.meter.count_timed();
    }
    weight
}
