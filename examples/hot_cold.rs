//! Shows the effect of the L2 on a copy kernel in three cache states: hot, with the L2 as the
//! previous call left it; cold, with the L2 flushed before every call; and dirty, with the L2 full
//! of other lines that must be written back.
//!
//! ```text
//! cargo run --release --example hot_cold
//! ```
//!
//! This comparison is usually published for buffers half the size of the L2. Source and destination
//! then fill it completely, so a hot copy evicts lines that it is about to read: on an H200 it was
//! slower than a cold one. With buffers a quarter of the size of the L2, both fit, and hot is fast.
//!
//! Each copy runs in two grids: 32 blocks of 1,024 threads, as usually published, which cannot use
//! all of a large GPU, and a grid that fills it. Needs an NVIDIA GPU.

#![allow(unsafe_code)] // launching a kernel is unsafe in cudarc

mod gpu;

use std::error::Error;
use std::sync::Arc;

use cudarc::driver::sys::CUdevice_attribute as Attribute;
use cudarc::driver::{
    CudaFunction, CudaSlice, CudaStream, DriverError, LaunchConfig, PushKernelArg,
};
use cudarc::nvrtc::Ptx;
use gpu_time::gpu_timed;
use gpu_time_kernels::workloads;

const CALLS: usize = 110;

/// A copy kernel, with its buffers and its grid.
struct CopyKernel {
    kernel: CudaFunction,
    from: CudaSlice<u8>,
    to: CudaSlice<u8>,
    blocks: u32,
}

impl CopyKernel {
    fn launch(&mut self, stream: &CudaStream) -> Result<(), DriverError> {
        let n16 = self.from.len() as u64 / 16;
        let config = LaunchConfig {
            grid_dim: (self.blocks, 1, 1),
            block_dim: (1024, 1, 1),
            shared_mem_bytes: 0,
        };
        let mut launch = stream.launch_builder(&self.kernel);
        launch.arg(&self.from).arg(&mut self.to).arg(&n16);
        // SAFETY: the arguments match the kernel, and both buffers hold `n16` units.
        unsafe { launch.launch(config) }.map(drop)
    }
}

type TimedFn = fn(&Arc<CudaStream>, &mut CopyKernel) -> Result<(), DriverError>;

/// Defines three annotated functions for one buffer size and one grid. Each has its own row.
macro_rules! timed {
    ($name:ident: $hot:ident, $cold:ident, $dirty:ident) => {
        #[gpu_timed(warmup = 10, sleep)]
        fn $hot(stream: &Arc<CudaStream>, copy: &mut CopyKernel) -> Result<(), DriverError> {
            copy.launch(stream)
        }

        #[gpu_timed(warmup = 10, cold, sleep)]
        fn $cold(stream: &Arc<CudaStream>, copy: &mut CopyKernel) -> Result<(), DriverError> {
            copy.launch(stream)
        }

        #[gpu_timed(warmup = 10, cold = "dirty", sleep)]
        fn $dirty(stream: &Arc<CudaStream>, copy: &mut CopyKernel) -> Result<(), DriverError> {
            copy.launch(stream)
        }

        const $name: [(&str, TimedFn); 3] =
            [(stringify!($hot), $hot), (stringify!($cold), $cold), (stringify!($dirty), $dirty)];
    };
}

timed!(HALF_32: half_hot_32_blocks, half_cold_32_blocks, half_dirty_32_blocks);
timed!(HALF_FULL: half_hot_full_grid, half_cold_full_grid, half_dirty_full_grid);
timed!(QUARTER_32: quarter_hot_32_blocks, quarter_cold_32_blocks, quarter_dirty_32_blocks);
timed!(QUARTER_FULL: quarter_hot_full_grid, quarter_cold_full_grid, quarter_dirty_full_grid);

fn main() -> Result<(), Box<dyn Error>> {
    let Some(stream) = gpu::find_or_explain() else { return Ok(()) };
    let context = stream.context();
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
    // The memory transfers twice per clock cycle.
    println!("peak bandwidth  {:.0} GB/s", 2.0 * (memory_khz * bus_bytes) as f64 / 1e6);
    println!("L2              {:.1} MiB", l2 as f64 / f64::from(1 << 20));

    let module = context.load_module(Ptx::from_src(workloads::PTX))?;
    let full = blocks as u32;
    let columns = [
        ("half", 2, 32, HALF_32),
        ("half", 2, full, HALF_FULL),
        ("a quarter", 4, 32, QUARTER_32),
        ("a quarter", 4, full, QUARTER_FULL),
    ];
    let (mut sizes, mut grids) = (String::new(), String::new());
    let mut rows = ["hot", "cold", "cold, dirty"].map(|state| format!("{state:<14}"));
    for (size, part, blocks, functions) in columns {
        let zeros = || stream.alloc_zeros(l2 / part / 16 * 16);
        let kernel = module.load_function(workloads::COPY_F4)?;
        let mut copy = CopyKernel { kernel, from: zeros()?, to: zeros()?, blocks };
        sizes += &format!("{size:>14}");
        grids += &format!("{:>14}", format!("{blocks} blocks"));
        for ((name, timed), row) in functions.into_iter().zip(&mut rows) {
            (0..CALLS).try_for_each(|_| timed(&stream, &mut copy))?;
            stream.synchronize()?;
            *row += &format!("{:>11.2} µs", median_us(name));
        }
    }
    println!("\n{:<14}{sizes}\n{:<14}{grids}", "share of L2", "grid");
    println!("{}\n", rows.join("\n"));
    // The report is printed when the process exits.
    Ok(())
}

/// Returns a function's net median, or NaN without samples.
fn median_us(function: &str) -> f64 {
    let snapshot = gpu_time::snapshot();
    let site = snapshot.site(&format!("{}::{function}", module_path!()));
    let row = site.and_then(|site| site.series.iter().find(|series| series.launch.is_none()));
    row.and_then(|row| row.net_ns.as_ref()).map_or(f64::NAN, |net| net.median / 1e3)
}
