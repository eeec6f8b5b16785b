//! The model: workers, each with a stream and vectors of its own.

use std::error::Error;
use std::sync::Arc;

use cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, DriverError, LaunchConfig, PushKernelArg,
};
use cudarc::nvrtc::Ptx;
use gpu_time::gpu_timed;
use gpu_time_kernels::workloads;

const LEN: usize = 1 << 16;
const LAYERS: u32 = 4;

pub struct Worker {
    pub stream: Arc<CudaStream>,
    saxpy: CudaFunction,
    x: CudaSlice<f32>,
    y: CudaSlice<f32>,
}

/// Creates this many workers.
pub fn workers(count: usize) -> Result<Vec<Worker>, Box<dyn Error>> {
    let context = CudaContext::new(0)?;
    // SAFETY: each worker uses its vectors on its own stream only.
    unsafe { context.disable_event_tracking() };
    let module = context.load_module(Ptx::from_src(workloads::PTX))?;
    let saxpy = module.load_function(workloads::SAXPY)?;
    let worker = |_| {
        let stream = context.new_stream()?;
        let (x, y) = (stream.alloc_zeros(LEN)?, stream.alloc_zeros(LEN)?);
        Ok(Worker { stream, saxpy: saxpy.clone(), x, y })
    };
    (0..count).map(worker).collect()
}

impl Worker {
    /// Runs a request, and waits for it.
    #[gpu_timed]
    pub fn infer(&mut self, seed: usize) -> Result<f32, DriverError> {
        self.enqueue(seed)?;
        self.read()
    }

    #[gpu_timed]
    pub fn enqueue(&mut self, seed: usize) -> Result<(), DriverError> {
        self.upload(&vec![(seed % 97) as f32; LEN])?;
        (1..=LAYERS).try_for_each(|layer| self.layer(layer as f32))
    }

    #[gpu_timed]
    fn upload(&mut self, input: &[f32]) -> Result<(), DriverError> {
        self.stream.memcpy_htod(input, &mut self.x)?;
        self.stream.memset_zeros(&mut self.y)
    }

    #[gpu_timed]
    fn layer(&mut self, factor: f32) -> Result<(), DriverError> {
        let n = LEN as u32;
        let mut launch = self.stream.launch_builder(&self.saxpy);
        launch.arg(&n).arg(&factor).arg(&self.x).arg(&mut self.y);
        // SAFETY: the arguments match the kernel, and both vectors have `n` elements.
        unsafe { launch.launch(LaunchConfig::for_num_elems(n)) }?;
        Ok(())
    }

    /// Returns the result of the last request, and waits for it.
    #[gpu_timed]
    pub fn read(&mut self) -> Result<f32, DriverError> {
        Ok(self.stream.clone_dtoh(&self.y.slice(LEN - 1..))?[0])
    }
}

/// What a request with this seed answers.
pub fn expected(seed: usize) -> f32 {
    let layers: u32 = (1..=LAYERS).sum();
    (seed % 97) as f32 * layers as f32
}
