//! Shows what calls really run: times functions without a stream by the kernels that they enqueue.
//!
//! ```text
//! cargo run --release --features kernels --example kernels
//! ```
//!
//! `train` calls `step` eight times, each of which copies a vector and launches three kernels. The
//! report lists the kernels of each function. It needs an NVIDIA GPU and `libcupti`, which comes
//! with a CUDA toolkit. Without them the functions are timed with the host clock, and the report
//! says what is missing.

#![allow(unsafe_code)] // launching a kernel is unsafe in cudarc

use std::error::Error;
use std::sync::Arc;

use cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, LaunchConfig, PushKernelArg, sys,
};
use cudarc::nvrtc::Ptx;
use gpu_time::gpu_timed;
use gpu_time_kernels::workloads;

const LEN: usize = 1 << 20;
const CALLS: usize = 50;

struct Model {
    stream: Arc<CudaStream>,
    saxpy: CudaFunction,
    x: CudaSlice<f32>,
    y: CudaSlice<f32>,
}

#[gpu_timed]
fn train(model: &mut Model) -> Result<(), Box<dyn Error>> {
    for _ in 0..8 {
        step(model)?;
    }
    model.stream.memset_zeros(&mut model.y)?;
    Ok(())
}

#[gpu_timed]
fn step(model: &mut Model) -> Result<(), Box<dyn Error>> {
    model.stream.memcpy_htod(&vec![1.0; LEN], &mut model.x)?;
    for _ in 0..3 {
        model.saxpy(2.0)?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    match on_gpu() {
        Ok(mut model) => {
            for _ in 0..CALLS {
                train(&mut model)?;
            }
            model.stream.synchronize()?;
        }
        Err(why) => println!("no GPU here ({why})"),
    }
    // The report is printed when the process exits.
    Ok(())
}

fn on_gpu() -> Result<Model, Box<dyn Error>> {
    // SAFETY: only looks for the driver library, without which cudarc would panic.
    if !unsafe { sys::is_culib_present() } {
        return Err("no CUDA driver".into());
    }
    let context = CudaContext::new(0)?;
    let stream = context.new_stream()?;
    let module = context.load_module(Ptx::from_src(workloads::PTX))?;
    Ok(Model {
        saxpy: module.load_function(workloads::SAXPY)?,
        x: stream.clone_htod(&vec![1.0; LEN])?,
        y: stream.alloc_zeros(LEN)?,
        stream,
    })
}

impl Model {
    fn saxpy(&mut self, a: f32) -> Result<(), Box<dyn Error>> {
        let len = LEN as u32;
        let mut launch = self.stream.launch_builder(&self.saxpy);
        launch.arg(&len).arg(&a).arg(&self.x).arg(&mut self.y);
        // SAFETY: the arguments match the kernel, and both vectors have `len` elements.
        unsafe { launch.launch(LaunchConfig::for_num_elems(len)) }?;
        Ok(())
    }
}
