//! Shows timing inside CUDA graphs: one small kernel, first in a stream, then as a node in a graph
//! that contains it ten times.
//!
//! ```text
//! cargo run --release --example graph_replay
//! ```
//!
//! Needs an NVIDIA GPU.

#![allow(unsafe_code)] // launching a kernel is unsafe in cudarc

mod gpu;

use std::error::Error;
use std::sync::Arc;

use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
use cudarc::driver::{CudaFunction, CudaSlice, CudaStream, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use gpu_time::gpu_timed;
use gpu_time_kernels::workloads;

const LEN: usize = 1 << 16;
const NODES: usize = 10;
const REPLAYS: usize = 200;
const CALLS: usize = 200;

struct Vectors {
    saxpy: CudaFunction,
    x: CudaSlice<f32>,
    y: CudaSlice<f32>,
}

/// Outside a capture, each call is timed. A captured call becomes a kernel node between two event
/// records. A replay is timed if its events are read before the next replay.
#[gpu_timed(graph, sleep)]
fn saxpy(stream: &Arc<CudaStream>, v: &mut Vectors) -> Result<(), Box<dyn Error>> {
    let len = LEN as u32;
    let mut launch = stream.launch_builder(&v.saxpy);
    launch.arg(&len).arg(&1.0f32).arg(&v.x).arg(&mut v.y);
    // SAFETY: the arguments match the kernel, and both vectors have `len` elements.
    unsafe { launch.launch(LaunchConfig::for_num_elems(len)) }?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let Some(stream) = gpu::find_or_explain() else { return Ok(()) };
    let module = stream.context().load_module(Ptx::from_src(workloads::PTX))?;
    let mut vectors = Vectors {
        saxpy: module.load_function(workloads::SAXPY)?,
        x: stream.clone_htod(&vec![1.0; LEN])?,
        y: stream.alloc_zeros(LEN)?,
    };
    for _ in 0..CALLS {
        saxpy(&stream, &mut vectors)?;
    }
    stream.synchronize()?;

    stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)?;
    for _ in 0..NODES {
        saxpy(&stream, &mut vectors)?;
    }
    let graph = stream.end_capture(CUgraphInstantiate_flags(0))?.ok_or("the graph is empty")?;
    for _ in 0..REPLAYS {
        graph.launch()?;
        stream.synchronize()?;
        // Reads this replay's events. Otherwise, the report at exit would read only the last
        // replay.
        gpu_time::snapshot();
    }

    let y = stream.clone_dtoh(&vectors.y)?;
    stream.synchronize()?;
    let expected = (CALLS + REPLAYS * NODES) as f32;
    assert!(y.iter().all(|&y| y == expected), "saxpy computed {:?}…, not {expected}", &y[..4]);
    print_medians();
    Ok(())
}

fn print_medians() {
    let snapshot = gpu_time::snapshot();
    let launches = snapshot.site("graph_replay::saxpy").map_or(&[][..], |site| &site.series);
    println!("one saxpy on {LEN} elements, medians in µs (net: p5 to p95):");
    for launch in launches.iter().filter(|series| series.launch.is_some()) {
        let place = if launch.graph { "in a graph" } else { "in a stream" };
        let Some((raw, net)) = launch.raw_ns.as_ref().zip(launch.net_ns.as_ref()) else { continue };
        let [raw, net, low, high] = [raw.median, net.median, net.p5, net.p95].map(|ns| ns / 1e3);
        let samples = launch.histogram.count();
        println!(
            "  {place:11}  raw {raw:.2}  net {net:.2} ({low:.2} to {high:.2})  {samples} samples"
        );
    }
}
