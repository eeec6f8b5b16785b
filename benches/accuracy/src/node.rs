//! Launches as graph nodes, compared with the same launches in a stream.

use std::sync::Arc;

use cudarc::driver::CudaStream;
use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
use gpu_time::gpu_timed;

use crate::bound::Bound;
use crate::failure::Failure;
use crate::gpu::Gpu;
use crate::work::{Kind, Work};

/// The accepted difference between the median of a node and that of the same launch in a stream.
pub const BOUND: Bound = Bound::ns(300.0);

/// An annotated function whose launch is captured.
pub struct Node {
    /// The function's name.
    pub name: &'static str,
    /// The name of the case with the same work in a stream.
    pub beside: &'static str,
    kind: Kind,
    timed: fn(&Arc<CudaStream>, &mut Work) -> Result<(), Failure>,
}

/// All nodes. The corresponding stream cases use `sleep`, so neither waits for the host.
pub const NODES: &[Node] = &[
    Node {
        name: "node_spin_10us",
        beside: "spin_10us",
        kind: Kind::Spin(10_000),
        timed: node_spin_10us,
    },
    Node {
        name: "node_copy_15mib",
        beside: "copy_15mib",
        kind: Kind::Copy(15 << 20),
        timed: node_copy_15mib,
    },
];

#[gpu_timed(graph)]
fn node_spin_10us(stream: &Arc<CudaStream>, work: &mut Work) -> Result<(), Failure> {
    work.launch(stream)
}

#[gpu_timed(graph)]
fn node_copy_15mib(stream: &Arc<CudaStream>, work: &mut Work) -> Result<(), Failure> {
    work.launch(stream)
}

impl Node {
    /// Captures a launch and times `replays` replays, after an initial one that is not evaluated.
    ///
    /// # Errors
    /// A driver call fails.
    pub fn replay(&self, gpu: &Gpu, replays: u32) -> Result<(), Failure> {
        let (stream, mut work) = (&gpu.stream, Work::new(gpu, self.kind)?);
        // A graph's first node waits for the graph to start, so it is not the one under test.
        let mut first = Work::new(gpu, Kind::Spin(5_000))?;
        stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)?;
        let captured = first.launch(stream).and_then(|()| (self.timed)(stream, &mut work));
        let graph = stream.end_capture(CUgraphInstantiate_flags(0))?;
        captured?;
        let graph = graph.ok_or("nothing was captured")?;
        graph.launch()?;
        for _ in 0..replays {
            graph.launch()?;
            stream.synchronize()?;
            // Reads this replay's times, which the next one overwrites.
            drop(gpu_time::snapshot());
        }
        Ok(())
    }
}
