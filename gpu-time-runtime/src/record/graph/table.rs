//! Event pairs that live in graphs, and the series that their replays are counted in.

use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Relaxed};

use crate::base::lock::{Mutex, MutexGuard, Rank, locked};
use crate::cuda::{Capture, Context, NotKept};
use crate::gpu::{Fault, Gpu};
use crate::record::call::StreamCall;
use crate::record::timeline;
use crate::site::callsite::CallSite;
use crate::site::series_id::SeriesId;
use crate::types::handles::EventPair;
use crate::types::sample::{Lost, Sample};

/// Pairs of events that graphs may have at once.
const MOST: usize = 8_192;
/// A pair that belongs to a graph.
pub(super) struct PlacedPair {
    pub pair: Pair,
    /// What to make of its times; nothing where the launch was lost.
    reads: Option<Reads>,
}

#[derive(Clone, Copy)]
pub(super) struct Reads {
    pub row: usize,
    /// Nothing of the graph comes before it.
    pub is_first: bool,
    pub nested: bool,
    pub tracked: bool,
}

/// A row with what is counted of it.
struct GraphSeriesCounts {
    site: &'static CallSite,
    row: &'static SeriesId,
    timed: u64,
}

/// All nodes of ours in the process.
pub(super) struct Graphs {
    pub placed: Vec<PlacedPair>,
    idle: Vec<Pair>,
    /// Pairs that were made in contexts that are still there.
    made: usize,
    /// Where the next look begins, and when it is due.
    next: usize,
    pub due_ns: u64,
}

pub(super) static GRAPHS: Mutex<Graphs> = Mutex::new(
    Rank::Graphs,
    Graphs { placed: Vec::new(), idle: Vec::new(), made: 0, next: 0, due_ns: 0 },
);

/// Every row of nodes.
pub(crate) struct GraphSeries(Vec<GraphSeriesCounts>);

/// Never locked during a driver call: who makes a report must not wait for one.
static ROWS: Mutex<GraphSeries> = Mutex::new(Rank::GraphSeries, GraphSeries(Vec::new()));
/// So that programs without graphs take no lock.
static IS_ANY: AtomicBool = AtomicBool::new(false);

/// Whether there ever was a node.
pub(crate) fn is_any() -> bool {
    IS_ANY.load(Relaxed)
}

/// All rows, in which nobody writes anything while the answer is held.
pub(crate) fn rows() -> MutexGuard<'static, GraphSeries> {
    locked(&ROWS)
}

impl GraphSeries {
    /// Every row, with the readings and losses that were counted of it.
    pub fn iter(&self) -> impl Iterator<Item = (&'static SeriesId, u64)> {
        self.0.iter().map(|counted| (counted.row, counted.timed))
    }

    pub fn find(&mut self, place: &StreamCall, launch: u32) -> usize {
        let site = place.site;
        let row = site.graph_series_id(launch, place.context.device_id(), place.key);
        let known = self.0.iter().position(|counted| ptr::eq(counted.row, row));
        known.unwrap_or_else(|| {
            self.0.push(GraphSeriesCounts { site, row, timed: 0 });
            self.0.len() - 1
        })
    }

    pub fn write(&mut self, row: usize, outcome: Result<Sample, Lost>) {
        let Some(counted) = self.0.get_mut(row) else { return };
        counted.timed += 1;
        let mut rows = counted.site.series();
        let Some(cell) = rows.get_mut(counted.row.index()) else { return };
        match outcome {
            Ok(sample) => {
                cell.series.record(sample);
                if timeline::is_on() {
                    // Which stream it ran in nobody knows.
                    timeline::keep(None);
                }
            }
            Err(lost) => cell.series.lose(lost),
        }
    }
}

impl Graphs {
    pub fn place(&mut self, pair: Pair, reads: Option<Reads>) {
        self.placed.push(PlacedPair { pair, reads });
        IS_ANY.store(true, Relaxed);
    }

    /// A pair of the context that no graph has.
    fn idle_in(&mut self, context: &'static Context) -> Option<Pair> {
        let is_its = |pair: &Pair| ptr::eq(pair.context, context);
        if !self.idle.iter().any(is_its) {
            let is_released = |placed: &PlacedPair| placed.pair.released.load(Acquire);
            self.next = self.placed.iter().position(|p| is_its(&p.pair) && is_released(p))?;
            self.look(1);
        }
        let at = self.idle.iter().position(is_its)?;
        Some(self.idle.swap_remove(at))
    }

    /// Lets go of a context that is no more: the driver does not answer for its events.
    fn forget(&mut self, context: &'static Context) {
        let before = self.placed.len() + self.idle.len();
        self.placed.retain(|placed| !ptr::eq(placed.pair.context, context));
        self.idle.retain(|pair| !ptr::eq(pair.context, context));
        self.made -= before - self.placed.len() - self.idle.len();
    }

    /// Looks at so many nodes, from where the last look ended. Events that no graph has any more are
    /// read for a last time and are idle from then on. Never waits.
    pub fn look(&mut self, most: usize) {
        let mut asked: Option<(&'static Context, bool)> = None;
        for _ in 0..most.min(self.placed.len()) {
            if self.next >= self.placed.len() {
                self.next = 0;
            }
            let Some(placed) = self.placed.get_mut(self.next) else { return };
            let context = placed.pair.context;
            let is_alive = match asked {
                Some((same, is_alive)) if ptr::eq(same, context) => is_alive,
                _ => context.check_alive().is_ok(),
            };
            asked = Some((context, is_alive));
            if !is_alive {
                self.forget(context);
                continue;
            }
            // Asked first: what is released was replayed before that.
            let is_released = placed.pair.released.load(Acquire);
            let found = placed.reads.and_then(|reads| Some((reads, placed.pair.read()?)));
            if is_released {
                let mut pair = self.placed.swap_remove(self.next).pair;
                // Its next graph is not to be credited with the last one's replay.
                pair.seen = pair.stopped_ns().or(pair.seen);
                self.idle.push(pair);
            } else {
                self.next += 1;
            }
            if let Some((reads, raw_ns)) = found {
                let outcome = reads.outcome(context, raw_ns);
                rows().write(reads.row, outcome);
            }
        }
    }
}

impl Reads {
    /// Between two nodes of a graph nothing waits for the host. Where a graph begins, the GPU may still
    /// be fetching it, and nobody knows what it had to do before.
    fn outcome(self, context: &Context, raw_ns: f64) -> Result<Sample, Lost> {
        let mut sample = Sample::new(raw_ns).ok_or(Lost::Invalid)?;
        sample.fed = !self.is_first;
        sample.at_ns = context.now_ns();
        sample.at_floor = context.is_at_floor(raw_ns);
        sample.nested = self.nested;
        sample.tracked = self.tracked;
        Ok(sample)
    }
}

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
    pub fn cell(context: &'static Context, capture: &Capture) -> Result<Pair, Fault> {
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
