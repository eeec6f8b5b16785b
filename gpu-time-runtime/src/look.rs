//! A look at what the GPU has passed of one lane's brackets.
//!
//! The driver is asked without the lane's lock, because a thread may wait long for the driver, and whoever
//! makes a report must not wait with it: a report needs all lanes at once.

use std::sync::Mutex;
use std::time::Instant;

use crate::bracket::Bracket;
use crate::calls::Returns;
use crate::gpu::{Fault, Gpu};
use crate::in_flight::InFlight;
use crate::lock::{locked, locked_by};
use crate::passage::Passage;
use crate::sample::{Lost, Sample};
use crate::trace;
use crate::work::Work;

/// What is pending on a lane, in the hands of who looks at it.
///
/// Invariant: a lane has one at most. Until it is given back, its brackets count as in flight.
pub(crate) struct Look<G: Gpu> {
    pub in_flight: InFlight<G>,
    pub found: Vec<Found<G>>,
}

/// A bracket that the GPU has passed, or whose events answer with a fault.
pub(crate) struct Found<G: Gpu> {
    pub bracket: Box<Bracket<G>>,
    pub outcome: Result<Result<Sample, Lost>, Fault>,
}

/// Turns every bracket of a lane that the GPU has passed into a sample or a loss, unless somebody is at it.
/// Answers whether none is left. Never waits for the GPU.
pub(crate) fn drain<G: Gpu>(work: &Mutex<Work<G>>, returns: &Returns) -> bool {
    let begun = locked(work).begin_look();
    finish(begun, work, returns)
}

/// The same, unless somebody keeps the lane locked until the deadline.
pub(crate) fn drain_by<G: Gpu>(
    work: &Mutex<Work<G>>,
    returns: &Returns,
    deadline: Instant,
) -> bool {
    let begun = locked_by(work, deadline).and_then(|mut work| work.begin_look());
    finish(begun, work, returns)
}

fn finish<G: Gpu>(begun: Option<Look<G>>, work: &Mutex<Work<G>>, returns: &Returns) -> bool {
    let Some(mut look) = begun else { return false };
    look.run();
    let mut work = locked(work);
    work.end_look(look, returns);
    work.is_idle()
}

impl<G: Gpu> Look<G> {
    /// Asks the driver.
    pub fn run(&mut self) {
        let found = &mut self.found;
        self.in_flight.drain(|bracket, outcome, passage| {
            if matches!(outcome, Err(Fault::Captured)) {
                bracket.gpu.discard(&bracket.pair);
            }
            found.push(Found { bracket, outcome });
            if trace::is_on()
                && let Some(last) = found.last_mut()
            {
                last.date(passage);
            }
        });
    }
}

impl<G: Gpu> Found<G> {
    /// Asks when the GPU passed it, for a trace.
    #[cold]
    fn date(&mut self, passage: &mut Passage) {
        if let Ok(Ok(sample)) = self.outcome {
            self.bracket.date(sample, passage);
        }
    }
}
