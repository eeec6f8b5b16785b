//! Launches that became nodes of a graph, between two event records that are nodes too.
//!
//! Nobody tells of a replay, so the events are looked at now and then: for a report, and before a timed
//! call where brackets in streams were looked at since. What is found is the last replay, if it has
//! ended; those before it have left nothing behind.

use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, TryLockError};

use crate::cuda::{Capture, Context, NotKept};
use crate::gpu::{EventPair, Fault, Gpu, Stream};
use crate::lane;
use crate::place::Place;
use crate::sample::{Lost, Sample};
use crate::site::{CallSite, Row, locked};
use crate::trace;
use crate::track::{Mark, Track};

/// Pairs of events that graphs may have at once.
const MOST: usize = 8_192;
/// Nodes that are looked at together while a program runs.
const AT_ONCE: usize = 64;
/// Looking takes no more than one part of so many of the host's time.
const SHARE: u64 = 100;

/// Two events that graphs record.
///
/// Invariant: idle, open or placed, and exactly one of these, because it is moved from one owner to
/// the next. `released` is set when no graph has the events any more, and cleared when one is given
/// them.
struct Pair {
    context: &'static Context,
    events: EventPair,
    released: &'static AtomicBool,
    /// The device's time of the last stop that was looked at, counted from the context's origin. A
    /// float of milliseconds says it to a quarter of a millisecond after an hour: of replays that
    /// come closer together, fewer are told apart.
    seen: Option<f64>,
}

/// A launch between its two nodes.
pub(crate) struct Node {
    pair: Pair,
    /// Why the pair is a blank, whose times nobody reads: it only keeps the graph's shape.
    blank: Option<Lost>,
    capture: u64,
    /// The thread of the start, in a stream that each thread has its own of.
    thread: Option<u64>,
    stream: Stream,
    track: &'static Track,
    begun: Mark,
    tracked: bool,
    row: usize,
}

/// What became of a launch that would be a node.
pub(crate) enum Opened {
    Node(Box<Node>),
    /// It is counted as lost.
    Lost,
    /// The site has no nodes, or the capture is none that could have them.
    Untimed,
}

/// A pair that belongs to a graph.
struct Placed {
    pair: Pair,
    /// What to make of its times; nothing where the launch was lost.
    reads: Option<Reads>,
}

#[derive(Clone, Copy)]
struct Reads {
    row: usize,
    nested: bool,
    tracked: bool,
}

/// A row with what is counted of it.
struct Counted {
    site: &'static CallSite,
    row: &'static Row,
    timed: u64,
}

/// All nodes of ours in the process.
pub(crate) struct Graphs {
    placed: Vec<Placed>,
    idle: Vec<Pair>,
    /// Pairs that were made in contexts that are still there.
    made: usize,
    rows: Vec<Counted>,
    /// Where the next look begins, and when it is due.
    next: usize,
    due_ns: u64,
}

static GRAPHS: Mutex<Graphs> = Mutex::new(Graphs {
    placed: Vec::new(),
    idle: Vec::new(),
    made: 0,
    rows: Vec::new(),
    next: 0,
    due_ns: 0,
});
/// So that programs without graphs take no lock.
static IS_ANY: AtomicBool = AtomicBool::new(false);

/// Makes the start of a launch a node, if its stream is being captured and its site has nodes.
#[cold]
pub(crate) fn open(place: &Place, launch: u32) -> Opened {
    let Place { site, context, stream, .. } = *place;
    let capture = context.capture(stream);
    if matches!(capture, Ok(None)) {
        return Opened::Untimed;
    }
    let can = capture.is_ok() && context.origin().is_some();
    if !site.gets_nodes(can) {
        return Opened::Untimed;
    }
    let row = locked(&GRAPHS).row(site, launch, context);
    let opened = match capture {
        Ok(Some(capture)) if can => Node::open(place, &capture, row),
        Ok(_) => Err(Lost::Driver),
        Err(fault) => Err(fault.into()),
    };
    match opened {
        Ok(node) => Opened::Node(node),
        Err(reason) => {
            locked(&GRAPHS).lose(row, reason);
            Opened::Lost
        }
    }
}

impl Node {
    fn open(place: &Place, capture: &Capture, row: usize) -> Result<Box<Node>, Lost> {
        let Place { context, stream, tracked, .. } = *place;
        let (pair, blank) = match Pair::kept(context, capture) {
            Ok(pair) => (pair, None),
            // A graph that is captured anew must keep its shape.
            Err(fault) => (Pair::blank(context)?, Some(fault.into())),
        };
        let thread = stream.is_per_thread().then(lane::thread);
        let track = context.track(stream, thread);
        let begun = track.begin();
        let started = context.record_node(&pair.events.start, stream);
        let capture = capture.id;
        let node = Node { pair, blank, capture, thread, stream, track, begun, tracked, row };
        match started {
            Ok(()) => Ok(Box::new(node)),
            Err(fault) => {
                node.track.end();
                if node.blank.is_none() {
                    locked(&GRAPHS).place(node.pair, None);
                }
                Err(fault.into())
            }
        }
    }

    /// Makes the stop of the launch a node. `is_alive` says whether the stream still is.
    #[cold]
    pub fn close(self, is_alive: bool) {
        match self.stop(is_alive) {
            Err(reason) => self.abandon(reason),
            Ok(()) => {
                let nested = self.track.end() != self.begun;
                if let Some(reason) = self.blank {
                    return locked(&GRAPHS).lose(self.row, reason);
                }
                let reads = Reads { row: self.row, nested, tracked: self.tracked };
                locked(&GRAPHS).place(self.pair, Some(reads));
            }
        }
    }

    fn stop(&self, is_alive: bool) -> Result<(), Lost> {
        if !is_alive {
            return Err(Lost::Stream);
        }
        if self.thread.is_some_and(|thread| thread != lane::thread()) {
            return Err(Lost::Thread);
        }
        let context = self.pair.context;
        match context.capture(self.stream)? {
            // Outside of a capture the record would be an error.
            Some(capture) if capture.id == self.capture => {
                Ok(context.record_node(&self.pair.events.stop, self.stream)?)
            }
            _ => Err(Lost::Capture),
        }
    }

    /// Leaves the launch without a stop. The graph keeps the start until it is gone.
    #[cold]
    pub fn abandon(self, reason: Lost) {
        self.track.end();
        let mut graphs = locked(&GRAPHS);
        graphs.lose(self.row, reason);
        if self.blank.is_none() {
            graphs.place(self.pair, None);
        }
    }
}

impl Pair {
    /// A pair that lives as long as the graph that is being captured.
    fn kept(context: &'static Context, capture: &Capture) -> Result<Pair, Fault> {
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
    fn blank(context: &'static Context) -> Result<Pair, Fault> {
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
    fn stopped_ns(&self) -> Option<f64> {
        let start = self.context.origin()?;
        self.context.since(&EventPair { start, stop: self.events.stop })
    }

    /// The time of the last replay, if nobody has seen that yet.
    fn read(&mut self) -> Option<f64> {
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

/// Whether there ever was a node.
pub(crate) fn is_any() -> bool {
    IS_ANY.load(Relaxed)
}

/// Looks at some nodes, unless somebody does or did a moment ago.
pub(crate) fn glance() {
    if !is_any() {
        return;
    }
    let mut graphs = match GRAPHS.try_lock() {
        Ok(graphs) => graphs,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => return,
    };
    let Some(context) = graphs.placed.first().map(|placed| placed.pair.context) else { return };
    let began_ns = context.now_ns();
    if began_ns < graphs.due_ns {
        return;
    }
    graphs.look(AT_ONCE);
    let ended_ns = context.now_ns();
    graphs.due_ns = ended_ns + (SHARE - 1) * ended_ns.saturating_sub(began_ns);
}

/// Looks at every node.
pub(crate) fn look_at_all() {
    let mut graphs = locked(&GRAPHS);
    let all = graphs.placed.len();
    graphs.look(all);
}

/// All nodes, of which nobody reads any while the answer is held.
pub(crate) fn all() -> MutexGuard<'static, Graphs> {
    locked(&GRAPHS)
}

impl Graphs {
    /// Every row, with the readings and losses that were counted of it.
    pub fn rows(&self) -> impl Iterator<Item = (&'static Row, u64)> {
        self.rows.iter().map(|counted| (counted.row, counted.timed))
    }

    fn row(&mut self, site: &'static CallSite, launch: u32, context: &Context) -> usize {
        let row = site.graph_row(launch, context.place());
        let known = self.rows.iter().position(|counted| ptr::eq(counted.row, row));
        known.unwrap_or_else(|| {
            self.rows.push(Counted { site, row, timed: 0 });
            self.rows.len() - 1
        })
    }

    fn place(&mut self, pair: Pair, reads: Option<Reads>) {
        self.placed.push(Placed { pair, reads });
        IS_ANY.store(true, Relaxed);
    }

    fn lose(&mut self, row: usize, reason: Lost) {
        self.write(row, Err(reason));
    }

    fn write(&mut self, row: usize, outcome: Result<Sample, Lost>) {
        let Some(counted) = self.rows.get_mut(row) else { return };
        counted.timed += 1;
        let mut rows = counted.site.rows();
        let Some(kept) = rows.get_mut(counted.row.index()) else { return };
        match outcome {
            Ok(sample) => {
                kept.series.record(sample);
                if trace::is_on() {
                    // Which stream it ran in nobody knows.
                    trace::keep(None);
                }
            }
            Err(lost) => kept.series.lose(lost),
        }
    }

    /// A pair of the context that no graph has.
    fn idle_in(&mut self, context: &'static Context) -> Option<Pair> {
        let is_its = |pair: &Pair| ptr::eq(pair.context, context);
        if !self.idle.iter().any(is_its) {
            let is_released = |placed: &Placed| placed.pair.released.load(Acquire);
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
    fn look(&mut self, most: usize) {
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
                self.write(reads.row, reads.outcome(context, raw_ns));
            }
        }
    }
}

impl Reads {
    /// In a graph nothing waits for the host between two nodes, so every sample is fed.
    fn outcome(self, context: &Context, raw_ns: f64) -> Result<Sample, Lost> {
        let mut sample = Sample::new(raw_ns).ok_or(Lost::Invalid)?;
        sample.fed = true;
        sample.at_ns = context.now_ns();
        sample.at_floor = context.is_at_floor(raw_ns);
        sample.nested = self.nested;
        sample.tracked = self.tracked;
        Ok(sample)
    }
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
