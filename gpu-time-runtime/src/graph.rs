//! Launches that became nodes of a graph, between two event records that are nodes too.
//!
//! Nobody tells of a replay, so the events are looked at now and then: for a report, and before a timed
//! call where brackets in streams were looked at since. What is found is the last replay, if it has
//! ended; those before it have left nothing behind.

mod node;
mod pair;

pub(crate) use node::Node;

use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::Instant;

use crate::cuda::{self, Context};
use crate::gpu::Gpu;
use crate::lock::{locked, locked_by};
use crate::place::Place;
use crate::sample::{Lost, Sample};
use crate::site::{CallSite, Row};
use crate::trace;
use pair::Pair;

/// Pairs of events that graphs may have at once.
const MOST: usize = 8_192;
/// Nodes that are looked at together while a program runs.
const AT_ONCE: usize = 64;
/// Looking takes no more than one part of so many of the host's time.
const SHARE: u64 = 100;

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
    /// Nothing of the graph comes before it.
    is_first: bool,
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
struct Graphs {
    placed: Vec<Placed>,
    idle: Vec<Pair>,
    /// Pairs that were made in contexts that are still there.
    made: usize,
    /// Where the next look begins, and when it is due.
    next: usize,
    due_ns: u64,
}

static GRAPHS: Mutex<Graphs> =
    Mutex::new(Graphs { placed: Vec::new(), idle: Vec::new(), made: 0, next: 0, due_ns: 0 });

/// Every row of nodes.
pub(crate) struct GraphRows(Vec<Counted>);

/// Never locked during a driver call: who makes a report must not wait for one.
static ROWS: Mutex<GraphRows> = Mutex::new(GraphRows(Vec::new()));
/// So that programs without graphs take no lock.
static IS_ANY: AtomicBool = AtomicBool::new(false);

/// Makes the start of a launch a node, if its stream is being captured and its site has nodes.
#[cold]
pub(crate) fn open(place: &Place, launch: u32) -> Opened {
    let Place { site, context, stream, .. } = *place;
    let capture = context.capture(stream);
    if matches!(capture, Ok(None)) || cuda::is_recording() {
        return Opened::Untimed;
    }
    let can = capture.is_ok() && context.origin().is_some();
    if !site.gets_nodes(can) {
        return Opened::Untimed;
    }
    let row = rows().find(place, launch);
    let opened = match capture {
        Ok(Some(capture)) if can => Node::open(place, &capture, row),
        Ok(_) => Err(Lost::Driver),
        Err(fault) => Err(fault.into()),
    };
    match opened {
        Ok(node) => Opened::Node(node),
        Err(reason) => {
            rows().write(row, Err(reason));
            Opened::Lost
        }
    }
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

/// Looks at every node. Answers whether that could be done: a thread that does so too, and does not come to
/// an end with it before the deadline, is stuck in a driver call.
pub(crate) fn look_at_all(deadline: Instant) -> bool {
    let Some(mut graphs) = locked_by(&GRAPHS, deadline) else { return false };
    let all = graphs.placed.len();
    graphs.look(all);
    true
}

/// All rows, in which nobody writes anything while the answer is held.
pub(crate) fn rows() -> MutexGuard<'static, GraphRows> {
    locked(&ROWS)
}

impl GraphRows {
    /// Every row, with the readings and losses that were counted of it.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Row, u64)> {
        self.0.iter().map(|counted| (counted.row, counted.timed))
    }

    fn find(&mut self, place: &Place, launch: u32) -> usize {
        let site = place.site;
        let row = site.graph_row(launch, place.context.place(), place.key);
        let known = self.0.iter().position(|counted| ptr::eq(counted.row, row));
        known.unwrap_or_else(|| {
            self.0.push(Counted { site, row, timed: 0 });
            self.0.len() - 1
        })
    }

    fn write(&mut self, row: usize, outcome: Result<Sample, Lost>) {
        let Some(counted) = self.0.get_mut(row) else { return };
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
}

impl Graphs {
    fn place(&mut self, pair: Pair, reads: Option<Reads>) {
        self.placed.push(Placed { pair, reads });
        IS_ANY.store(true, Relaxed);
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
