//! Stream, capture, graph and user-object functions.

use super::args::Out;
use super::call::driver;
use crate::code::{Code, DriverResult};
use crate::handle::Handle;
use crate::model::Model;
use crate::object::capture::CaptureMode;
use crate::object::graph::UpdateResult;
use crate::object::stream::AccessPolicyWindow;
use crate::object::work::Callback;

type Destructor = unsafe extern "C" fn(*mut std::ffi::c_void);

/// The tag of node handles. A program can only count a graph's nodes, so a node handle does not
/// refer to an object.
const NODE: Handle = 0x58 << 56;

impl Model {
    fn stream_synchronize(&mut self, stream: Handle) -> DriverResult {
        let stream = self.usable_stream(stream)?;
        if let Some(capture) = self.stream(stream).capture {
            return Err(self.invalidate(capture, Code::CAPTURE_UNSUPPORTED));
        }
        self.wait_for_stream(stream)
    }

    fn stream_query(&mut self, stream: Handle) -> DriverResult {
        let stream = self.usable_stream(stream)?;
        if let Some(capture) = self.stream(stream).capture {
            return Err(self.invalidate(capture, Code::CAPTURE_UNSUPPORTED));
        }
        if self.stream_is_done(stream) { Ok(()) } else { Err(Code::NOT_READY) }
    }

    /// Implements both versions of `cuStreamGetCaptureInfo`. The next node's dependencies are
    /// counted but not listed.
    fn capture_info(
        &mut self,
        stream: Handle,
        status: Out<u32>,
        id: Out<u64>,
        graph: Out<Handle>,
        dependencies: Out<Handle>,
        dependency_count: Out<usize>,
    ) -> DriverResult {
        let (capture_status, capture_id, capture_graph) = self.capture_status(stream)?;
        status.put(capture_status as u32)?;
        id.put_if_wanted(capture_id);
        graph.put_if_wanted(capture_graph);
        dependencies.put_if_wanted(0);
        dependency_count.put_if_wanted(self.capture_dependencies(stream));
        Ok(())
    }

    fn graph_nodes(&self, graph: Handle, nodes: *const Handle, count: Out<usize>) -> DriverResult {
        let graph = self.graphs.get(graph).ok_or(Code::INVALID_VALUE)?;
        if nodes.is_null() {
            return count.put(graph.nodes.len());
        }
        let wanted = count.take()?;
        for i in 0..wanted {
            let node = if i < graph.nodes.len() { NODE | i as Handle } else { 0 };
            // SAFETY: the caller passes space for `wanted` handles.
            unsafe { nodes.cast_mut().add(i).write(node) };
        }
        count.put(wanted.min(graph.nodes.len()))
    }
}

driver! {
    fn cuStreamCreate(phStream: Out<Handle>, Flags: u32) [2_000, AfterInit] |m| {
        phStream.put(m.stream_create(Flags, 0)?)
    };
    fn cuStreamCreateWithPriority(
        phStream: Out<Handle>, flags: u32, priority: i32,
    ) [2_000, AfterInit] |m| phStream.put(m.stream_create(flags, priority)?);
    fn cuStreamDestroy_v2(hStream: Handle) [1_000, AfterInit] |m| m.stream_destroy(hStream);
    fn cuStreamSynchronize(hStream: Handle) [500, NotInCapture] |m| m.stream_synchronize(hStream);
    fn cuStreamQuery(hStream: Handle) [104, NotInCapture] |m| m.stream_query(hStream);
    fn cuStreamWaitEvent(hStream: Handle, hEvent: Handle, Flags: u32) [200, AfterInit] |m| {
        m.stream_wait_event(hStream, hEvent, Flags)
    };
    fn cuStreamSetAttribute(
        hStream: Handle, attr: i32, value: *const std::ffi::c_void,
    ) [200, AfterInit] |m| {
        let stream = m.find_stream(hStream)?;
        if attr != AccessPolicyWindow::ATTRIBUTE || value.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the caller passes a `CUstreamAttrValue`, which starts with this struct.
        let window = unsafe { value.cast::<AccessPolicyWindow>().read_unaligned() };
        m.stream_mut(stream).window = window;
        Ok(())
    };
    fn cuStreamGetAttribute(
        hStream: Handle, attr: i32, value_out: Out<AccessPolicyWindow>,
    ) [50, AfterInit] |m| {
        let stream = m.find_stream(hStream)?;
        if attr != AccessPolicyWindow::ATTRIBUTE {
            return Err(Code::INVALID_VALUE);
        }
        value_out.put(m.stream(stream).window)
    };
    fn cuStreamGetCtx(hStream: Handle, pctx: Out<Handle>) [13, AfterInit] |m| {
        let stream = m.find_stream(hStream)?;
        pctx.put(Model::context_handle(m.stream(stream).context))
    };
    fn cuStreamGetDevice(hStream: Handle, device: Out<i32>) [13, AfterInit] |m| {
        let stream = m.find_stream(hStream)?;
        device.put(m.context(m.stream(stream).context)?.device as i32)
    };
    fn cuStreamGetFlags(hStream: Handle, flags: Out<u32>) [13, AfterInit] |m| {
        let stream = m.find_stream(hStream)?;
        flags.put(m.stream(stream).flags)
    };
    fn cuStreamGetPriority(hStream: Handle, priority: Out<i32>) [13, AfterInit] |m| {
        let stream = m.find_stream(hStream)?;
        priority.put(m.stream(stream).priority)
    };
    fn cuStreamGetId(hStream: Handle, streamId: Out<u64>) [13, AfterInit] |m| {
        let stream = m.find_stream(hStream)?;
        streamId.put(m.stream(stream).id)
    };
    fn cuStreamIsCapturing(hStream: Handle, captureStatus: Out<u32>) [14, AfterInit] |m| {
        captureStatus.put(m.capture_status(hStream)?.0 as u32)
    };
    fn cuStreamGetCaptureInfo_v2(
        hStream: Handle, captureStatus_out: Out<u32>, id_out: Out<u64>, graph_out: Out<Handle>,
        dependencies_out: Out<Handle>, numDependencies_out: Out<usize>,
    ) [20, AfterInit] |m| {
        m.capture_info(
            hStream, captureStatus_out, id_out, graph_out, dependencies_out, numDependencies_out,
        )
    };
    fn cuStreamGetCaptureInfo_v3(
        hStream: Handle, captureStatus_out: Out<u32>, id_out: Out<u64>, graph_out: Out<Handle>,
        dependencies_out: Out<Handle>, edgeData_out: Out<Handle>, numDependencies_out: Out<usize>,
    ) [20, AfterInit] |m| {
        m.capture_info(
            hStream, captureStatus_out, id_out, graph_out, dependencies_out, numDependencies_out,
        )?;
        edgeData_out.put_if_wanted(0);
        Ok(())
    };
    fn cuStreamBeginCapture_v2(hStream: Handle, mode: u32) [1_000, AfterInit] |m| {
        m.capture_begin(hStream, CaptureMode::new(mode)?)
    };
    fn cuStreamEndCapture(hStream: Handle, phGraph: Out<Handle>) [1_000, AfterInit] |m| {
        phGraph.put(0)?;
        phGraph.put(m.capture_end(hStream)?)
    };
    fn cuThreadExchangeStreamCaptureMode(mode: Out<u32>) [8, AfterInit] |m| {
        let wanted = CaptureMode::new(mode.take()?)?;
        mode.put(std::mem::replace(&mut m.caller().capture_mode, wanted) as u32)
    };
    fn cuGraphInstantiateWithFlags(
        phGraphExec: Out<Handle>, hGraph: Handle, flags: u64,
    ) [50_000, AfterInit] |m| phGraphExec.put(m.graph_instantiate(hGraph, flags)?);
    fn cuGraphLaunch(hGraphExec: Handle, hStream: Handle) [5_000, AfterInit] |m| {
        m.graph_launch(hGraphExec, hStream)
    };
    fn cuGraphUpload(hGraphExec: Handle, hStream: Handle) [5_000, AfterInit] |m| {
        m.usable_stream(hStream)?;
        m.execs.get(hGraphExec).map(drop).ok_or(Code::INVALID_VALUE)
    };
    fn cuGraphDestroy(hGraph: Handle) [1_000, AfterInit] |m| {
        m.graph_destroy(hGraph)
    };
    fn cuGraphExecDestroy(hGraphExec: Handle) [1_000, AfterInit] |m| {
        m.exec_destroy(hGraphExec)
    };
    fn cuGraphExecUpdate_v2(
        hGraphExec: Handle, hGraph: Handle, resultInfo: Out<UpdateResult>,
    ) [20_000, AfterInit] |m| {
        let result = m.exec_update(hGraphExec, hGraph)?;
        resultInfo.put_if_wanted(result);
        if result.is_success() { Ok(()) } else { Err(Code::GRAPH_EXEC_UPDATE_FAILURE) }
    };
    fn cuUserObjectCreate(
        object_out: Out<Handle>, ptr: u64, destroy: Option<Destructor>, initialRefcount: u32,
        flags: u32,
    ) [200, AfterInit] |m| {
        let function = destroy.ok_or(Code::INVALID_VALUE)?;
        let destructor = Callback { function, data: ptr };
        object_out.put(m.user_object_create(destructor, initialRefcount, flags)?)
    };
    fn cuUserObjectRetain(object: Handle, count: u32) [100, AfterInit] |m| {
        m.user_object_retain(object, count)
    };
    fn cuUserObjectRelease(object: Handle, count: u32) [100, AfterInit] |m| {
        m.user_object_release(object, count)
    };
    fn cuGraphRetainUserObject(
        graph: Handle, object: Handle, count: u32, flags: u32,
    ) [100, AfterInit] |m| {
        m.graph_retain(graph, object, count, flags)
    };
    fn cuGraphReleaseUserObject(graph: Handle, object: Handle, count: u32) [100, AfterInit] |m| {
        m.graph_release(graph, object, count)
    };
    fn cuGraphGetNodes(
        hGraph: Handle, nodes: *const Handle, numNodes: Out<usize>,
    ) [100, AfterInit] |m| {
        m.graph_nodes(hGraph, nodes, numNodes)
    };
}
