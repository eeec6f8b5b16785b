//! What `cold` and `sleep` cost the host beside the launches that they enqueue.

use std::ffi::c_void;
use std::sync::Arc;
use std::time::Instant;

use cudarc::driver::{CudaFunction, CudaStream, result};
use gpu_time::gpu_timed;
use gpu_time_kernels::HOLD;

use crate::Failure;
use crate::figure::Figure;
use crate::flush::{Flush, Method};
use crate::gpu::Gpu;
use crate::work::{Kind, Work};

/// Six commands a call at most: a batch fits into the queue.
const BATCH: u32 = 100;
const BATCHES: usize = 40;

#[gpu_timed]
fn as_found(stream: &Arc<CudaStream>, work: &mut Work) -> Result<(), Failure> {
    work.launch(stream)
}

#[gpu_timed(cold, sleep)]
fn prepared(stream: &Arc<CudaStream>, work: &mut Work) -> Result<(), Failure> {
    work.launch(stream)
}

/// Batch by batch, a call with both less one without and the launches made by hand. The GPU is idle
/// before each batch.
pub fn measure(gpu: &Gpu, method: Method, flush_bytes: u64) -> Result<Option<Figure>, Failure> {
    let flush = Flush::new(gpu, method, flush_bytes)?;
    let hold_kernel = gpu.runtime_kernel(HOLD)?;
    let zero = flush.zero(gpu);
    let mut work = Work::new(gpu, Kind::Empty)?;
    let mut batch = |call: &mut dyn FnMut(&mut Work) -> Result<(), Failure>| {
        let start = Instant::now();
        for _ in 0..BATCH {
            call(&mut work)?;
        }
        let ns = start.elapsed().as_nanos() as f64 / f64::from(BATCH);
        gpu.stream.synchronize()?;
        Ok::<f64, Failure>(ns)
    };
    let mut differences = Vec::with_capacity(BATCHES);
    for _ in 0..BATCHES {
        let as_found = batch(&mut |work| as_found(&gpu.stream, work))?;
        let launches = batch(&mut |_| {
            flush.launch(gpu)?;
            hold(gpu, &hold_kernel, zero)
        })?;
        let prepared = batch(&mut |work| prepared(&gpu.stream, work))?;
        differences.push(prepared - as_found - launches);
    }
    // The first meets what is loaded and allocated on first use.
    Ok(Figure::of(differences.split_off(1)))
}

/// A hold that is released from the beginning, so that it reads one word and ends.
fn hold(gpu: &Gpu, kernel: &CudaFunction, zero: u64) -> Result<(), Failure> {
    let (mut word, mut ticket, mut ns, mut cycles, mut expired) = (zero, 0_u64, 0_u64, 0_u64, zero);
    let mut parameters: [*mut c_void; 5] = [
        (&raw mut word).cast(),
        (&raw mut ticket).cast(),
        (&raw mut ns).cast(),
        (&raw mut cycles).cast(),
        (&raw mut expired).cast(),
    ];
    let (one, kernel, stream) = ((1, 1, 1), kernel.cu_function(), gpu.stream.cu_stream());
    // SAFETY: the parameters of `HOLD`, which reads a word of a live buffer.
    Ok(unsafe { result::launch_kernel(kernel, one, one, 0, stream, &mut parameters) }?)
}
