//! What a pair of events by hand reads around a spin of 10 µs, with nothing of gpu-time's: how far its
//! constant moves within one process is the driver's and the device's doing.

use cudarc::driver::PushKernelArg;
use cudarc::driver::sys::CUevent_flags;
use gpu_time_kernels::workloads;

use crate::Failure;
use crate::case::WARMUP;
use crate::figure::Figure;
use crate::gpu::{Gpu, ONE};

/// The GPU is busy for so long before each pair, in which all of it is enqueued.
const AHEAD_NS: u64 = 50_000;
const SPIN_NS: u64 = 10_000;

/// So many pairs, the stream synchronised after each.
pub fn measure(gpu: &Gpu, pairs: u32) -> Result<Option<Figure>, Failure> {
    let stream = &gpu.stream;
    let (ahead, spin) = (gpu.workload(workloads::SPIN_NS)?, gpu.workload(workloads::SPIN_NS)?);
    let event = || gpu.context.new_event(Some(CUevent_flags::CU_EVENT_DEFAULT));
    let (start, stop) = (event()?, event()?);
    let mut times = Vec::new();
    for _ in 0..WARMUP + pairs {
        // SAFETY: the argument is the kernel's.
        unsafe { stream.launch_builder(&ahead).arg(&AHEAD_NS).launch(ONE) }?;
        start.record(stream)?;
        // SAFETY: the argument is the kernel's.
        unsafe { stream.launch_builder(&spin).arg(&SPIN_NS).launch(ONE) }?;
        stop.record(stream)?;
        stream.synchronize()?;
        times.push(f64::from(start.elapsed_ms(&stop)?) * 1e6);
    }
    Ok(Figure::of(times.split_off(WARMUP as usize)))
}
