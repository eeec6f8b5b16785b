//! Shows per-launch rows: average, median, minimum and maximum of two kernels that one function
//! launches.
//!
//! ```text
//! cargo run --release --example two_kernels
//! ```
//!
//! The function has one attribute; each launch in it has its own row. Needs an NVIDIA GPU.

#![allow(unsafe_code)] // launching a kernel is unsafe in cudarc

mod gpu;

use std::error::Error;
use std::sync::Arc;

use cudarc::driver::{
    CudaFunction, CudaSlice, CudaStream, DriverError, LaunchConfig, PushKernelArg,
};
use cudarc::nvrtc::Ptx;
use gpu_time::gpu_timed;
use gpu_time_kernels::workloads;

const LEN: usize = 4 << 20;
const WARMUP: u32 = 10;
const CALLS: u32 = 100;

struct Kernels {
    copy: CudaFunction,
    saxpy: CudaFunction,
    x: CudaSlice<f32>,
    y: CudaSlice<f32>,
}

/// Copies `x` into `y` and adds `2 * x` to it.
#[gpu_timed(warmup = WARMUP, sleep)]
fn step(stream: &Arc<CudaStream>, k: &mut Kernels) -> Result<(), DriverError> {
    let (len, n16, two) = (LEN as u32, LEN as u64 / 4, 2.0_f32);
    let config = LaunchConfig::for_num_elems(len / 4);

    let mut copy = stream.launch_builder(&k.copy);
    copy.arg(&k.x).arg(&mut k.y).arg(&n16);
    // SAFETY: the arguments match the kernel, and both vectors hold `n16` units.
    unsafe { copy.launch(config) }?;

    let mut saxpy = stream.launch_builder(&k.saxpy);
    saxpy.arg(&len).arg(&two).arg(&k.x).arg(&mut k.y);
    // SAFETY: the arguments match the kernel, and both vectors hold `len` elements.
    unsafe { saxpy.launch(config) }?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let Some(stream) = gpu::find_or_explain() else { return Ok(()) };
    let module = stream.context().load_module(Ptx::from_src(workloads::PTX))?;
    let mut kernels = Kernels {
        copy: module.load_function(workloads::COPY_F4)?,
        saxpy: module.load_function(workloads::SAXPY)?,
        x: stream.clone_htod(&vec![1.0; LEN])?,
        y: stream.alloc_zeros(LEN)?,
    };
    for _ in 0..WARMUP + CALLS {
        step(&stream, &mut kernels)?;
    }
    let y = stream.clone_dtoh(&kernels.y)?;
    assert!(y.iter().all(|&y| y == 3.0), "copy and saxpy computed {:?}…, not 3", &y[..4]);
    println!("both kernels ran {} times, all results are correct\n", WARMUP + CALLS);

    println!("{:<8} {:>9} {:>9} {:>9} {:>9}  µs", "", "average", "median", "minimum", "maximum");
    let snapshot = gpu_time::snapshot();
    let site = snapshot.site(concat!(module_path!(), "::step")).ok_or("`step` was never called")?;
    for series in &site.series {
        let (Some(launch), Some(net)) = (series.launch.as_ref(), series.net_ns.as_ref()) else {
            continue;
        };
        let kernel = ["copy", "saxpy"][launch.index as usize];
        let [average, median, min, max] =
            [net.mean, net.median, net.min, net.max].map(|ns| ns / 1e3);
        println!("{kernel:<8} {average:>9.2} {median:>9.2} {min:>9.2} {max:>9.2}");
    }
    println!();
    // The report is printed when the process exits.
    Ok(())
}
