//! Event pairs used in graphs, and the series that count their replays.

use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Relaxed};

use crate::base::lock::{Mutex, MutexGuard, Rank, locked};
use crate::cuda::{Capture, Context, KeepError};
use crate::gpu::{Fault, Gpu};
use crate::record::series_counters::{SeriesOutcome, SeriesTable};
use crate::record::timeline;
use crate::site::{callsite::CallSite, series_id::SeriesIdentity};
use crate::types::sample::{Lost, Sample, SampleFlags};
use crate::types::{handles::EventPair, workload::Workload};

/// The maximum number of event pairs in graphs at once.
const MAX_PAIRS: usize = 8_192;

/// A pair recorded by a graph.
pub(super) struct GraphPair {
    pub pair: Pair,
    /// The node's properties; `None` if the launch was lost.
    info: Option<NodeInfo>,
}

/// The properties of a graph node that its samples need.
#[derive(Clone, Copy)]
pub(super) struct NodeInfo {
    pub site: &'static CallSite,
    pub series: SeriesIdentity,
    /// No other node in the graph precedes it.
    pub is_first: bool,
    pub nested: bool,
    pub tracked: bool,
}

/// The event pairs for all graphs in the process.
pub(super) struct Graphs {
    pub pairs: Vec<GraphPair>,
    idle: Vec<Pair>,
    /// The number of pairs created in contexts that still exist.
    made: usize,
    /// The pair at which the next poll starts.
    next: usize,
    /// The host time at which the next poll becomes due.
    pub due_ns: u64,
}

pub(super) static GRAPHS: Mutex<Graphs> = Mutex::new(
    Rank::Graphs,
    Graphs { pairs: Vec::new(), idle: Vec::new(), made: 0, next: 0, due_ns: 0 },
);

/// All series for graph nodes. Never locked during a driver call, because a report needs it.
static SERIES: Mutex<SeriesTable> = Mutex::new(Rank::GraphSeries, SeriesTable::EMPTY);
/// Set when the first node is added, so that programs without graphs take no lock.
static HAS_NODES: AtomicBool = AtomicBool::new(false);

/// Returns `true` if any graph has ever been given a node.
pub(crate) fn has_nodes() -> bool {
    HAS_NODES.load(Relaxed)
}

/// Locks the counters of all series for graph nodes.
pub(crate) fn series() -> MutexGuard<'static, SeriesTable> {
    locked(&SERIES)
}

/// Counts and records a reading or a loss.
pub(super) fn record(
    site: &'static CallSite,
    identity: SeriesIdentity,
    outcome: Result<Sample, Lost>,
) {
    let mut table = series();
    let series = table.begin(site, identity);
    table.record(&[SeriesOutcome { series, outcome, workload: Workload::UNKNOWN, place: None }]);
    if outcome.is_ok() && timeline::is_on() {
        // The stream used for a replay is unknown.
        timeline::record(None);
    }
}

impl Graphs {
    /// Adds a pair that a graph now records.
    pub fn add(&mut self, pair: Pair, info: Option<NodeInfo>) {
        self.pairs.push(GraphPair { pair, info });
        HAS_NODES.store(true, Relaxed);
    }

    /// Takes one of the context's pairs that no graph records.
    fn take_idle(&mut self, context: &'static Context) -> Option<Pair> {
        let is_its = |pair: &Pair| ptr::eq(pair.context, context);
        if !self.idle.iter().any(is_its) {
            let is_released = |p: &GraphPair| is_its(&p.pair) && p.pair.released.load(Acquire);
            self.next = self.pairs.iter().position(is_released)?;
            self.poll(1);
        }
        let at = self.idle.iter().position(is_its)?;
        Some(self.idle.swap_remove(at))
    }

    /// Drops the pairs of a context that is gone, because its events must not be passed to the
    /// driver.
    fn remove_context(&mut self, context: &'static Context) {
        let before = self.pairs.len() + self.idle.len();
        self.pairs.retain(|graph_pair| !ptr::eq(graph_pair.pair.context, context));
        self.idle.retain(|pair| !ptr::eq(pair.context, context));
        self.made -= before - self.pairs.len() - self.idle.len();
    }

    /// Polls up to `count` nodes, starting where the last poll ended. A pair that is no longer
    /// recorded by a graph is read one last time and becomes idle. Never waits.
    pub fn poll(&mut self, count: usize) {
        let mut checked: Option<(&'static Context, bool)> = None;
        for _ in 0..count.min(self.pairs.len()) {
            if self.next >= self.pairs.len() {
                self.next = 0;
            }
            let Some(GraphPair { pair, info }) = self.pairs.get_mut(self.next) else { return };
            let context = pair.context;
            let is_alive = match checked {
                Some((same, is_alive)) if ptr::eq(same, context) => is_alive,
                _ => context.check_alive().is_ok(),
            };
            checked = Some((context, is_alive));
            if !is_alive {
                self.remove_context(context);
                continue;
            }
            // Loaded before the times are read, so every replay of a released pair has already
            // ended.
            let is_released = pair.released.load(Acquire);
            let reading = info.and_then(|info| Some((info, pair.read()?)));
            if is_released {
                let mut pair = self.pairs.swap_remove(self.next).pair;
                // A replay of the pair's last graph must not be counted for its next one.
                pair.last_stop_ns = pair.stopped_ns().or(pair.last_stop_ns);
                self.idle.push(pair);
            } else {
                self.next += 1;
            }
            if let Some((info, raw_ns)) = reading {
                record(info.site, info.series, info.sample(context, raw_ns));
            }
        }
    }
}

impl NodeInfo {
    /// Converts the time between two nodes to a sample.
    ///
    /// Nothing between two nodes in a graph waits for the host. At the start of a graph, the GPU
    /// may still be fetching it, and the GPU's preceding work is unknown.
    fn sample(self, context: &Context, raw_ns: f64) -> Result<Sample, Lost> {
        let sample = Sample::new(raw_ns).ok_or(Lost::Invalid)?;
        let flags = SampleFlags {
            fed: !self.is_first,
            queued: false,
            at_floor: context.is_at_floor(raw_ns),
            nested: self.nested,
            tracked: self.tracked,
        };
        let (inner, added_ns) = if self.nested { (None, None) } else { (Some(0), Some(0.0)) };
        Ok(sample.at(context.now_ns()).around(inner, added_ns).flagged(flags))
    }
}

/// An event pair for a launch in a graph.
///
/// Invariant: always exactly one of idle, open or recorded by a graph, because ownership moves from
/// one to the next. `released` is set when no graph records the events any longer, and cleared when
/// a graph is given them.
pub(super) struct Pair {
    pub context: &'static Context,
    pub events: EventPair,
    pub released: &'static AtomicBool,
    /// The device time of the last stop read, since the context's origin. The driver's `f32`
    /// milliseconds are accurate to a quarter of a millisecond after an hour, so replays that
    /// follow each other more closely can no longer all be distinguished.
    pub last_stop_ns: Option<f64>,
}

impl Pair {
    /// Takes a pair for a graph that is being captured. The pair's `released` is set when the graph
    /// has been destroyed.
    pub fn for_capture(context: &'static Context, capture: &Capture) -> Result<Pair, Fault> {
        let pair = Pair::take(context)?;
        pair.released.store(false, Relaxed);
        let Err(KeepError { fault, is_released }) = context.keep(capture, pair.released) else {
            return Ok(pair);
        };
        let mut graphs = locked(&GRAPHS);
        if is_released {
            graphs.add(pair, None)
        } else {
            graphs.idle.push(pair)
        }
        Err(fault)
    }

    /// Returns the context's blank pair. Any number of graphs may record it, and it is never read.
    pub fn blank(context: &'static Context) -> Result<Pair, Fault> {
        static NEVER: AtomicBool = AtomicBool::new(false);
        let events = context.blank_events()?;
        Ok(Pair { context, events, released: &NEVER, last_stop_ns: None })
    }

    /// Takes one of the context's idle pairs, or creates one if the limit allows it.
    fn take(context: &'static Context) -> Result<Pair, Fault> {
        let mut graphs = locked(&GRAPHS);
        if let Some(pair) = graphs.take_idle(context) {
            return Ok(pair);
        }
        if graphs.made >= MAX_PAIRS {
            return Err(Fault::Exhausted);
        }
        graphs.made += 1;
        drop(graphs);
        match context.create_pair() {
            Ok(events) => {
                let released = Box::leak(Box::new(AtomicBool::new(false)));
                Ok(Pair { context, events, released, last_stop_ns: None })
            }
            Err(fault) => {
                locked(&GRAPHS).made -= 1;
                Err(fault)
            }
        }
    }

    /// Returns the device time of the last stop.
    pub fn stopped_ns(&self) -> Option<f64> {
        let start = self.context.origin()?;
        self.context.since(&EventPair { start, stop: self.events.stop })
    }

    /// Returns the time of the last replay, unless it has already been read.
    pub fn read(&mut self) -> Option<f64> {
        let (stopped_ns, raw_ns) =
            reading(self.last_stop_ns, || self.stopped_ns(), || self.context.since(&self.events))?;
        self.last_stop_ns = Some(stopped_ns);
        Some(raw_ns)
    }
}

/// Returns when the last replay stopped and how long it took. Returns `None` if the driver has no time yet, if
/// that stop is `last_stop`, or if the next replay may have run between the readings.
fn reading(
    last_stop: Option<f64>,
    mut stopped_ns: impl FnMut() -> Option<f64>,
    mut raw_ns: impl FnMut() -> Option<f64>,
) -> Option<(f64, f64)> {
    let stopped = stopped_ns()?;
    if last_stop == Some(stopped) {
        return None;
    }
    let raw = raw_ns()?;
    // Negative if the start already belongs to the next replay.
    let is_whole = raw >= 0.0 && raw_ns()? == raw && stopped_ns()? == stopped;
    is_whole.then_some((stopped, raw))
}

#[cfg(test)]
mod tests {
    use super::reading;

    fn read(last_stop: Option<f64>, stopped: &[f64], raw: &[f64]) -> Option<(f64, f64)> {
        let (mut stopped, mut raw) = (stopped.iter().copied(), raw.iter().copied());
        reading(last_stop, || stopped.next(), || raw.next())
    }

    #[test]
    fn replay_is_read_once() {
        assert_eq!(read(None, &[9e6, 9e6], &[5e3, 5e3]), Some((9e6, 5e3)));
        assert_eq!(read(Some(8e6), &[9e6, 9e6], &[5e3, 5e3]), Some((9e6, 5e3)));
        assert_eq!(read(Some(9e6), &[9e6, 9e6], &[5e3, 5e3]), None);
    }

    #[test]
    fn replay_in_between_gives_no_reading() {
        // The next replay's start was passed, but not its stop.
        assert_eq!(read(None, &[9e6, 9e6], &[-2e3, -2e3]), None);
        // The next replay's start was passed between the readings.
        assert_eq!(read(None, &[9e6, 9e6], &[1e6, 5e3]), None);
        assert_eq!(read(None, &[9e6, 10e6], &[5e3, 5e3]), None);
        // The GPU has not reached the stop, so the driver returns no time.
        assert_eq!(read(None, &[], &[]), None);
        assert_eq!(read(None, &[9e6], &[]), None);
        assert_eq!(read(None, &[9e6], &[5e3]), None);
    }
}
