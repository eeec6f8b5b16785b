//! A stream's queue: commands that may still run, and device times that may still be unknown.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::kernels::HoldArgs;
use crate::object::work::{GraphNode, Work};
use crate::observer;

/// A device time that never comes.
pub(crate) const NEVER: u64 = u64::MAX;
/// Marks a device time as unknown. No command ends at 0, because submitting takes time.
pub(crate) const UNKNOWN: u64 = 0;

/// A device time, which may still be unknown.
#[derive(Clone, Debug)]
pub(crate) enum Moment {
    Known(u64),
    /// Filled in once the corresponding command has an end time.
    Pending(Arc<AtomicU64>),
}

impl Moment {
    pub fn pending() -> Self {
        Self::Pending(Arc::new(AtomicU64::new(UNKNOWN)))
    }

    pub fn get(&self) -> Option<u64> {
        match self {
            Self::Known(ns) => Some(*ns),
            Self::Pending(ns) => Some(ns.load(Ordering::Relaxed)).filter(|&ns| ns != UNKNOWN),
        }
    }

    pub fn resolve(&self, ns: u64) {
        if let Self::Pending(pending) = self {
            pending.store(ns, Ordering::Relaxed);
        }
    }
}

/// A command in a stream's queue.
pub(crate) struct QueuedCommand {
    pub enqueued: u64,
    /// The moments for which the command waits.
    pub after: Vec<Moment>,
    pub work: Work,
    /// The end of the command.
    pub done: Moment,
    /// The graph node that the command executes, if any.
    pub graph: Option<GraphNode>,
    /// Correlation number of the call that enqueued the command.
    pub correlation: u32,
    /// The number under which the observer wants the command's times, or 0.
    pub observed: u64,
}

impl QueuedCommand {
    /// Returns `true` if every moment for which the command waits is known.
    pub fn is_ready(&self) -> bool {
        self.after.iter().all(|moment| moment.get().is_some())
    }

    /// Returns `true` for an event record outside a graph, whose duration depends on the number of
    /// commands behind it.
    pub fn is_plain_record(&self) -> bool {
        matches!(self.work, Work::Record { .. }) && self.graph.is_none()
    }
}

/// The hold kernel at the head of a stream.
pub(crate) struct Hold {
    pub name: Arc<str>,
    pub args: HoldArgs,
    pub command: QueuedCommand,
    pub start: u64,
    pub deadline: u64,
    /// Virtual time of the first driver call that saw the ticket released.
    pub released_at: Option<u64>,
}

/// The stream's commands that may not have ended yet.
pub(crate) struct Queue {
    /// The stream never makes progress.
    pub hangs: bool,
    /// End of the last command with a known end.
    pub end: u64,
    /// Known end times of commands that may still be running, oldest first.
    pub running: VecDeque<u64>,
    pub hold: Option<Hold>,
    /// Number of event records executed so far.
    pub records: u64,
    /// Commands whose times are still unknown.
    pub backlog: VecDeque<QueuedCommand>,
    /// End of the last command.
    pub last: Moment,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            hangs: false,
            end: UNKNOWN,
            running: VecDeque::new(),
            hold: None,
            records: 0,
            backlog: VecDeque::new(),
            last: Moment::Known(UNKNOWN),
        }
    }
}

impl Queue {
    /// Returns `true` if any command in the queue has no end time yet.
    pub fn is_waiting(&self) -> bool {
        self.hold.is_some() || !self.backlog.is_empty()
    }

    /// Drops commands without an end time, and ends every wait for them at `now`.
    pub fn abandon(&mut self, now: u64) {
        let held = self.hold.take().map(|hold| hold.command);
        held.into_iter().chain(self.backlog.drain(..)).for_each(|command| {
            command.done.resolve(now);
            observer::abandoned(command.observed);
        });
        self.running.clear();
    }

    pub fn len(&self) -> usize {
        self.running.len() + self.backlog.len() + usize::from(self.hold.is_some())
    }
}
