//! The host time of `cold` and `sleep`, in excess of the launches that they enqueue.

use std::ffi::c_void;
use std::sync::Arc;
use std::time::Instant;

use cudarc::driver::{CudaFunction, CudaStream, result};
use gpu_time::gpu_timed;
use gpu_time_kernels::HOLD;

use crate::failure::Failure;
use crate::figure::Figure;
use crate::flush::{Flush, Method};
use crate::gpu::Gpu;
use crate::work::{Kind, Work};

/// The number of calls per batch. A call enqueues at most six commands, so a batch fits into the
/// queue.
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

/// For each batch, measures a call with `cold` and `sleep`, minus a call without them, and minus
/// the same launches made directly. The GPU is idle before each batch.
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
            launch_hold(gpu, &hold_kernel, zero)
        })?;
        let prepared = batch(&mut |work| prepared(&gpu.stream, work))?;
        differences.push(prepared - as_found - launches);
    }
    // The first batch includes loading and allocation on first use.
    Ok(Figure::of(differences.split_off(1)))
}

/// Launches a hold that has already been released, so it reads one word and ends.
fn launch_hold(gpu: &Gpu, kernel: &CudaFunction, zero: u64) -> Result<(), Failure> {
    let (mut word, mut ticket, mut ns, mut cycles, mut expired) = (zero, 0_u64, 0_u64, 0_u64, zero);
    let mut parameters: [*mut c_void; 5] = [
        (&raw mut word).cast(),
        (&raw mut ticket).cast(),
        (&raw mut ns).cast(),
        (&raw mut cycles).cast(),
        (&raw mut expired).cast(),
    ];
    let (one, kernel, stream) = ((1, 1, 1), kernel.cu_function(), gpu.stream.cu_stream());
    // SAFETY: the parameters match `HOLD`, which only reads one word of a live buffer.
    Ok(unsafe { result::launch_kernel(kernel, one, one, 0, stream, &mut parameters) }?)
}
