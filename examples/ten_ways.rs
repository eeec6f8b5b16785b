//! One small kernel, timed in ten ways, beside the time that it knows from inside.
//!
//! ```text
//! cargo run --release --example ten_ways
//! ```
//!
//! The kernel spins until the GPU's own timer has advanced by five microseconds, so what it takes is
//! known. The ways go from the most naive to a held bracket less the device's bias. On a machine without
//! an NVIDIA GPU it says so.

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

const NS: u64 = 5_000;
const WARMUP: u32 = 20;
const CALLS: u32 = 200;
const ONE: LaunchConfig =
    LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 };

struct Gpu {
    stream: Arc<CudaStream>,
    spin: CudaFunction,
}

/// Why a way has no answer.
type Failure = Box<dyn Error>;

impl Gpu {
    fn launch(&self) -> Result<(), DriverError> {
        // SAFETY: the argument is the kernel's.
        unsafe { self.stream.launch_builder(&self.spin).arg(&NS).launch(ONE) }.map(drop)
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

fn main() -> Result<(), Failure> {
    let gpu = match on_gpu() {
        Ok(gpu) => gpu,
        Err(why) => {
            println!("no GPU here ({why}): there is no kernel to time");
            return Ok(());
        }
    };
    for _ in 0..WARMUP + CALLS {
        bracketed(&gpu)?;
        gpu.stream.synchronize()?;
        between_barriers(&gpu)?;
        held(&gpu)?;
        gpu.stream.synchronize()?;
    }
    let snapshot = gpu_time::snapshot();
    let ours = |function: &str, net: bool| median_of(&snapshot, function, net);

    let ways = [
        ("a clock around the launch", by_clock(&gpu, false)),
        ("a clock around launch and wait", by_clock(&gpu, true)),
        ("the same in a loop, by the number of launches", in_a_loop(&gpu)),
        ("two new events a call, and a wait", by_new_events(&gpu)),
        ("two events made before", by_old_events(&gpu)),
        ("cudarc's `record_kernel_launch`", by_cudarc(&gpu)),
        ("`#[gpu_timed(clock = \"sync\")]`", ours("between_barriers", false)),
        ("`#[gpu_timed]`, raw", ours("bracketed", false)),
        ("`#[gpu_timed(sleep)]`, raw", ours("held", false)),
        ("`#[gpu_timed(sleep)]`, net", ours("held", true)),
    ];
    println!("the kernel spins for {:.3} µs by the GPU's own timer\n", NS as f64 / 1e3);
    println!("{:<48} {:>9} {:>9}  µs", "", "median", "off by");
    for (way, ns) in ways {
        match ns {
            Ok(ns) => println!("{way:<48} {:>9.2} {:>+9.2}", ns / 1e3, (ns - NS as f64) / 1e3),
            Err(why) => println!("{way:<48} {why}"),
        }
    }
    println!(
        "\nCUPTI and Nsight Systems date starting and ending a kernel with it: about 0.7 µs more than the"
    );
    println!("kernel sees on an H200. The last way is to agree with them.\n");
    // The report comes by itself when the process ends.
    Ok(())
}

/// What a function's own row says.
fn median_of(snapshot: &Snapshot, function: &str, net: bool) -> Result<f64, Failure> {
    let name = format!("{}::{function}", module_path!());
    let site = snapshot.site(&name).ok_or("it was never called")?;
    let series = site.series().first().ok_or("it was never timed")?;
    let stats = if net { series.net_ns() } else { series.raw_ns() };
    Ok(stats.ok_or("there are no samples")?.median())
}

/// The median of so many answers, after some that do not count.
fn median(mut once: impl FnMut() -> Result<f64, Failure>) -> Result<f64, Failure> {
    let mut times = Vec::with_capacity(CALLS as usize);
    for call in 0..WARMUP + CALLS {
        let ns = once()?;
        if call >= WARMUP {
            times.push(ns);
        }
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

fn by_clock(gpu: &Gpu, waits: bool) -> Result<f64, Failure> {
    median(|| {
        let start = Instant::now();
        gpu.launch()?;
        if waits {
            gpu.stream.synchronize()?;
        }
        let ns = start.elapsed().as_nanos() as f64;
        gpu.stream.synchronize()?;
        Ok(ns)
    })
}

fn in_a_loop(gpu: &Gpu) -> Result<f64, Failure> {
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

fn by_new_events(gpu: &Gpu) -> Result<f64, Failure> {
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

fn by_old_events(gpu: &Gpu) -> Result<f64, Failure> {
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

fn by_cudarc(gpu: &Gpu) -> Result<f64, Failure> {
    median(|| {
        let mut launch = gpu.stream.launch_builder(&gpu.spin);
        launch.arg(&NS).record_kernel_launch(CUevent_flags::CU_EVENT_DEFAULT);
        // SAFETY: the argument is the kernel's.
        let events = unsafe { launch.launch(ONE) }?;
        let (start, stop) = events.ok_or("it recorded nothing")?;
        Ok(f64::from(start.elapsed_ms(&stop)?) * 1e6)
    })
}

fn on_gpu() -> Result<Gpu, Failure> {
    let stream = gpu::find()?;
    let spin = stream
        .context()
        .load_module(Ptx::from_src(workloads::PTX))?
        .load_function(workloads::SPIN_NS)?;
    Ok(Gpu { stream, spin })
}
