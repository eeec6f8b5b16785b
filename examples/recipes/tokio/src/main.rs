//! tokio: tasks on several streams, timed separately by `key`, with futures that wait for the GPU.
//!
//! ```text
//! cargo run --release
//! ```
//!
//! Timed by events, for each worker: `answer`, on the worker's stream from the first poll to the end,
//! and each launch of `add`. Time in which the future waits and the stream is idle counts as part of
//! `answer`. Timed by CUPTI, for a random sixteenth of the calls: the kernels and copies.

use std::error::Error;
use std::sync::Arc;

use cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, DriverError, LaunchConfig, PushKernelArg,
};
use cudarc::nvrtc::Ptx;
use gpu_time::gpu_timed;
use tokio::task::{JoinSet, spawn_blocking};

const LEN: usize = 1 << 20;
const WORKERS: usize = 4;
const REQUESTS: usize = 50;
const PTX: &str = include_str!("../../../../kernels/ptx/workloads.ptx");

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Answers requests on a stream of its own.
struct Worker {
    id: usize,
    stream: Arc<CudaStream>,
    saxpy: CudaFunction,
    x: CudaSlice<f32>,
    y: CudaSlice<f32>,
}

#[gpu_timed(stream = self.stream, key = self.id, warmup = 2)]
impl Worker {
    async fn answer(&mut self, input: &[f32]) -> Result<f32> {
        self.stream.memcpy_htod(input, &mut self.x)?;
        for _ in 0..=self.id {
            self.add(0.5)?;
        }
        let answer = self.stream.clone_dtoh(&self.y.slice(..1))?;
        finished(&self.stream).await?;
        Ok(answer[0])
    }

    fn add(&mut self, a: f32) -> std::result::Result<(), DriverError> {
        let len = LEN as u32;
        let mut launch = self.stream.launch_builder(&self.saxpy);
        launch.arg(&len).arg(&a).arg(&self.x).arg(&mut self.y);
        // SAFETY: the arguments match the kernel, and both vectors have `len` elements.
        unsafe { launch.launch(LaunchConfig::for_num_elems(len)) }?;
        Ok(())
    }
}

/// Lets other tasks run until the stream is idle.
async fn finished(stream: &Arc<CudaStream>) -> Result<()> {
    let stream = stream.clone();
    Ok(spawn_blocking(move || stream.synchronize()).await??)
}

async fn serve(mut worker: Worker) -> Result<String> {
    let input = vec![2.0; LEN];
    let mut last = 0.0;
    for _ in 0..REQUESTS {
        last = worker.answer(&input).await?;
    }
    let expected = ((worker.id + 1) * REQUESTS) as f32;
    assert_eq!(last, expected, "worker {}", worker.id);
    Ok(format!("worker {}: {last} after {REQUESTS} requests", worker.id))
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<()> {
    let context = CudaContext::new(0)?;
    // SAFETY: each worker uses its vectors on its own stream only.
    unsafe { context.disable_event_tracking() };
    let saxpy = context.load_module(Ptx::from_src(PTX))?.load_function("saxpy")?;
    let mut workers = JoinSet::new();
    for id in 0..WORKERS {
        let stream = context.new_stream()?;
        let (x, y) = (stream.alloc_zeros(LEN)?, stream.alloc_zeros(LEN)?);
        workers.spawn(serve(Worker { id, saxpy: saxpy.clone(), x, y, stream }));
    }
    let mut answers = workers.join_all().await.into_iter().collect::<Result<Vec<_>>>()?;
    answers.sort();
    println!("{}", answers.join("\n"));
    Ok(())
}
