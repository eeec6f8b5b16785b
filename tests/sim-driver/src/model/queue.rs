//! Command scheduling on streams, host waits, and holds. In the cases covered by `formula`, times
//! match its formulas to the nanosecond.
//!
//! A command starts at the latest of: the end of the preceding command, the time at which the
//! device can see it, and the moments for which it waits. If all of these are known when the
//! command is enqueued, its start and end are computed then. Behind a hold they are unknown, so the
//! command is put into a backlog until the hold ends, and so is every command that depends on it.
//! The duration of an event record depends on the number of commands behind it when the stream
//! reaches it, so a record that the stream has not reached is put into the backlog too.

use crate::code::{Code, DriverResult};
use crate::handle::Handle;
use crate::kernels::Kernel;
use crate::model::Model;
use crate::object::queue::{Hold, Moment, NEVER, QueuedCommand, UNKNOWN};
use crate::object::work::{GraphNode, Shape, Work};
use crate::observed::ObservedTimes;
use crate::observer;
use crate::trace;

impl Model {
    /// Enqueues a command on a stream, and returns its end.
    pub fn enqueue(
        &mut self,
        stream: Handle,
        work: Work,
        graph: Option<GraphNode>,
    ) -> DriverResult<Moment> {
        self.enqueue_command(stream, work, None, graph)
    }

    /// Makes the stream wait until `moment`.
    pub fn enqueue_after(
        &mut self,
        stream: Handle,
        moment: Moment,
        graph: Option<GraphNode>,
    ) -> DriverResult {
        self.enqueue_command(stream, Work::Wait { event: None }, Some(moment), graph).map(drop)
    }

    fn enqueue_command(
        &mut self,
        stream: Handle,
        work: Work,
        after: Option<Moment>,
        graph: Option<GraphNode>,
    ) -> DriverResult<Moment> {
        self.wait_for_queue_slot(stream);
        let observed = self.observe(stream, &work, graph);
        if observed != 0 {
            self.now += self.constants.recording_ns;
        }
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
        let is_next = queue.end.max(not_before) <= self.constants.visible_to_device(self.now);
        let is_record = matches!(&work, Work::Record { .. }) && graph.is_none();
        let is_known = unknown.is_empty() && !queue.is_waiting() && (is_next || !is_record);
        let is_hold = matches!(&work, Work::Kernel { kernel: Kernel::Hold(_), .. });
        let done = if is_known && !is_hold { Moment::Known(UNKNOWN) } else { Moment::pending() };
        unknown.push(Moment::Known(not_before));
        let (enqueued, correlation, after) = (self.now, self.correlation, unknown);
        let command = QueuedCommand { enqueued, after, work, done, graph, correlation, observed };
        if is_known {
            let last = self.run(stream, command)?;
            self.stream_mut(stream).queue.last = last.clone();
            if is_hold {
                // The ticket may have been released before the launch.
                self.advance_streams();
            }
            return Ok(last);
        }
        let done = command.done.clone();
        let queue = &mut self.stream_mut(stream).queue;
        queue.last = done.clone();
        queue.backlog.push_back(command);
        self.mark_waiting(stream);
        Ok(done)
    }

    /// Enqueues a command that will never run and only occupies a queue slot.
    fn hang(&mut self, stream: Handle) -> Moment {
        let depth = self.constants.queue_depth as usize;
        let queue = &mut self.stream_mut(stream).queue;
        if queue.len() <= depth {
            queue.running.push_back(NEVER);
        }
        queue.last = Moment::Known(NEVER);
        Moment::Known(NEVER)
    }

    fn mark_waiting(&mut self, stream: Handle) {
        if !self.waiting_streams.contains(&stream) {
            self.waiting_streams.push(stream);
        }
    }

    /// Returns the moments for which a command must wait because of the legacy stream's rule: the
    /// legacy stream waits for all blocking streams in its context, and they wait for it.
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
            .chain([Moment::Known(context.closed_end)])
            .collect()
    }

    /// Blocks the host, in virtual time, until the stream's queue has space for a command.
    fn wait_for_queue_slot(&mut self, stream: Handle) {
        let mut noted = false;
        loop {
            let (now, depth) = (self.now, self.constants.queue_depth as usize);
            let queue = &mut self.stream_mut(stream).queue;
            while queue.running.front().is_some_and(|&end| end <= now) {
                queue.running.pop_front();
            }
            // The depth does not include the running command.
            if queue.len() <= depth {
                return;
            }
            let next = queue.running.front().copied().filter(|&end| end != NEVER);
            if !noted {
                noted = true;
                self.note("queue_full", format!("stream {stream:#x}"));
            }
            match next.or_else(|| self.next_progress()) {
                Some(ns) => {
                    self.now = self.now.max(ns);
                    self.advance_streams();
                }
                // The stream will never make progress. The driver would block forever; here
                // the call returns, so that the test sees the note.
                None => return,
            }
        }
    }

    /// Returns the time at which the stream reaches its next command. All moments for which the
    /// command waits must be known.
    fn start_of(&self, stream: Handle, command: &QueuedCommand) -> u64 {
        let after = command.after.iter().filter_map(Moment::get).max().unwrap_or(0);
        self.constants
            .visible_to_device(command.enqueued)
            .max(self.stream(stream).queue.end)
            .max(after)
    }

    /// Returns the time at which the stream reaches a record at the head of its backlog, if that is
    /// in the future and the number of commands behind the record can still change its duration.
    fn undecided_record_start(&self, stream: Handle) -> Option<u64> {
        let backlog = &self.stream(stream).queue.backlog;
        let next = backlog.front().filter(|next| next.is_ready() && next.is_plain_record())?;
        let is_decided =
            self.is_exiting || backlog.len() as u64 - 1 > self.constants.queued_commands;
        Some(self.start_of(stream, next)).filter(|&start| start > self.now && !is_decided)
    }

    /// Executes a command for which all moments are known, and returns its end. A hold only begins
    /// here; `end_hold` ends it.
    fn run(&mut self, stream: Handle, command: QueuedCommand) -> DriverResult<Moment> {
        let c = &self.constants;
        let start = self.start_of(stream, &command);
        if let Work::Kernel { name, kernel: Kernel::Hold(args), .. } = &command.work {
            // The kernel accesses both words at its start, whether or not it expires.
            self.memory.check(args.released, 8)?;
            self.memory.check(args.expired, 8)?;
            let hold = Hold {
                name: name.clone(),
                args: *args,
                start,
                deadline: start.saturating_add(args.limit_ns(c)),
                released_at: None,
                command,
            };
            let done = hold.command.done.clone();
            self.stream_mut(stream).queue.hold = Some(hold);
            self.mark_waiting(stream);
            return Ok(done);
        }
        let outcome = self.perform(stream, &command.work);
        if let Err(code) = outcome {
            self.note("illegal_address", format!("stream {stream:#x}: {}", code.0));
        }
        let done = self.finish(stream, command, start, *outcome.as_ref().unwrap_or(&0));
        outcome.map(|_| done)
    }

    /// Sets the end of a command that the stream reached at `start`.
    fn finish(
        &mut self,
        stream: Handle,
        command: QueuedCommand,
        start: u64,
        duration: u64,
    ) -> Moment {
        let c = &self.constants;
        let mut occupied = command.work.occupies_ns(duration, command.graph.is_some(), c);
        if command.observed != 0 && matches!(command.work, Work::Kernel { .. }) {
            occupied += c.recorded_kernel_ns;
        }
        if let Work::Record { .. } = command.work {
            let queue = &mut self.stream_mut(stream).queue;
            queue.records += 1;
            let ends_second_pair = queue.records.is_multiple_of(4);
            let behind = if command.graph.is_some() { 0 } else { queue.backlog.len() as u64 };
            let c = &self.constants;
            let is_longer = ends_second_pair && start >= c.event_twin_at_ns;
            occupied += if is_longer { c.event_twin_ns } else { 0 };
            occupied += if behind > c.queued_commands { c.queued_extra_ns } else { 0 };
            occupied += if start >= c.event_drift_at_ns { c.event_drift_ns } else { 0 };
        }
        let end = self.constants.round_up(start + occupied);
        command.done.resolve(end);
        let visible_ns = end + self.constants.visible_ns;
        let end_ns = start + duration;
        observer::ended(command.observed, ObservedTimes { start_ns: start, end_ns, visible_ns });
        let queue = &mut self.stream_mut(stream).queue;
        queue.end = end;
        queue.running.push_back(end);
        if self.trace.wants_commands() {
            self.trace_command(stream, &command, start, end, duration);
        }
        match command.done {
            Moment::Known(_) => Moment::Known(end),
            pending => pending,
        }
    }

    /// Ends holds that have been released or have expired, and executes every command that can now
    /// run.
    pub fn advance_streams(&mut self) {
        if self.waiting_streams.is_empty() {
            return;
        }
        let mut moved = true;
        while moved {
            moved = false;
            for i in 0..self.waiting_streams.len() {
                moved |= self.advance_stream(self.waiting_streams[i]);
            }
        }
        let waiting = std::mem::take(&mut self.waiting_streams);
        let (still, free) =
            waiting.into_iter().partition(|&stream| self.stream(stream).queue.is_waiting());
        self.waiting_streams = still;
        let free: Vec<Handle> = free;
        free.into_iter().for_each(|stream| self.remove_if_empty(stream));
    }

    /// Executes as much of one stream as possible. Returns `true` if anything was executed.
    fn advance_stream(&mut self, stream: Handle) -> bool {
        let mut moved = false;
        loop {
            if self.stream(stream).queue.hold.is_some() {
                if !self.end_hold(stream) {
                    return moved;
                }
                moved = true;
            }
            let is_ready =
                self.stream(stream).queue.backlog.front().is_some_and(QueuedCommand::is_ready);
            if !is_ready || self.undecided_record_start(stream).is_some() {
                return moved;
            }
            let queue = &mut self.stream_mut(stream).queue;
            let command = queue.backlog.pop_front().expect("the backlog is not empty");
            moved = true;
            // The enqueueing call has already returned; the trace has a note of any error.
            let _ = self.run(stream, command);
        }
    }

    /// Executes records whose duration was undecided: at process exit, no more commands are enqueued
    /// behind them.
    pub fn finish_records(&mut self) {
        self.is_exiting = true;
        let is_free = |stream: &Handle| self.stream(*stream).queue.hold.is_none();
        let free: Vec<Handle> = self.waiting_streams.iter().copied().filter(is_free).collect();
        while free.iter().any(|&stream| self.advance_stream(stream)) {}
    }

    /// Ends the stream's hold if its ticket has been released or its deadline has passed. Returns
    /// `true` if it ended. The stream must have a hold.
    fn end_hold(&mut self, stream: Handle) -> bool {
        let now = self.now;
        let hold = self.stream(stream).queue.hold.as_ref().expect("the stream has a hold");
        let released = self.memory.load(hold.args.released);
        let queue = &mut self.stream_mut(stream).queue;
        let hold = queue.hold.as_mut().expect("the stream has a hold");
        if released.is_some_and(|released| released >= hold.args.ticket) {
            hold.released_at.get_or_insert(now);
        }
        let released =
            hold.released_at.map(|at| at.max(hold.start)).filter(|&at| at <= hold.deadline);
        let end = match released {
            Some(at) => at,
            None if now >= hold.deadline => hold.deadline,
            None => return false,
        };
        let hold = queue.hold.take().expect("the stream has a hold");
        if released.is_none() {
            self.memory.store(hold.args.expired, hold.args.ticket);
        }
        let kind = if released.is_some() { "hold_released" } else { "hold_expired" };
        self.note(kind, format!("{} {}", hold.name, hold.args.ticket));
        let empty = self.constants.empty_ns;
        // A hold takes as long as its wait plus the length of an empty kernel.
        self.finish(stream, hold.command, hold.start, end - hold.start + empty);
        true
    }

    /// Returns the earliest time at which a waiting stream can progress without a driver call.
    fn next_progress(&self) -> Option<u64> {
        let moment = |stream| match &self.stream(stream).queue.hold {
            Some(hold) => Some(hold.deadline),
            None => self.undecided_record_start(stream),
        };
        self.waiting_streams.iter().filter_map(|&stream| moment(stream)).min()
    }

    /// Advances virtual time until the host can see that `moment` has passed.
    pub fn wait_for(&mut self, moment: &Moment) -> DriverResult {
        loop {
            self.advance_streams();
            match moment.get() {
                Some(NEVER) => return Err(Code::HUNG),
                Some(UNKNOWN) => return Ok(()),
                Some(ns) => {
                    self.now = self.now.max(ns + self.constants.visible_ns);
                    self.advance_streams();
                    return Ok(());
                }
                None => self.now = self.now.max(self.next_progress().ok_or(Code::HUNG)?),
            }
        }
    }

    /// Advances virtual time until the host can see that the stream is empty.
    pub fn wait_for_stream(&mut self, stream: Handle) -> DriverResult {
        let last = self.stream(stream).queue.last.clone();
        self.wait_for(&last)
    }

    /// Returns `true` if the host can see that the stream is empty.
    pub fn stream_is_done(&self, stream: Handle) -> bool {
        let last = self.stream(stream).queue.last.get();
        last.is_some_and(|last| {
            last == UNKNOWN || last.saturating_add(self.constants.visible_ns) <= self.now
        })
    }

    fn trace_command(
        &mut self,
        stream: Handle,
        command: &QueuedCommand,
        start: u64,
        end: u64,
        duration: u64,
    ) {
        let (kind, name) = command.work.trace_label();
        let Shape { grid, block, .. } = match command.work {
            Work::Kernel { shape, .. } => shape,
            _ => Shape::default(),
        };
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
            graph: command.graph.is_some(),
            graph_node: command.graph.map_or(0, |graph| graph.node),
            correlation: command.correlation,
            stream_id: self.stream(stream).id,
            device: self.device_of(stream),
            grid,
            block,
            recorded: command.observed != 0,
        });
    }
}
