//! Shows that a kernel of 10 µs got 1 % longer: two closures take turns until that is known.
//!
//! ```text
//! cargo run --release --example take_turns
//! ```
//!
//! With a number of nanoseconds, it only runs kernels of that length, for a second or for the number
//! of milliseconds that follows, so that two such programs can be compared with `gpu-time ab`.

#![allow(unsafe_code)] // launching a kernel is unsafe in cudarc

mod gpu;

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cudarc::driver::{CudaFunction, CudaStream, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use gpu_time::{Settle, compare, gpu_timed};
use gpu_time_kernels::workloads;

/// Runs a kernel that takes `ns` nanoseconds.
#[gpu_timed(warmup = 10, sleep)]
fn spin(stream: &Arc<CudaStream>, kernel: &CudaFunction, ns: u64) {
    let one = LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 };
    let mut launch = stream.launch_builder(kernel);
    launch.arg(&ns);
    // SAFETY: the kernel takes one `u64`, and touches no memory.
    unsafe { launch.launch(one) }.expect("launch the kernel");
}

fn main() -> Result<(), Box<dyn Error>> {
    let Some(stream) = gpu::find_or_explain() else { return Ok(()) };
    let module = stream.context().load_module(Ptx::from_src(workloads::PTX))?;
    let kernel = module.load_function(workloads::SPIN_NS)?;
    if let Some(ns) = std::env::args().nth(1) {
        let time = std::env::args().nth(2).map_or(Ok(1_000), |ms| ms.parse())?;
        let (ns, started) = (ns.parse()?, Instant::now());
        while started.elapsed() < Duration::from_millis(time) {
            spin(&stream, &kernel, ns);
            stream.synchronize()?;
        }
        return Ok(());
    }
    for (name, ns) in [("10.0 µs again", 10_000), ("10.1 µs", 10_100)] {
        let run = |ns: u64| spin(&stream, &kernel, ns);
        let settle = Settle::default().timeout(Duration::from_secs(1)).margin(0.002);
        let compared = compare(settle, ("10.0 µs", || run(10_000)), (name, || run(ns)));
        print!("{compared}");
    }
    Ok(())
}
