//! Compares ten ways to time one small kernel with its true duration.
//!
//! ```text
//! cargo run --release --example ten_ways
//! ```
//!
//! The kernel spins until the GPU's own timer has advanced by five microseconds, so its duration is
//! known. The ways range from the most naive one to a held bracket minus the device's bias. Needs
//! an NVIDIA GPU.

#![allow(unsafe_code)] // launching a kernel is unsafe in cudarc

mod gpu;

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use cudarc::driver::sys::CUevent_flags;
use cudarc::driver::{CudaFunction, CudaStream, DriverError, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use gpu_time::{Snapshot, gpu_timed};
use gpu_time_kernels::workloads;

const SPIN_NS: u64 = 5_000;
const WARMUP: u32 = 20;
const CALLS: u32 = 200;
const SINGLE_THREAD: LaunchConfig =
    LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 };

struct Gpu {
    stream: Arc<CudaStream>,
    spin: CudaFunction,
}

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

impl Gpu {
    fn new(stream: Arc<CudaStream>) -> Result<Gpu> {
        let module = stream.context().load_module(Ptx::from_src(workloads::PTX))?;
        Ok(Gpu { spin: module.load_function(workloads::SPIN_NS)?, stream })
    }

    fn launch(&self) -> Result<(), DriverError> {
        let mut launch = self.stream.launch_builder(&self.spin);
        // SAFETY: the argument matches the kernel.
        unsafe { launch.arg(&SPIN_NS).launch(SINGLE_THREAD) }.map(drop)
    }
}

#[gpu_timed(stream = gpu.stream, warmup = WARMUP, scope = "body")]
fn bracketed(gpu: &Gpu) -> Result<(), DriverError> {
    gpu.launch()
}

#[gpu_timed(stream = gpu.stream, warmup = WARMUP, scope = "body", clock = "sync")]
fn between_barriers(gpu: &Gpu) -> Result<(), DriverError> {
    gpu.launch()
}

#[gpu_timed(stream = gpu.stream, warmup = WARMUP, scope = "body", sleep)]
fn held(gpu: &Gpu) -> Result<(), DriverError> {
    gpu.launch()
}

fn main() -> Result<()> {
    let Some(stream) = gpu::find_or_explain() else { return Ok(()) };
    let gpu = Gpu::new(stream)?;
    for _ in 0..WARMUP + CALLS {
        bracketed(&gpu)?;
        gpu.stream.synchronize()?;
        between_barriers(&gpu)?;
        held(&gpu)?;
        gpu.stream.synchronize()?;
    }
    let snapshot = gpu_time::snapshot();
    let reported = |function: &str, net: bool| reported_median(&snapshot, function, net);

    let ways = [
        ("host clock around the launch", host_clock(&gpu, false)),
        ("host clock around launch and synchronization", host_clock(&gpu, true)),
        ("the same around a loop, per launch", host_clock_per_launch(&gpu)),
        ("two events, created for each call", new_events(&gpu)),
        ("two events, reused", reused_events(&gpu)),
        ("cudarc's `record_kernel_launch`", cudarc_events(&gpu)),
        ("`#[gpu_timed(clock = \"sync\")]`", reported("between_barriers", false)),
        ("`#[gpu_timed]`, raw", reported("bracketed", false)),
        ("`#[gpu_timed(sleep)]`, raw", reported("held", false)),
        ("`#[gpu_timed(sleep)]`, net", reported("held", true)),
    ];
    println!("the kernel spins for {:.3} µs by the GPU's own timer\n", SPIN_NS as f64 / 1e3);
    println!("{:<48} {:>9} {:>9}  µs", "", "median", "error");
    for (way, ns) in ways {
        match ns {
            Ok(ns) => println!("{way:<48} {:>9.2} {:>+9.2}", ns / 1e3, (ns - SPIN_NS as f64) / 1e3),
            Err(why) => println!("{way:<48} {why}"),
        }
    }
    println!(
        "\nCUPTI and Nsight Systems include starting and ending a kernel in its time: about 0.7 µs more"
    );
    println!("than the kernel itself measures on an H200. The last way should agree with them.\n");
    // The report is printed when the process exits.
    Ok(())
}

/// Returns an annotated function's median, as in the report.
fn reported_median(snapshot: &Snapshot, function: &str, net: bool) -> Result<f64> {
    let name = format!("{}::{function}", module_path!());
    let site = snapshot.site(&name).ok_or("never called")?;
    let series = site.series.first().ok_or("never timed")?;
    let stats = if net { series.net_ns.as_ref() } else { series.raw_ns.as_ref() };
    Ok(stats.ok_or("no samples")?.median)
}

/// Calls `time_once` repeatedly and returns the median of its results in ns, excluding the warm-up.
fn median(mut time_once: impl FnMut() -> Result<f64>) -> Result<f64> {
    let mut times = Vec::with_capacity(CALLS as usize);
    for call in 0..WARMUP + CALLS {
        let ns = time_once()?;
        if call >= WARMUP {
            times.push(ns);
        }
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

fn host_clock(gpu: &Gpu, synchronize: bool) -> Result<f64> {
    median(|| {
        let start = Instant::now();
        gpu.launch()?;
        if synchronize {
            gpu.stream.synchronize()?;
        }
        let ns = start.elapsed().as_nanos() as f64;
        gpu.stream.synchronize()?;
        Ok(ns)
    })
}

fn host_clock_per_launch(gpu: &Gpu) -> Result<f64> {
    const LAUNCHES: u32 = 100;
    median(|| {
        let start = Instant::now();
        for _ in 0..LAUNCHES {
            gpu.launch()?;
        }
        gpu.stream.synchronize()?;
        Ok(start.elapsed().as_nanos() as f64 / f64::from(LAUNCHES))
    })
}

fn new_events(gpu: &Gpu) -> Result<f64> {
    let flags = Some(CUevent_flags::CU_EVENT_DEFAULT);
    median(|| {
        let (start, stop) =
            (gpu.stream.context().new_event(flags)?, gpu.stream.context().new_event(flags)?);
        start.record(&gpu.stream)?;
        gpu.launch()?;
        stop.record(&gpu.stream)?;
        Ok(f64::from(start.elapsed_ms(&stop)?) * 1e6)
    })
}

fn reused_events(gpu: &Gpu) -> Result<f64> {
    let flags = Some(CUevent_flags::CU_EVENT_DEFAULT);
    let (start, stop) =
        (gpu.stream.context().new_event(flags)?, gpu.stream.context().new_event(flags)?);
    median(|| {
        start.record(&gpu.stream)?;
        gpu.launch()?;
        stop.record(&gpu.stream)?;
        Ok(f64::from(start.elapsed_ms(&stop)?) * 1e6)
    })
}

fn cudarc_events(gpu: &Gpu) -> Result<f64> {
    median(|| {
        let mut launch = gpu.stream.launch_builder(&gpu.spin);
        launch.arg(&SPIN_NS).record_kernel_launch(CUevent_flags::CU_EVENT_DEFAULT);
        // SAFETY: the argument matches the kernel.
        let events = unsafe { launch.launch(SINGLE_THREAD) }?;
        let (start, stop) = events.ok_or("cudarc recorded no events")?;
        Ok(f64::from(start.elapsed_ms(&stop)?) * 1e6)
    })
}
