//! Shows the device time of `tracing` spans, in a program without any attribute.
//!
//! ```text
//! cargo run --release --features tracing --example spans
//! ```
//!
//! The only line for gpu-time is `.with(gpu_time::spans())`. `infer` and the functions that it calls are
//! instrumented for logs and traces, as in a server. All 200 requests are recorded, with their spans.
//! With `GPU_TIME_VIEW=tree`, the report lists spans under their callers; otherwise, separately.
//! Needs an NVIDIA GPU and `libcupti`, which comes with a CUDA toolkit.

#![allow(unsafe_code)] // launching a kernel is unsafe in cudarc

#[path = "../../../examples/gpu/mod.rs"]
mod gpu;

use std::error::Error;
use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaSlice, CudaStream, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use gpu_time_kernels::workloads;
use tracing::info_span;
use tracing_subscriber::prelude::*;

const LEN: usize = 1 << 20;
const REQUESTS: usize = 200;
const LAYERS: usize = 4;

struct Model {
    stream: Arc<CudaStream>,
    saxpy: CudaFunction,
    x: CudaSlice<f32>,
    y: CudaSlice<f32>,
}

fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::registry().with(gpu_time::spans()).init();
    let Some(stream) = gpu::find_or_explain() else { return Ok(()) };
    let mut model = Model::new(stream)?;
    for _ in 0..REQUESTS {
        model.infer(&vec![1.0; LEN])?;
    }
    // The report is printed when the process exits.
    Ok(())
}

impl Model {
    fn new(stream: Arc<CudaStream>) -> Result<Model, Box<dyn Error>> {
        let module = stream.context().load_module(Ptx::from_src(workloads::PTX))?;
        let saxpy = module.load_function(workloads::SAXPY)?;
        let (x, y) = (stream.alloc_zeros(LEN)?, stream.alloc_zeros(LEN)?);
        Ok(Model { stream, saxpy, x, y })
    }

    fn infer(&mut self, input: &[f32]) -> Result<(), Box<dyn Error>> {
        let _span = info_span!("infer").entered();
        info_span!("upload").in_scope(|| self.stream.memcpy_htod(input, &mut self.x))?;
        for layer in 0..LAYERS {
            let _span = info_span!("layer", layer).entered();
            self.saxpy(2.0)?;
            info_span!("norm").in_scope(|| self.saxpy(0.5))?;
        }
        self.stream.synchronize()?;
        Ok(())
    }

    fn saxpy(&mut self, a: f32) -> Result<(), Box<dyn Error>> {
        let len = LEN as u32;
        let mut launch = self.stream.launch_builder(&self.saxpy);
        launch.arg(&len).arg(&a).arg(&self.x).arg(&mut self.y);
        // SAFETY: the arguments match the kernel, and both vectors have `len` elements.
        unsafe { launch.launch(LaunchConfig::for_num_elems(len)) }?;
        Ok(())
    }
}
