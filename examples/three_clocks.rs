//! Compares the attribute's three clocks on one kernel: CUDA events, stream barriers on both sides,
//! and the host clock alone.
//!
//! ```text
//! cargo run --release --example three_clocks
//! ```
//!
//! The kernel spins for a fixed time measured by the GPU's own timer, so its duration is known.
//! Needs an NVIDIA GPU.

#![allow(unsafe_code)] // launching a kernel is unsafe in cudarc

mod gpu;

use std::error::Error;
use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaStream, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use gpu_time::{gpu_timed, snapshot};
use gpu_time_kernels::workloads;

/// The duration of the kernel.
const SPIN_NS: u64 = 50_000;
const CALLS: usize = 100;

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

/// Measures GPU time with two events around the launch. `sleep` ensures that the GPU does not wait
/// for the CPU between them.
#[gpu_timed(warmup = 10, sleep)]
fn by_events(stream: &Arc<CudaStream>, spin: &Spin) -> Result {
    spin.launch(stream)
}

/// Measures from one synchronization of the stream to the next, which includes launching the kernel
/// and waiting for it.
#[gpu_timed(warmup = 10, clock = "sync")]
fn by_barriers(stream: &Arc<CudaStream>, spin: &Spin) -> Result {
    spin.launch(stream)
}

/// Measures how long enqueueing takes: the kernel has hardly started when the function returns.
#[gpu_timed(warmup = 10, clock = "host")]
fn by_host(stream: &Arc<CudaStream>, spin: &Spin) -> Result {
    spin.launch(stream)
}

fn main() -> Result {
    let Some(stream) = gpu::find_or_explain() else { return Ok(()) };
    let spin = Spin::new(&stream)?;
    for timed in [by_events, by_barriers, by_host] {
        for _ in 0..CALLS {
            timed(&stream, &spin)?;
            // Every call starts with an idle stream.
            stream.synchronize()?;
        }
    }
    println!("the kernel spins for {:.1} µs", SPIN_NS as f64 / 1e3);
    let snapshot = snapshot();
    for name in ["by_events", "by_barriers", "by_host"] {
        let site = snapshot.site(&format!("three_clocks::{name}")).ok_or("never called")?;
        let series = site.series.first().ok_or("never timed")?;
        let net = series.net_ns.as_ref().ok_or("no samples")?;
        println!("{:>7} {:8.1} µs", series.clock.name(), net.median / 1e3);
    }
    // The whole report is printed when the process exits.
    Ok(())
}

/// The kernel, which spins for [`SPIN_NS`].
struct Spin(CudaFunction);

impl Spin {
    fn new(stream: &CudaStream) -> Result<Spin> {
        let module = stream.context().load_module(Ptx::from_src(workloads::PTX))?;
        Ok(Spin(module.load_function(workloads::SPIN_NS)?))
    }

    fn launch(&self, stream: &CudaStream) -> Result {
        let one = LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 };
        let mut launch = stream.launch_builder(&self.0);
        launch.arg(&SPIN_NS);
        // SAFETY: the argument matches the kernel.
        unsafe { launch.launch(one) }?;
        Ok(())
    }
}
