//! The two events of a node, which live as long as the graphs that record them.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::{GRAPHS, MOST};
use crate::cuda::{Capture, Context, NotKept};
use crate::gpu::{EventPair, Fault, Gpu};
use crate::lock::locked;

/// Two events that graphs record.
///
/// Invariant: idle, open or placed, and exactly one of these, because it is moved from one owner to
/// the next. `released` is set when no graph has the events any more, and cleared when one is given
/// them.
pub(super) struct Pair {
    pub context: &'static Context,
    pub events: EventPair,
    pub released: &'static AtomicBool,
    /// The device's time of the last stop that was looked at, counted from the context's origin. A
    /// float of milliseconds says it to a quarter of a millisecond after an hour: of replays that
    /// come closer together, fewer are told apart.
    pub seen: Option<f64>,
}

impl Pair {
    /// A pair that lives as long as the graph that is being captured.
    pub fn kept(context: &'static Context, capture: &Capture) -> Result<Pair, Fault> {
        let pair = Pair::take(context)?;
        pair.released.store(false, Relaxed);
        let Err(NotKept { fault, is_released }) = context.keep(capture, pair.released) else {
            return Ok(pair);
        };
        let mut graphs = locked(&GRAPHS);
        if is_released {
            graphs.place(pair, None)
        } else {
            graphs.idle.push(pair)
        }
        Err(fault)
    }

    /// The pair of the context that any number of graphs record and nobody reads.
    pub fn blank(context: &'static Context) -> Result<Pair, Fault> {
        static NEVER: AtomicBool = AtomicBool::new(false);
        let events = context.blank_events()?;
        Ok(Pair { context, events, released: &NEVER, seen: None })
    }

    /// An idle pair of the context, or a new one if there may be more.
    fn take(context: &'static Context) -> Result<Pair, Fault> {
        let mut graphs = locked(&GRAPHS);
        if let Some(pair) = graphs.idle_in(context) {
            return Ok(pair);
        }
        if graphs.made >= MOST {
            return Err(Fault::Exhausted);
        }
        graphs.made += 1;
        drop(graphs);
        let events =
            || Ok(EventPair { start: context.create_event()?, stop: context.create_event()? });
        match events() {
            Ok(events) => {
                let released = Box::leak(Box::new(AtomicBool::new(false)));
                Ok(Pair { context, events, released, seen: None })
            }
            Err(fault) => {
                locked(&GRAPHS).made -= 1;
                Err(fault)
            }
        }
    }

    /// The device's time of the last stop.
    pub fn stopped_ns(&self) -> Option<f64> {
        let start = self.context.origin()?;
        self.context.since(&EventPair { start, stop: self.events.stop })
    }

    /// The time of the last replay, if nobody has seen that yet.
    pub fn read(&mut self) -> Option<f64> {
        let (stopped_ns, raw_ns) =
            reading(self.seen, || self.stopped_ns(), || self.context.since(&self.events))?;
        self.seen = Some(stopped_ns);
        Some(raw_ns)
    }
}

/// When the last replay stopped and how long it took, unless that is what was `seen` before, or the
/// next replay may have come between.
fn reading(
    seen: Option<f64>,
    mut stopped_ns: impl FnMut() -> Option<f64>,
    mut raw_ns: impl FnMut() -> Option<f64>,
) -> Option<(f64, f64)> {
    let stopped = stopped_ns()?;
    if seen == Some(stopped) {
        return None;
    }
    let raw = raw_ns()?;
    // It is negative where the start is that of the next replay already.
    let is_whole = raw >= 0.0 && raw_ns()? == raw && stopped_ns()? == stopped;
    is_whole.then_some((stopped, raw))
}

#[cfg(test)]
mod tests {
    use super::reading;

    fn read(seen: Option<f64>, stopped: &[f64], raw: &[f64]) -> Option<(f64, f64)> {
        let (mut stopped, mut raw) = (stopped.iter().copied(), raw.iter().copied());
        reading(seen, || stopped.next(), || raw.next())
    }

    #[test]
    fn a_replay_is_read_once() {
        assert_eq!(read(None, &[9e6, 9e6], &[5e3, 5e3]), Some((9e6, 5e3)));
        assert_eq!(read(Some(8e6), &[9e6, 9e6], &[5e3, 5e3]), Some((9e6, 5e3)));
        assert_eq!(read(Some(9e6), &[9e6, 9e6], &[5e3, 5e3]), None);
    }

    #[test]
    fn a_replay_that_comes_between_leaves_nothing() {
        // Its start has been passed, and its stop has not.
        assert_eq!(read(None, &[9e6, 9e6], &[-2e3, -2e3]), None);
        // It was passed while the time was asked for, or right after.
        assert_eq!(read(None, &[9e6, 9e6], &[1e6, 5e3]), None);
        assert_eq!(read(None, &[9e6, 10e6], &[5e3, 5e3]), None);
        // The driver does not answer, because it has not come to the stop.
        assert_eq!(read(None, &[], &[]), None);
        assert_eq!(read(None, &[9e6], &[]), None);
        assert_eq!(read(None, &[9e6], &[5e3]), None);
    }
}
