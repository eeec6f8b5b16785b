//! A benchmark: saxpy until its times are known to half a percent, as found, with an empty L2, and many
//! calls back to back.
//!
//! ```text
//! cargo run --release --example until_stable
//! ```
//!
//! On a machine without an NVIDIA GPU the same function runs on the CPU, and the host clock tells the
//! time. What has not settled within the time limit is named, and is no failure.

#![allow(unsafe_code)] // launching a kernel is unsafe in cudarc

mod gpu;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::{CudaFunction, CudaSlice, CudaStream, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use gpu_time::{Settle, Settled, gpu_timed, until_stable};
use gpu_time_kernels::workloads;

/// 4 MiB in each vector: both fit into the L2 of a large GPU many times.
const LEN: usize = 1 << 20;

/// The vectors, on a GPU or on the CPU.
enum Vectors {
    Gpu { stream: Arc<CudaStream>, saxpy: CudaFunction, x: CudaSlice<f32>, y: CudaSlice<f32> },
    Cpu { x: Vec<f32>, y: Vec<f32> },
}

/// The attribute says what is measured; whether the L2 is emptied, each run says for itself.
#[gpu_timed(stream = v.stream(), warmup = 10, sleep)]
fn saxpy(a: f32, v: &mut Vectors) -> Result<(), Box<dyn Error>> {
    v.saxpy(a)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut vectors = match on_gpu() {
        Ok(vectors) => vectors,
        Err(why) => {
            println!("no GPU here ({why}): running on the CPU, timed by the host clock");
            Vectors::Cpu { x: vec![1.0; LEN], y: vec![0.0; LEN] }
        }
    };
    let settle = Settle::default().timeout(Duration::from_secs(5));
    show("as found", &run(settle, &mut vectors));
    // On the CPU there is nothing to empty: this is a second run like the first.
    show("cold", &run(settle.cold(), &mut vectors));
    if let Some(stream) = vectors.stream().cloned() {
        let settled = run(settle.graph(stream.cu_stream(), 100), &mut vectors);
        show("back to back", &settled);
        // Next to no time passes between two calls, and none of it is the host's.
        settled.back_to_back().iter().for_each(|found| println!("  {found}"));
    }
    // The report comes by itself when the process ends.
    Ok(())
}

/// The closure of a benchmark has nobody to give an error to.
fn run(settle: Settle, vectors: &mut Vectors) -> Settled {
    until_stable(settle, || saxpy(2.0, vectors).expect("the launch is right"))
}

fn show(what: &str, settled: &Settled) {
    let elapsed = settled.elapsed().as_secs_f64();
    let verdict = if settled.is_settled() { "settled" } else { "not settled" };
    println!("{what}: {verdict} after {} calls in {elapsed:.1} s", settled.calls());
    settled.unmet().iter().for_each(|unmet| println!("  {unmet}"));
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
    /// The stream that the work goes to; none on the CPU.
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
                // SAFETY: the arguments are those of the kernel, and both vectors have `len` elements.
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
