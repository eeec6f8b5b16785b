//! Graphs: instantiation, update, launch and destruction, and the user objects kept alive by
//! graphs. Nodes run in capture order on one stream. Graphs can only be created by capture.

use std::mem;

use crate::code::{Code, DriverResult};
use crate::handle::Handle;
use crate::model::Model;
use crate::object::event::EventState;
use crate::object::graph::{GraphExec, PendingRelease, UpdateResult, UserObject};
use crate::object::queue::Moment;
use crate::object::work::{Callback, GraphNode, Work};

/// `CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH`.
const FREE_ON_LAUNCH: u64 = 1;
/// `CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH`.
const DEVICE_LAUNCH: u64 = 4;
/// `CU_USER_OBJECT_NO_DESTRUCTOR_SYNC`, which the driver requires.
const NO_DESTRUCTOR_SYNC: u32 = 1;
/// `CU_GRAPH_USER_OBJECT_MOVE`: transfers the caller's references to the graph.
const MOVE: u32 = 1;

impl Model {
    pub fn user_object_create(
        &mut self,
        destructor: Callback,
        references: u32,
        flags: u32,
    ) -> DriverResult<Handle> {
        if flags != NO_DESTRUCTOR_SYNC || references == 0 {
            return Err(Code::INVALID_VALUE);
        }
        Ok(self.objects.insert(UserObject { destructor, references }))
    }

    pub fn user_object_retain(&mut self, object: Handle, count: u32) -> DriverResult {
        let object = self.objects.get_mut(object).ok_or(Code::INVALID_VALUE)?;
        object.references += count;
        Ok(())
    }

    /// Releases references. If none are left, the object's destructor runs at the end of the
    /// current driver call.
    pub fn user_object_release(&mut self, object: Handle, count: u32) -> DriverResult {
        let found = self.objects.get_mut(object).ok_or(Code::INVALID_VALUE)?;
        found.references = found.references.checked_sub(count).ok_or(Code::INVALID_VALUE)?;
        if found.references == 0 {
            let object = self.objects.remove(object).expect("the object was just found");
            self.callbacks.push(object.destructor);
        }
        Ok(())
    }

    pub fn graph_retain(
        &mut self,
        graph: Handle,
        object: Handle,
        count: u32,
        flags: u32,
    ) -> DriverResult {
        if flags & !MOVE != 0 || count == 0 {
            return Err(Code::INVALID_VALUE);
        }
        self.graphs.get(graph).ok_or(Code::INVALID_VALUE)?;
        self.user_object_retain(object, if flags == MOVE { 0 } else { count })?;
        let graph = self.graphs.get_mut(graph).expect("the graph was just found");
        graph.objects.extend((0..count).map(|_| object));
        Ok(())
    }

    pub fn graph_release(&mut self, graph: Handle, object: Handle, count: u32) -> DriverResult {
        let graph = self.graphs.get_mut(graph).ok_or(Code::INVALID_VALUE)?;
        for _ in 0..count {
            let at = graph.objects.iter().position(|held| *held == object);
            graph.objects.swap_remove(at.ok_or(Code::INVALID_VALUE)?);
        }
        self.user_object_release(object, count)
    }

    pub fn graph_destroy(&mut self, graph: Handle) -> DriverResult {
        let graph = self.graphs.remove(graph).ok_or(Code::INVALID_VALUE)?;
        graph.objects.into_iter().try_for_each(|object| self.user_object_release(object, 1))
    }

    pub fn graph_instantiate(&mut self, graph: Handle, flags: u64) -> DriverResult<Handle> {
        let is_for_device = flags & DEVICE_LAUNCH != 0;
        // Graphs for device-side launches allow neither freeing on launch nor event records.
        if is_for_device && flags & FREE_ON_LAUNCH != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let graph = self.graphs.get(graph).ok_or(Code::INVALID_VALUE)?;
        if is_for_device && graph.nodes.iter().any(|work| matches!(work, Work::Record { .. })) {
            return Err(Code::NOT_SUPPORTED);
        }
        self.counters.execs += 1;
        let exec = GraphExec {
            id: self.counters.execs,
            first_node: self.counters.nodes + 1,
            context: graph.context,
            nodes: graph.nodes.clone(),
            objects: graph.objects.clone(),
            launch_end: Moment::Known(0),
        };
        self.context(exec.context)?;
        self.counters.nodes += exec.nodes.len() as u64;
        for object in exec.objects.clone() {
            self.user_object_retain(object, 1)?;
        }
        Ok(self.execs.insert(exec))
    }

    /// Replaces the nodes and references of an executable graph with those of a graph that has the
    /// same shape.
    pub fn exec_update(&mut self, exec: Handle, graph: Handle) -> DriverResult<UpdateResult> {
        let graph = self.graphs.get(graph).ok_or(Code::INVALID_VALUE)?;
        let old = self.execs.get(exec).ok_or(Code::INVALID_VALUE)?;
        if old.nodes.len() != graph.nodes.len() {
            return Ok(UpdateResult::TOPOLOGY_CHANGED);
        }
        let kinds =
            |(one, other): (&Work, &Work)| mem::discriminant(one) == mem::discriminant(other);
        if !old.nodes.iter().zip(graph.nodes.iter()).all(kinds) {
            return Ok(UpdateResult::NODE_TYPE_CHANGED);
        }
        let (nodes, objects) = (graph.nodes.clone(), graph.objects.clone());
        for &object in &objects {
            self.user_object_retain(object, 1)?;
        }
        let exec = self.execs.get_mut(exec).expect("the executable graph was just found");
        exec.nodes = nodes;
        let objects = mem::replace(&mut exec.objects, objects);
        let launch_end = exec.launch_end.clone();
        self.pending_releases.push(PendingRelease { launch_end, objects });
        self.release_after_launches();
        Ok(UpdateResult::SUCCESS)
    }

    pub fn exec_destroy(&mut self, exec: Handle) -> DriverResult {
        let GraphExec { launch_end, objects, .. } =
            self.execs.remove(exec).ok_or(Code::INVALID_VALUE)?;
        self.pending_releases.push(PendingRelease { launch_end, objects });
        self.release_after_launches();
        Ok(())
    }

    /// Releases the references that were kept only until a launch ended, if it has ended.
    pub fn release_after_launches(&mut self) {
        if self.pending_releases.is_empty() {
            return;
        }
        let now = self.now;
        let (due, pending): (Vec<_>, Vec<_>) = mem::take(&mut self.pending_releases)
            .into_iter()
            .partition(|release| release.launch_end.get().is_some_and(|at| at <= now));
        self.pending_releases = pending;
        for object in due.into_iter().flat_map(|release| release.objects) {
            self.user_object_release(object, 1).expect("the graph held a reference");
        }
    }

    pub fn graph_launch(&mut self, exec: Handle, stream: Handle) -> DriverResult {
        let found = self.execs.get(exec).ok_or(Code::INVALID_VALUE)?;
        let (context, nodes) = (found.context, found.nodes.clone());
        let (id, first_node) = (found.id, found.first_node);
        let stream = self.usable_stream(stream)?;
        if self.stream(stream).context != context {
            return Err(Code::INVALID_HANDLE);
        }
        if let Some(capture) = self.capture_of(stream)? {
            // The launch becomes part of the captured graph, like a child graph.
            return nodes
                .iter()
                .try_for_each(|work| self.capture_work(capture, stream, work.clone()));
        }
        for (work, node) in nodes.iter().zip(first_node..) {
            let node = Some(GraphNode { graph: id, node });
            match work {
                Work::Record { event, .. } => self.record_now(*event, stream, node)?,
                Work::Wait { event: Some(event) } => {
                    let state = self.events.get(*event).map(|event| event.state.clone());
                    if let Some(EventState::Recorded { at, .. }) = state {
                        self.enqueue_after(stream, at, node)?;
                    }
                }
                work => drop(self.enqueue(stream, work.clone(), node)?),
            }
        }
        let launch_end = self.stream(stream).queue.last.clone();
        if let Some(exec) = self.execs.get_mut(exec) {
            exec.launch_end = launch_end;
        }
        Ok(())
    }
}
