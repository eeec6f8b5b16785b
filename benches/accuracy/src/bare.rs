//! An event pair around a 10 µs spin, recorded without gpu-time. The spread of its times within one
//! process is due only to the driver and the device.

use cudarc::driver::PushKernelArg;
use cudarc::driver::sys::CUevent_flags;
use gpu_time_kernels::workloads;

use crate::case::WARMUP;
use crate::failure::Failure;
use crate::figure::Figure;
use crate::gpu::{Gpu, ONE};

/// The duration of the kernel before each pair. It keeps the GPU busy until the pair has been
/// enqueued.
const AHEAD_NS: u64 = 50_000;
const SPIN_NS: u64 = 10_000;

/// Times `pairs` pairs, synchronizing the stream after each.
pub fn measure(gpu: &Gpu, pairs: u32) -> Result<Option<Figure>, Failure> {
    let stream = &gpu.stream;
    let (ahead, spin) = (gpu.workload(workloads::SPIN_NS)?, gpu.workload(workloads::SPIN_NS)?);
    let event = || gpu.context.new_event(Some(CUevent_flags::CU_EVENT_DEFAULT));
    let (start, stop) = (event()?, event()?);
    let mut times = Vec::new();
    for _ in 0..WARMUP + pairs {
        // SAFETY: the argument matches the kernel.
        unsafe { stream.launch_builder(&ahead).arg(&AHEAD_NS).launch(ONE) }?;
        start.record(stream)?;
        // SAFETY: the argument matches the kernel.
        unsafe { stream.launch_builder(&spin).arg(&SPIN_NS).launch(ONE) }?;
        stop.record(stream)?;
        stream.synchronize()?;
        times.push(f64::from(start.elapsed_ms(&stop)?) * 1e6);
    }
    Ok(Figure::of(times.split_off(WARMUP as usize)))
}
