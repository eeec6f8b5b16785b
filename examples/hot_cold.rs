//! Copies half the L2 into the other half: with what the call before left in the L2, with the L2
//! emptied before every call, and with the L2 full of other lines that have to be written back.
//!
//! ```text
//! cargo run --release --example hot_cold
//! ```
//!
//! Both halves together are the whole of it, so that a hot copy evicts some of what it is about to
//! read, and need not be faster than a cold one.
//!
//! Once in 32 blocks of 1,024 threads, as this comparison is usually published, which cannot use all
//! of a large GPU, and once in a grid that fills it. On a machine without an NVIDIA GPU it says so.

#![allow(unsafe_code)] // launching a kernel is unsafe in cudarc

use std::error::Error;
use std::sync::Arc;

use cudarc::driver::sys::{self, CUdevice_attribute as Attribute};
use cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, DriverError, LaunchConfig, PushKernelArg,
};
use cudarc::nvrtc::Ptx;
use gpu_time::gpu_timed;
use gpu_time_kernels::workloads;

const CALLS: usize = 110;

/// A kernel that copies, with its buffers and its grid.
struct Copy {
    kernel: CudaFunction,
    from: CudaSlice<u8>,
    to: CudaSlice<u8>,
    blocks: u32,
}

impl Copy {
    fn launch(&mut self, stream: &CudaStream) -> Result<(), DriverError> {
        let n16 = self.from.len() as u64 / 16;
        let config = LaunchConfig {
            grid_dim: (self.blocks, 1, 1),
            block_dim: (1024, 1, 1),
            shared_mem_bytes: 0,
        };
        let mut launch = stream.launch_builder(&self.kernel);
        launch.arg(&self.from).arg(&mut self.to).arg(&n16);
        // SAFETY: the arguments are those of the kernel, and both buffers hold `n16` units.
        unsafe { launch.launch(config) }.map(drop)
    }
}

#[gpu_timed(warmup = 10, sleep)]
fn hot_32_blocks(stream: &Arc<CudaStream>, copy: &mut Copy) -> Result<(), DriverError> {
    copy.launch(stream)
}

#[gpu_timed(warmup = 10, cold, sleep)]
fn cold_32_blocks(stream: &Arc<CudaStream>, copy: &mut Copy) -> Result<(), DriverError> {
    copy.launch(stream)
}

#[gpu_timed(warmup = 10, cold = "dirty", sleep)]
fn cold_dirty_32_blocks(stream: &Arc<CudaStream>, copy: &mut Copy) -> Result<(), DriverError> {
    copy.launch(stream)
}

#[gpu_timed(warmup = 10, sleep)]
fn hot_full_grid(stream: &Arc<CudaStream>, copy: &mut Copy) -> Result<(), DriverError> {
    copy.launch(stream)
}

#[gpu_timed(warmup = 10, cold, sleep)]
fn cold_full_grid(stream: &Arc<CudaStream>, copy: &mut Copy) -> Result<(), DriverError> {
    copy.launch(stream)
}

#[gpu_timed(warmup = 10, cold = "dirty", sleep)]
fn cold_dirty_full_grid(stream: &Arc<CudaStream>, copy: &mut Copy) -> Result<(), DriverError> {
    copy.launch(stream)
}

fn main() -> Result<(), Box<dyn Error>> {
    let (context, stream) = match on_gpu() {
        Ok(gpu) => gpu,
        Err(why) => {
            println!("no GPU here ({why}): there is no L2 to be hot or cold");
            return Ok(());
        }
    };
    let attribute = |attribute| context.attribute(attribute).map(|value| value as usize);
    let l2 = attribute(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?;
    let blocks = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?
        * attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?
        / 1024;
    let memory_khz = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)?;
    let bus_bytes = attribute(Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)? / 8;
    let dram = context.total_mem()?;

    println!("device          {}", context.name()?);
    println!("DRAM            {:.1} GiB", dram as f64 / f64::from(1 << 30));
    // Two transfers a clock.
    println!("peak bandwidth  {:.0} GB/s", 2.0 * (memory_khz * bus_bytes) as f64 / 1e6);
    println!("L2              {:.1} MiB, of which a copy reads half and writes half", mib(l2));

    let zeros = || stream.alloc_zeros(l2 / 2 / 16 * 16);
    let module = context.load_module(Ptx::from_src(workloads::PTX))?;
    let kernel = module.load_function(workloads::COPY_F4)?;
    let mut copy = Copy { kernel, from: zeros()?, to: zeros()?, blocks: 32 };
    for timed in [hot_32_blocks, cold_32_blocks, cold_dirty_32_blocks] {
        repeat(|| timed(&stream, &mut copy))?;
    }
    copy.blocks = blocks as u32;
    for timed in [hot_full_grid, cold_full_grid, cold_dirty_full_grid] {
        repeat(|| timed(&stream, &mut copy))?;
    }
    stream.synchronize()?;

    println!("\n{:<14} {:>12} {:>12}", "", "32 blocks", format!("{blocks} blocks"));
    for (state, functions) in [
        ("hot", ["hot_32_blocks", "hot_full_grid"]),
        ("cold", ["cold_32_blocks", "cold_full_grid"]),
        ("cold, dirty", ["cold_dirty_32_blocks", "cold_dirty_full_grid"]),
    ] {
        let [narrow, full] = functions.map(median_us);
        println!("{state:<14} {narrow:>9.2} µs {full:>9.2} µs");
    }
    println!();
    // The report comes by itself when the process ends.
    Ok(())
}

fn on_gpu() -> Result<(Arc<CudaContext>, Arc<CudaStream>), Box<dyn Error>> {
    // SAFETY: looks for the driver's library; without it cudarc would panic.
    if !unsafe { sys::is_culib_present() } {
        return Err("no CUDA driver".into());
    }
    let context = CudaContext::new(0)?;
    let stream = context.new_stream()?;
    // One stream is all there is, so cudarc need not order several.
    // SAFETY: every slice is used on this stream alone.
    unsafe { context.disable_event_tracking() };
    Ok((context, stream))
}

fn repeat(mut call: impl FnMut() -> Result<(), DriverError>) -> Result<(), DriverError> {
    (0..CALLS).try_for_each(|_| call())
}

fn mib(bytes: usize) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// The median of a function's calls, net; NaN without samples.
fn median_us(function: &str) -> f64 {
    let snapshot = gpu_time::snapshot();
    let site = snapshot.site(&format!("{}::{function}", module_path!()));
    let row = site.and_then(|site| site.series().iter().find(|series| series.launch().is_none()));
    row.and_then(|row| row.net_ns()).map_or(f64::NAN, |net| net.median() / 1e3)
}
