//! Shows the attribute and the report: times saxpy with a hot and with a cold L2 and checks the
//! result.
//!
//! ```text
//! cargo run --release --example quickstart
//! ```
//!
//! With an NVIDIA GPU, saxpy runs on it and is timed with CUDA events. On any other machine it only shows that an
//! annotated program runs there: on the CPU, timed with the host clock. `gpu-time demo` then shows the report of a GPU.

#![allow(unsafe_code)] // launching a kernel is unsafe in cudarc

use std::error::Error;
use std::sync::Arc;

use cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, LaunchConfig, PushKernelArg, sys,
};
use cudarc::nvrtc::Ptx;
use gpu_time::gpu_timed;
use gpu_time_kernels::workloads;

/// 16 MiB per vector, so that both together fit into the L2 of a large GPU.
const LEN: usize = 4 << 20;
const CALLS: usize = 110;

/// The vectors, on a GPU or on the CPU.
enum Vectors {
    Gpu { stream: Arc<CudaStream>, saxpy: CudaFunction, x: CudaSlice<f32>, y: CudaSlice<f32> },
    Cpu { x: Vec<f32>, y: Vec<f32> },
}

/// Times 100 calls after ten warm-up calls. Each finds the L2 as the previous call left it. `sleep`
/// holds the stream until the call has been enqueued, so that the GPU does not wait for the CPU.
#[gpu_timed(stream = v.stream(), warmup = 10, sleep)]
fn saxpy_hot(a: f32, v: &mut Vectors) -> Result<(), Box<dyn Error>> {
    v.saxpy(a)
}

/// The same with the L2 flushed before every call.
#[gpu_timed(stream = v.stream(), warmup = 10, cold, sleep)]
fn saxpy_cold(a: f32, v: &mut Vectors) -> Result<(), Box<dyn Error>> {
    v.saxpy(a)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut vectors = match on_gpu() {
        Ok(vectors) => vectors,
        Err(why) => {
            println!(
                "no GPU here ({why}): saxpy runs on the CPU, and its row has the host's time. See a GPU's report with \
                 `cargo run --release -p gpu-time-cli -- demo`"
            );
            Vectors::Cpu { x: vec![1.0; LEN], y: vec![0.0; LEN] }
        }
    };
    for _ in 0..CALLS {
        saxpy_hot(2.0, &mut vectors)?;
    }
    let mut calls = CALLS;
    // A CPU has no L2 of a GPU to flush.
    if vectors.stream().is_some() {
        for _ in 0..CALLS {
            saxpy_cold(2.0, &mut vectors)?;
        }
        calls += CALLS;
    }
    let y = vectors.y()?;
    let expected = 2.0 * calls as f32;
    assert!(y.iter().all(|&y| y == expected), "saxpy computed {:?}…, not {expected}", &y[..4]);
    println!("saxpy ran {calls} times on {LEN} elements, all results are correct");
    // The report is printed when the process exits.
    Ok(())
}

fn on_gpu() -> Result<Vectors, Box<dyn Error>> {
    // SAFETY: only looks for the driver library, without which cudarc would panic.
    if !unsafe { sys::is_culib_present() } {
        return Err("no CUDA driver".into());
    }
    let context = CudaContext::new(0)?;
    let stream = context.new_stream()?;
    // With a single stream, cudarc need not order accesses from several.
    // SAFETY: all slices below are used only on this stream.
    unsafe { context.disable_event_tracking() };
    let module = context.load_module(Ptx::from_src(workloads::PTX))?;
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

    fn y(&self) -> Result<Vec<f32>, Box<dyn Error>> {
        Ok(match self {
            Vectors::Gpu { stream, y, .. } => stream.clone_dtoh(y)?,
            Vectors::Cpu { y, .. } => y.clone(),
        })
    }
}
