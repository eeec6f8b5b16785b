//! Whether a call is timed: what is known of that before its stream is, and what its stream decides.

use crate::counts::Outcome;
use crate::cuda;
use crate::gpu::Stream;
use crate::lane;
use crate::site::CallSite;

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
            Drawn::Later if !cuda::is_captured(stream, context) => match lane::draw(site) {
                Some(weight) => self.drawn = Drawn::Weight(weight),
                None => return false,
            },
            Drawn::Later | Drawn::Weight(_) => {}
        }
        if let Some(slot) = lane::slot(site)
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
