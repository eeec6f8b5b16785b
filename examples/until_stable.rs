//! Shows benchmarking with a stopping rule: calls saxpy until its median is known to within half a
//! percent, first with the L2 as found, then with a cold L2, then in many calls back to back.
//!
//! ```text
//! cargo run --release --example until_stable
//! ```
//!
//! Without an NVIDIA GPU, saxpy runs on the CPU and is timed with the host clock. A series that
//! does not settle within the time limit is listed, which is not a failure.

#![allow(unsafe_code)] // launching a kernel is unsafe in cudarc

mod gpu;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::{CudaFunction, CudaSlice, CudaStream, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use gpu_time::{Settle, Settled, gpu_timed, until_stable};
use gpu_time_kernels::workloads;

/// 4 MiB per vector, so that both are much smaller than the L2 of a large GPU.
const LEN: usize = 1 << 20;

/// The vectors, on a GPU or on the CPU.
enum Vectors {
    Gpu { stream: Arc<CudaStream>, saxpy: CudaFunction, x: CudaSlice<f32>, y: CudaSlice<f32> },
    Cpu { x: Vec<f32>, y: Vec<f32> },
}

/// The attribute does not mention `cold`, because each run decides whether to flush the L2.
#[gpu_timed(stream = v.stream(), warmup = 10, sleep)]
fn saxpy(a: f32, v: &mut Vectors) -> Result<(), Box<dyn Error>> {
    v.saxpy(a)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut vectors = match on_gpu() {
        Ok(vectors) => vectors,
        Err(why) => {
            println!(
                "no GPU here ({why}): running on the CPU, timed with the host clock; `cold` and `sleep` \
                 have no effect"
            );
            Vectors::Cpu { x: vec![1.0; LEN], y: vec![0.0; LEN] }
        }
    };
    let settle = Settle::default().timeout(Duration::from_secs(5));
    show("as found", &run(settle, &mut vectors));
    // On the CPU nothing is flushed, so this run equals the first.
    show("cold", &run(settle.cold(), &mut vectors));
    if let Some(stream) = vectors.stream().cloned() {
        // SAFETY: the stream outlives the run.
        let raw = unsafe { gpu_time::raw_stream(stream.cu_stream()) };
        let settled = run(settle.graph(raw, 100), &mut vectors);
        show("back to back", &settled);
        // The calls are graph nodes, so the GPU hardly pauses between two of them and does not wait
        // for the host.
        settled.back_to_back.iter().for_each(|result| println!("  {result}"));
    }
    // The report is printed when the process exits.
    Ok(())
}

/// Runs the benchmark. Panics on a launch error, because the closure cannot return one.
fn run(settle: Settle, vectors: &mut Vectors) -> Settled {
    until_stable(settle, || saxpy(2.0, vectors).expect("launch saxpy"))
}

fn show(title: &str, settled: &Settled) {
    let elapsed = settled.elapsed.as_secs_f64();
    let verdict = if settled.is_settled() { "settled" } else { "not settled" };
    println!("{title}: {verdict} after {} calls in {elapsed:.1} s", settled.calls);
    settled.unmet.iter().for_each(|unmet| println!("  {unmet}"));
}

fn on_gpu() -> Result<Vectors, Box<dyn Error>> {
    let stream = gpu::find()?;
    let module = stream.context().load_module(Ptx::from_src(workloads::PTX))?;
    Ok(Vectors::Gpu {
        saxpy: module.load_function(workloads::SAXPY)?,
        x: stream.clone_htod(&vec![1.0; LEN])?,
        y: stream.alloc_zeros(LEN)?,
        stream,
    })
}

impl Vectors {
    /// Returns the stream to launch on, or `None` on the CPU.
    fn stream(&self) -> Option<&Arc<CudaStream>> {
        match self {
            Vectors::Gpu { stream, .. } => Some(stream),
            Vectors::Cpu { .. } => None,
        }
    }

    fn saxpy(&mut self, a: f32) -> Result<(), Box<dyn Error>> {
        match self {
            Vectors::Gpu { stream, saxpy, x, y } => {
                let len = LEN as u32;
                let mut launch = stream.launch_builder(saxpy);
                launch.arg(&len).arg(&a).arg(x).arg(y);
                // SAFETY: the arguments match the kernel, and both vectors have `len` elements.
                unsafe { launch.launch(LaunchConfig::for_num_elems(len)) }?;
            }
            Vectors::Cpu { x, y } => {
                for (y, x) in y.iter_mut().zip(x) {
                    *y = a.mul_add(*x, *y);
                }
            }
        }
        Ok(())
    }
}
