//! Graphs as what a launch runs: instantiated, updated, launched, destroyed; and the user objects that
//! they keep.

use std::mem;

use crate::capture::Exec;
use crate::code::{Answer, Code};
use crate::event::State;
use crate::handle::Handle;
use crate::model::{Callback, Model};
use crate::queue::Moment;
use crate::work::Work;

/// `CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH` and `…_DEVICE_LAUNCH`.
const FREE_ON_LAUNCH: u64 = 1;
const DEVICE_LAUNCH: u64 = 4;
/// `CU_USER_OBJECT_NO_DESTRUCTOR_SYNC`, without which none is made.
const NO_DESTRUCTOR_SYNC: u32 = 1;
/// `CU_GRAPH_USER_OBJECT_MOVE`: the caller's references become the graph's.
const MOVE: u32 = 1;

/// What a graph can be made to keep: a destructor that runs when nobody refers to it any more.
pub(crate) struct UserObject {
    destructor: Callback,
    references: u32,
}

/// `CUgraphExecUpdateResultInfo`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct UpdateResult {
    result: u32,
    error_node: Handle,
    error_from_node: Handle,
}

impl UpdateResult {
    const SUCCESS: Self = Self::new(0);
    const TOPOLOGY_CHANGED: Self = Self::new(2);
    const NODE_TYPE_CHANGED: Self = Self::new(3);

    const fn new(result: u32) -> Self {
        Self { result, error_node: 0, error_from_node: 0 }
    }

    pub fn is_success(self) -> bool {
        self.result == 0
    }
}

/// References of a graph that the program let go of while a launch of it went on.
pub(crate) struct Dying {
    launched: Moment,
    objects: Vec<Handle>,
}

impl Model {
    pub fn user_object_create(
        &mut self,
        destructor: Callback,
        references: u32,
        flags: u32,
    ) -> Answer<Handle> {
        if flags != NO_DESTRUCTOR_SYNC || references == 0 {
            return Err(Code::INVALID_VALUE);
        }
        Ok(self.objects.insert(UserObject { destructor, references }))
    }

    pub fn user_object_retain(&mut self, object: Handle, count: u32) -> Answer {
        let object = self.objects.get_mut(object).ok_or(Code::INVALID_VALUE)?;
        object.references += count;
        Ok(())
    }

    /// Takes references back. With the last, the destructor runs when the call that this is part of
    /// is over.
    pub fn user_object_release(&mut self, object: Handle, count: u32) -> Answer {
        let found = self.objects.get_mut(object).ok_or(Code::INVALID_VALUE)?;
        found.references = found.references.checked_sub(count).ok_or(Code::INVALID_VALUE)?;
        if found.references == 0 {
            let gone = self.objects.remove(object).expect("it was just there");
            self.callbacks.push(gone.destructor);
        }
        Ok(())
    }

    pub fn graph_retain(
        &mut self,
        graph: Handle,
        object: Handle,
        count: u32,
        flags: u32,
    ) -> Answer {
        if flags & !MOVE != 0 || count == 0 {
            return Err(Code::INVALID_VALUE);
        }
        self.graphs.get(graph).ok_or(Code::INVALID_VALUE)?;
        self.user_object_retain(object, if flags == MOVE { 0 } else { count })?;
        let graph = self.graphs.get_mut(graph).expect("it was just there");
        graph.objects.extend((0..count).map(|_| object));
        Ok(())
    }

    pub fn graph_release(&mut self, graph: Handle, object: Handle, count: u32) -> Answer {
        let graph = self.graphs.get_mut(graph).ok_or(Code::INVALID_VALUE)?;
        for _ in 0..count {
            let at = graph.objects.iter().position(|held| *held == object);
            graph.objects.swap_remove(at.ok_or(Code::INVALID_VALUE)?);
        }
        self.user_object_release(object, count)
    }

    pub fn graph_destroy(&mut self, graph: Handle) -> Answer {
        let graph = self.graphs.remove(graph).ok_or(Code::INVALID_VALUE)?;
        graph.objects.into_iter().try_for_each(|object| self.user_object_release(object, 1))
    }

    pub fn graph_instantiate(&mut self, graph: Handle, flags: u64) -> Answer<Handle> {
        let is_for_device = flags & DEVICE_LAUNCH != 0;
        // Launching from the device does not go with freeing on launch, nor with event records.
        if is_for_device && flags & FREE_ON_LAUNCH != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let graph = self.graphs.get(graph).ok_or(Code::INVALID_VALUE)?;
        if is_for_device && graph.nodes.iter().any(|work| matches!(work, Work::Record { .. })) {
            return Err(Code::NOT_SUPPORTED);
        }
        let launched = Moment::At(0);
        let (context, nodes) = (graph.context, graph.nodes.clone());
        let exec = Exec { context, nodes, objects: graph.objects.clone(), launched };
        self.context(exec.context)?;
        for object in exec.objects.clone() {
            self.user_object_retain(object, 1)?;
        }
        Ok(self.execs.insert(exec))
    }

    /// Takes over the nodes of a graph of the same shape, and its references.
    pub fn exec_update(&mut self, exec: Handle, graph: Handle) -> Answer<UpdateResult> {
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
        let exec = self.execs.get_mut(exec).expect("it was just there");
        exec.nodes = nodes;
        let objects = mem::replace(&mut exec.objects, objects);
        let launched = exec.launched.clone();
        self.dying.push(Dying { launched, objects });
        self.bury();
        Ok(UpdateResult::SUCCESS)
    }

    pub fn exec_destroy(&mut self, exec: Handle) -> Answer {
        let Exec { launched, objects, .. } = self.execs.remove(exec).ok_or(Code::INVALID_VALUE)?;
        self.dying.push(Dying { launched, objects });
        self.bury();
        Ok(())
    }

    /// Gives back the references of launches that have ended.
    pub fn bury(&mut self) {
        if self.dying.is_empty() {
            return;
        }
        let now = self.now;
        let (gone, dying) = mem::take(&mut self.dying)
            .into_iter()
            .partition(|dying| dying.launched.get().is_some_and(|at| at <= now));
        self.dying = dying;
        let gone: Vec<Dying> = gone;
        for object in gone.into_iter().flat_map(|gone| gone.objects) {
            self.user_object_release(object, 1).expect("the graph held a reference");
        }
    }

    pub fn graph_launch(&mut self, exec: Handle, stream: Handle) -> Answer {
        let found = self.execs.get(exec).ok_or(Code::INVALID_VALUE)?;
        let (context, nodes) = (found.context, found.nodes.clone());
        let stream = self.usable_stream(stream)?;
        if self.stream(stream).context != context {
            return Err(Code::INVALID_HANDLE);
        }
        if let Some(capture) = self.capture_of(stream)? {
            // As a child graph would run.
            return nodes
                .iter()
                .try_for_each(|work| self.capture_work(capture, stream, work.clone()));
        }
        for work in nodes.iter() {
            match work {
                Work::Record { event, .. } => self.record_now(*event, stream, true)?,
                Work::Wait { event: Some(event) } => {
                    let state = self.events.get(*event).map(|event| event.state.clone());
                    if let Some(State::Recorded { at, .. }) = state {
                        self.enqueue_after(stream, at, true)?;
                    }
                }
                work => drop(self.enqueue(stream, work.clone(), true)?),
            }
        }
        let launched = self.stream(stream).queue.last().clone();
        if let Some(exec) = self.execs.get_mut(exec) {
            exec.launched = launched;
        }
        Ok(())
    }
}
