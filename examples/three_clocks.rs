//! The same kernel by three clocks: CUDA events, barriers on both sides, and the host's clock alone.
//!
//! ```text
//! cargo run --release --example three_clocks
//! ```
//!
//! The kernel spins for a time that it takes from the GPU's own timer, so that the truth is known.
//! Without a GPU there is nothing to compare: the program says so and ends.

#![allow(unsafe_code)] // launching a kernel is unsafe in cudarc

mod gpu;

use std::error::Error;
use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaStream, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use gpu_time::{gpu_timed, snapshot};
use gpu_time_kernels::workloads;

/// How long the kernel spins.
const SPIN_NS: u64 = 50_000;
const CALLS: usize = 100;

type Done = Result<(), Box<dyn Error>>;

/// Two events around the launch: the GPU's own time. `sleep` keeps it from waiting for the CPU inside.
#[gpu_timed(warmup = 10, sleep)]
fn by_events(stream: &Arc<CudaStream>, spin: &Spin) -> Done {
    spin.launch(stream)
}

/// The stream is idle before and after: launching the kernel and waiting for it are in the time.
#[gpu_timed(warmup = 10, clock = "sync")]
fn by_barriers(stream: &Arc<CudaStream>, spin: &Spin) -> Done {
    spin.launch(stream)
}

/// The kernel has hardly begun when the function returns: this is what enqueueing it took.
#[gpu_timed(warmup = 10, clock = "host")]
fn by_host(stream: &Arc<CudaStream>, spin: &Spin) -> Done {
    spin.launch(stream)
}

fn main() -> Done {
    let (stream, spin) = match on_gpu() {
        Ok(gpu) => gpu,
        Err(why) => {
            println!("no GPU here ({why}): there is nothing to compare");
            return Ok(());
        }
    };
    for timed in [by_events, by_barriers, by_host] {
        for _ in 0..CALLS {
            timed(&stream, &spin)?;
            // Every call finds the stream idle.
            stream.synchronize()?;
        }
    }
    println!("the kernel spins for {:.1} µs", SPIN_NS as f64 / 1e3);
    let snapshot = snapshot();
    for name in ["by_events", "by_barriers", "by_host"] {
        let site = snapshot.site(&format!("three_clocks::{name}")).ok_or("it was called")?;
        let row = site.series().first().ok_or("it was timed")?;
        let net = row.net_ns().ok_or("it was measured")?;
        println!("{:>7} {:8.1} µs", row.clock(), net.median() / 1e3);
    }
    // The whole report comes by itself when the process ends.
    Ok(())
}

/// A kernel that spins.
struct Spin(CudaFunction);

impl Spin {
    fn launch(&self, stream: &CudaStream) -> Done {
        let one = LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 };
        let mut launch = stream.launch_builder(&self.0);
        launch.arg(&SPIN_NS);
        // SAFETY: the argument is that of the kernel.
        unsafe { launch.launch(one) }?;
        Ok(())
    }
}

fn on_gpu() -> Result<(Arc<CudaStream>, Spin), Box<dyn Error>> {
    let stream = gpu::find()?;
    let module = stream.context().load_module(Ptx::from_src(workloads::PTX))?;
    Ok((stream, Spin(module.load_function(workloads::SPIN_NS)?)))
}
