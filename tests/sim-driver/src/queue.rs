//! Queues of commands, and when each command runs.
//!
//! A command starts at the latest of: the end of the one before it, the time at which the device
//! can have heard of it, and what it waits for. If all of these are known, it is dated when it is
//! enqueued. Behind a held stream they are not: then the command waits in a backlog until the hold
//! is over, and so does everything that depends on it. How long a record takes depends on what is
//! behind it when the stream comes to it: one that has to wait for that is dated then.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::code::{Answer, Code};
use crate::handle::Handle;
use crate::kernels::{HoldArgs, Kernel};
use crate::model::Model;
use crate::trace;
use crate::work::Work;

/// A device time that is known not to come.
const NEVER: u64 = u64::MAX;
/// What an undated moment holds. No command ends at 0: submitting takes time.
const UNDATED: u64 = 0;

/// A device time, which may not be known yet.
#[derive(Clone, Debug)]
pub(crate) enum Moment {
    At(u64),
    Later(Arc<AtomicU64>),
}

impl Moment {
    fn later() -> Self {
        Self::Later(Arc::new(AtomicU64::new(UNDATED)))
    }

    pub fn get(&self) -> Option<u64> {
        match self {
            Self::At(ns) => Some(*ns),
            Self::Later(ns) => Some(ns.load(Ordering::Relaxed)).filter(|&ns| ns != UNDATED),
        }
    }

    fn date(&self, ns: u64) {
        if let Self::Later(later) = self {
            later.store(ns, Ordering::Relaxed);
        }
    }
}

/// A command that could not be dated when it was enqueued.
struct Command {
    enqueued: u64,
    after: Vec<Moment>,
    work: Work,
    done: Moment,
    graph: bool,
}

impl Command {
    /// Whether all that it waits for has a date.
    fn is_ready(&self) -> bool {
        self.after.iter().all(|moment| moment.get().is_some())
    }

    /// Whether what is behind it matters.
    fn is_plain_record(&self) -> bool {
        matches!(self.work, Work::Record { .. }) && !self.graph
    }
}

/// The kernel that holds a stream.
struct Hold {
    name: Arc<str>,
    args: HoldArgs,
    command: Command,
    start: u64,
    deadline: u64,
    /// The virtual time of the first call that saw its ticket released.
    seen: Option<u64>,
}

/// The commands of a stream that the host cannot be sure have ended.
pub(crate) struct Queue {
    /// Whether it never makes progress.
    pub hangs: bool,
    /// When the last dated command ends.
    end: u64,
    /// The ends of the dated commands that may still run, oldest first.
    running: VecDeque<u64>,
    hold: Option<Hold>,
    /// How many records it has come to.
    records: u64,
    backlog: VecDeque<Command>,
    /// When the last command ends.
    last: Moment,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            hangs: false,
            end: UNDATED,
            running: VecDeque::new(),
            hold: None,
            records: 0,
            backlog: VecDeque::new(),
            last: Moment::At(UNDATED),
        }
    }
}

impl Queue {
    /// Whether something in it has no date yet.
    pub fn is_stuck(&self) -> bool {
        self.hold.is_some() || !self.backlog.is_empty()
    }

    /// When the last command ends.
    pub fn last(&self) -> &Moment {
        &self.last
    }

    /// Drops what has no date yet. Whoever waits for it need not any more.
    pub fn abandon(&mut self, now: u64) {
        let held = self.hold.take().map(|hold| hold.command);
        held.into_iter().chain(self.backlog.drain(..)).for_each(|command| command.done.date(now));
        self.running.clear();
    }

    fn len(&self) -> usize {
        self.running.len() + self.backlog.len() + usize::from(self.hold.is_some())
    }
}

impl Model {
    /// Enqueues a command behind what the stream has.
    pub fn enqueue(&mut self, stream: Handle, work: Work, graph: bool) -> Answer<Moment> {
        self.enqueue_command(stream, work, None, graph)
    }

    /// Lets the stream wait for a moment.
    pub fn enqueue_after(&mut self, stream: Handle, moment: Moment, graph: bool) -> Answer {
        self.enqueue_command(stream, Work::Wait { event: None }, Some(moment), graph).map(drop)
    }

    fn enqueue_command(
        &mut self,
        stream: Handle,
        work: Work,
        after: Option<Moment>,
        graph: bool,
    ) -> Answer<Moment> {
        self.make_place(stream);
        let queue = &self.stream(stream).queue;
        if queue.hangs {
            return Ok(self.hang(stream));
        }
        let mut not_before = 0;
        let mut unknown = Vec::new();
        for moment in after.into_iter().chain(self.legacy_dependencies(stream)) {
            match moment.get() {
                Some(ns) => not_before = not_before.max(ns),
                None => unknown.push(moment),
            }
        }
        if not_before == NEVER {
            self.stream_mut(stream).queue.hangs = true;
            return Ok(self.hang(stream));
        }
        let is_next = queue.end.max(not_before) <= self.constants.heard_at(self.now);
        let is_record = matches!(&work, Work::Record { .. }) && !graph;
        let dated = unknown.is_empty() && !queue.is_stuck() && (is_next || !is_record);
        let is_hold = matches!(&work, Work::Kernel { kernel: Kernel::Hold(_), .. });
        let done = if dated && !is_hold { Moment::At(UNDATED) } else { Moment::later() };
        unknown.push(Moment::At(not_before));
        let command = Command { enqueued: self.now, after: unknown, work, done, graph };
        if dated {
            let last = self.run(stream, command)?;
            self.stream_mut(stream).queue.last = last.clone();
            if is_hold {
                // It may have been released before it was launched.
                self.settle();
            }
            return Ok(last);
        }
        let done = command.done.clone();
        let queue = &mut self.stream_mut(stream).queue;
        queue.last = done.clone();
        queue.backlog.push_back(command);
        self.mark_stuck(stream);
        Ok(done)
    }

    /// Takes a command that will never run: only its place in the queue is kept.
    fn hang(&mut self, stream: Handle) -> Moment {
        let depth = self.constants.queue_depth as usize;
        let queue = &mut self.stream_mut(stream).queue;
        if queue.len() <= depth {
            queue.running.push_back(NEVER);
        }
        queue.last = Moment::At(NEVER);
        Moment::At(NEVER)
    }

    fn mark_stuck(&mut self, stream: Handle) {
        if !self.stuck.contains(&stream) {
            self.stuck.push(stream);
        }
    }

    /// What the legacy stream's rule adds: it waits for all blocking streams of its context, and
    /// they wait for it.
    fn legacy_dependencies(&self, stream: Handle) -> Vec<Moment> {
        let own = self.stream(stream);
        let Some(context) = self.contexts.get(own.context).filter(|_| own.is_blocking()) else {
            return Vec::new();
        };
        if context.legacy != stream {
            return vec![self.stream(context.legacy).queue.last.clone()];
        }
        let all = context.streams.iter().map(|&other| self.stream(other));
        all.filter(|other| other.is_blocking())
            .map(|other| other.queue.last.clone())
            .chain([Moment::At(context.closed_end)])
            .collect()
    }

    /// Blocks the host, in virtual time, until the stream takes another command.
    fn make_place(&mut self, stream: Handle) {
        let mut noted = false;
        loop {
            let (now, depth) = (self.now, self.constants.queue_depth as usize);
            let queue = &mut self.stream_mut(stream).queue;
            while queue.running.front().is_some_and(|&end| end <= now) {
                queue.running.pop_front();
            }
            // The one that runs is not behind itself.
            if queue.len() <= depth {
                return;
            }
            let next = queue.running.front().copied().filter(|&end| end != NEVER);
            if !noted {
                noted = true;
                self.note("queue_full", format!("stream {stream:#x}"));
            }
            match next.or_else(|| self.next_moment()) {
                Some(ns) => {
                    self.now = self.now.max(ns);
                    self.settle();
                }
                // Nothing will ever move it. The driver would block for good; a test had better
                // see the note.
                None => return,
            }
        }
    }

    /// When the stream comes to its next command, whose moments are all known.
    fn start_of(&self, stream: Handle, command: &Command) -> u64 {
        let after = command.after.iter().filter_map(Moment::get).max().unwrap_or(0);
        self.constants.heard_at(command.enqueued).max(self.stream(stream).queue.end).max(after)
    }

    /// When the stream comes to a record that waits to know what is behind it by then.
    fn coming_to_record(&self, stream: Handle) -> Option<u64> {
        let backlog = &self.stream(stream).queue.backlog;
        let next = backlog.front().filter(|next| next.is_ready() && next.is_plain_record())?;
        let is_known = self.is_over || backlog.len() as u64 - 1 > self.constants.queued_commands;
        Some(self.start_of(stream, next)).filter(|&start| start > self.now && !is_known)
    }

    /// Dates a command whose moments are all known, and does its work. A hold is only begun.
    fn run(&mut self, stream: Handle, command: Command) -> Answer<Moment> {
        let c = &self.constants;
        let start = self.start_of(stream, &command);
        if let Work::Kernel { name, kernel: Kernel::Hold(args) } = &command.work {
            // It touches both words at once, whatever comes of it.
            self.memory.check(args.released, 8)?;
            self.memory.check(args.expired, 8)?;
            let hold = Hold {
                name: name.clone(),
                args: *args,
                start,
                deadline: start.saturating_add(args.limit_ns(c)),
                seen: None,
                command,
            };
            let done = hold.command.done.clone();
            self.stream_mut(stream).queue.hold = Some(hold);
            self.mark_stuck(stream);
            return Ok(done);
        }
        let outcome = self.perform(stream, &command.work);
        if let Err(code) = outcome {
            self.note("illegal_address", format!("stream {stream:#x}: {}", code.0));
        }
        let done = self.finish(stream, command, start, *outcome.as_ref().unwrap_or(&0));
        outcome.map(|_| done)
    }

    /// Dates the end of a command that the stream came to at `start`.
    fn finish(&mut self, stream: Handle, command: Command, start: u64, duration: u64) -> Moment {
        let c = &self.constants;
        let mut occupied = command.work.occupies_ns(duration, command.graph, c);
        if let Work::Record { .. } = command.work {
            let queue = &mut self.stream_mut(stream).queue;
            queue.records += 1;
            let is_of_second = queue.records.is_multiple_of(4);
            let behind = if command.graph { 0 } else { queue.backlog.len() as u64 };
            let c = &self.constants;
            let is_longer = is_of_second && start >= c.event_twin_at_ns;
            occupied += if is_longer { c.event_twin_ns } else { 0 };
            occupied += if behind > c.queued_commands { c.queued_extra_ns } else { 0 };
            occupied += if start >= c.event_drift_at_ns { c.event_drift_ns } else { 0 };
        }
        let end = self.constants.round_up(start + occupied);
        command.done.date(end);
        let queue = &mut self.stream_mut(stream).queue;
        queue.end = end;
        queue.running.push_back(end);
        if self.trace.wants_commands() {
            self.trace_command(stream, &command, start, end, duration);
        }
        match command.done {
            Moment::At(_) => Moment::At(end),
            later => later,
        }
    }

    /// Looks at everything that waits: which holds are released or over, and what that lets go on.
    pub fn settle(&mut self) {
        if self.stuck.is_empty() {
            return;
        }
        let mut moved = true;
        while moved {
            moved = false;
            for i in 0..self.stuck.len() {
                moved |= self.advance(self.stuck[i]);
            }
        }
        let stuck = std::mem::take(&mut self.stuck);
        let (still, free) =
            stuck.into_iter().partition(|&stream| self.stream(stream).queue.is_stuck());
        self.stuck = still;
        let free: Vec<Handle> = free;
        free.into_iter().for_each(|stream| self.remove_if_empty(stream));
    }

    /// Lets one stream go on as far as it can, and answers whether it did.
    fn advance(&mut self, stream: Handle) -> bool {
        let mut moved = false;
        loop {
            if self.stream(stream).queue.hold.is_some() {
                if !self.end_hold(stream) {
                    return moved;
                }
                moved = true;
            }
            let is_ready = self.stream(stream).queue.backlog.front().is_some_and(Command::is_ready);
            if !is_ready || self.coming_to_record(stream).is_some() {
                return moved;
            }
            let queue = &mut self.stream_mut(stream).queue;
            let command = queue.backlog.pop_front().expect("it was just there");
            moved = true;
            // The caller has long gone on; what went wrong is in the trace.
            let _ = self.run(stream, command);
        }
    }

    /// Dates what waits only to know what will be behind it: nothing will.
    pub fn run_out(&mut self) {
        self.is_over = true;
        let is_free = |stream: &Handle| self.stream(*stream).queue.hold.is_none();
        let free: Vec<Handle> = self.stuck.iter().copied().filter(is_free).collect();
        while free.iter().any(|&stream| self.advance(stream)) {}
    }

    /// Ends the stream's hold if its ticket was released, or else if its time is over.
    fn end_hold(&mut self, stream: Handle) -> bool {
        let now = self.now;
        let hold = self.stream(stream).queue.hold.as_ref().expect("the caller has looked");
        let released = self.memory.load(hold.args.released);
        let queue = &mut self.stream_mut(stream).queue;
        let hold = queue.hold.as_mut().expect("the caller has looked");
        if released.is_some_and(|released| released >= hold.args.ticket) {
            hold.seen.get_or_insert(now);
        }
        let released = hold.seen.map(|seen| seen.max(hold.start)).filter(|&at| at <= hold.deadline);
        let end = match released {
            Some(at) => at,
            None if now >= hold.deadline => hold.deadline,
            None => return false,
        };
        let hold = queue.hold.take().expect("the caller has looked");
        if released.is_none() {
            self.memory.store(hold.args.expired, hold.args.ticket);
        }
        let kind = if released.is_some() { "hold_released" } else { "hold_expired" };
        self.note(kind, format!("{} {}", hold.name, hold.args.ticket));
        let empty = self.constants.empty_ns;
        // A hold lasts for its wait and for what an empty kernel lasts.
        self.finish(stream, hold.command, hold.start, end - hold.start + empty);
        true
    }

    /// The earliest time at which a stream that is stuck goes on by itself.
    fn next_moment(&self) -> Option<u64> {
        let moment = |stream| match &self.stream(stream).queue.hold {
            Some(hold) => Some(hold.deadline),
            None => self.coming_to_record(stream),
        };
        self.stuck.iter().filter_map(|&stream| moment(stream)).min()
    }

    /// Lets virtual time pass until the host can see that `moment` has passed.
    pub fn wait_for(&mut self, moment: &Moment) -> Answer {
        loop {
            self.settle();
            match moment.get() {
                Some(NEVER) => return Err(Code::HUNG),
                Some(UNDATED) => return Ok(()),
                Some(ns) => {
                    self.now = self.now.max(ns + self.constants.visible_ns);
                    self.settle();
                    return Ok(());
                }
                None => self.now = self.now.max(self.next_moment().ok_or(Code::HUNG)?),
            }
        }
    }

    /// Lets virtual time pass until the stream is empty.
    pub fn wait_for_stream(&mut self, stream: Handle) -> Answer {
        let last = self.stream(stream).queue.last.clone();
        self.wait_for(&last)
    }

    /// What `cuStreamQuery` asks.
    pub fn stream_is_done(&self, stream: Handle) -> bool {
        let last = self.stream(stream).queue.last.get();
        last.is_some_and(|last| {
            last == UNDATED || last.saturating_add(self.constants.visible_ns) <= self.now
        })
    }

    fn trace_command(
        &mut self,
        stream: Handle,
        command: &Command,
        start: u64,
        end: u64,
        duration: u64,
    ) {
        let (kind, name) = command.work.words();
        let (event, record) = match command.work {
            Work::Record { event, record } => (Some(event), Some(record)),
            _ => (None, None),
        };
        self.trace.command(trace::Command {
            stream,
            context: self.stream(stream).context.id,
            kind: kind.to_owned(),
            name: name.to_owned(),
            enqueued_ns: command.enqueued,
            start_ns: start,
            end_ns: end,
            duration_ns: duration,
            event,
            record,
            graph: command.graph,
        });
    }
}
