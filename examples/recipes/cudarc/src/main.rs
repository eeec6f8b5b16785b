//! cudarc: one attribute on an `impl` times all of its methods.
//!
//! ```text
//! cargo run --release
//! ```
//!
//! Timed by events: the span of `step` and of `upload`, and each launch of `add`, fed or marked `≤`.
//! Timed by CUPTI, for a random sixteenth of the calls of `step`: the kernels and copies inside, and
//! how long the GPU was idle between them. Without CUPTI, only the times by events remain.

use std::error::Error;
use std::sync::Arc;

use cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, DriverError, LaunchConfig, PushKernelArg,
};
use cudarc::nvrtc::Ptx;
use gpu_time::gpu_timed;

const LEN: usize = 1 << 20;
const STEPS: usize = 100;
const PTX: &str = include_str!("../../../../kernels/ptx/workloads.ptx");

struct Vectors {
    stream: Arc<CudaStream>,
    saxpy: CudaFunction,
    x: CudaSlice<f32>,
    y: CudaSlice<f32>,
}

#[gpu_timed(stream = self.stream, warmup = 2)]
impl Vectors {
    fn step(&mut self, input: &[f32]) -> Result<(), DriverError> {
        self.upload(input)?;
        self.add(1.0)?;
        self.add(0.5)
    }

    fn upload(&mut self, input: &[f32]) -> Result<(), DriverError> {
        self.stream.memcpy_htod(input, &mut self.x)
    }

    fn add(&mut self, a: f32) -> Result<(), DriverError> {
        let len = LEN as u32;
        let mut launch = self.stream.launch_builder(&self.saxpy);
        launch.arg(&len).arg(&a).arg(&self.x).arg(&mut self.y);
        // SAFETY: the arguments match the kernel, and both vectors have `len` elements.
        unsafe { launch.launch(LaunchConfig::for_num_elems(len)) }?;
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let context = CudaContext::new(0)?;
    let stream = context.default_stream();
    let module = context.load_module(Ptx::from_src(PTX))?;
    let mut vectors = Vectors {
        saxpy: module.load_function("saxpy")?,
        x: stream.alloc_zeros(LEN)?,
        y: stream.alloc_zeros(LEN)?,
        stream,
    };
    let input = vec![2.0; LEN];
    for _ in 0..STEPS {
        vectors.step(&input)?;
    }
    let y = vectors.stream.clone_dtoh(&vectors.y)?;
    let expected = 3.0 * STEPS as f32;
    assert!(y.iter().all(|&y| y == expected), "computed {:?}…, not {expected}", &y[..4]);
    println!("{STEPS} steps: every element is {expected}");
    Ok(())
}
