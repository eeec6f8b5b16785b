//! The host cost of an opened call, and what opened calls leave behind.
//!
//! ```text
//! cargo bench --features kernels --bench opened
//! ```
//!
//! Compares a function of which every call is opened with the same function without the attribute,
//! in alternating batches, with the GPU synchronized in between. Then compares launches, held event
//! pairs and kernels back to back before and after. Needs a GPU and `libcupti`. Prints one table
//! and fails if a bound is missed.

#![allow(unsafe_code)] // launching a kernel is unsafe in cudarc

#[allow(dead_code, reason = "the table has kinds of bounds that are not used here")]
#[path = "../overhead/table.rs"]
mod table;

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use cudarc::driver::sys::{self, CUevent_flags};
use cudarc::driver::{CudaContext, CudaFunction, CudaStream, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use gpu_time::gpu_timed;
use gpu_time_kernels::workloads;
use table::{Bound, Figure, Table};

const LAUNCHES: [usize; 3] = [1, 16, 64];
const LABELS: [[&str; 2]; 3] = [
    ["1 launch, untimed", "1 launch, opened, over untimed"],
    ["16 launches, untimed", "16 launches, opened, over untimed"],
    ["64 launches, untimed", "64 launches, opened, over untimed"],
];
/// Calls between two synchronizations, so that the launches of a batch fit into the stream's queue.
const BATCH: usize = 8;
const BATCHES: usize = 400;
const SINGLE_THREAD: LaunchConfig =
    LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 };

struct Gpu {
    stream: Arc<CudaStream>,
    spin: CudaFunction,
}

impl Gpu {
    fn new() -> Result<Gpu, Box<dyn Error>> {
        // SAFETY: only looks for the driver library, without which cudarc would panic.
        if !unsafe { sys::is_culib_present() } {
            return Err("no CUDA driver".into());
        }
        let context = CudaContext::new(0)?;
        let stream = context.new_stream()?;
        let module = context.load_module(Ptx::from_src(workloads::PTX))?;
        Ok(Gpu { stream, spin: module.load_function(workloads::SPIN_NS)? })
    }

    fn launch(&self, ns: u64) {
        // SAFETY: the argument matches the kernel.
        let launched =
            unsafe { self.stream.launch_builder(&self.spin).arg(&ns).launch(SINGLE_THREAD) };
        launched.expect("launch a kernel");
    }
}

#[inline(never)]
fn untimed(gpu: &Gpu, launches: usize) {
    (0..launches).for_each(|_| gpu.launch(1_000));
}

#[gpu_timed]
#[inline(never)]
fn opened(gpu: &Gpu, launches: usize) {
    (0..launches).for_each(|_| gpu.launch(1_000));
}

/// Returns the mean host time of a call in a batch.
fn host_ns(gpu: &Gpu, launches: usize, call: fn(&Gpu, usize)) -> f64 {
    gpu.stream.synchronize().expect("synchronize");
    let started = Instant::now();
    (0..BATCH).for_each(|_| call(gpu, launches));
    started.elapsed().as_nanos() as f64 / BATCH as f64
}

/// Returns the event time of a spin of 5 µs behind a longer one.
fn held_pair_ns(gpu: &Gpu) -> f64 {
    let context = gpu.stream.context();
    let event = || context.new_event(Some(CUevent_flags::CU_EVENT_DEFAULT)).expect("an event");
    let (start, stop) = (event(), event());
    gpu.launch(60_000);
    start.record(&gpu.stream).expect("record");
    gpu.launch(5_000);
    stop.record(&gpu.stream).expect("record");
    gpu.stream.synchronize().expect("synchronize");
    f64::from(start.elapsed_ms(&stop).expect("two recorded events")) * 1e6
}

/// Returns the event time per kernel of a hundred spins back to back.
fn back_to_back_ns(gpu: &Gpu) -> f64 {
    let context = gpu.stream.context();
    let event = || context.new_event(Some(CUevent_flags::CU_EVENT_DEFAULT)).expect("an event");
    let (start, stop) = (event(), event());
    gpu.launch(1_500_000);
    start.record(&gpu.stream).expect("record");
    (0..100).for_each(|_| gpu.launch(3_000));
    stop.record(&gpu.stream).expect("record");
    gpu.stream.synchronize().expect("synchronize");
    f64::from(start.elapsed_ms(&stop).expect("two recorded events")) * 1e4
}

/// Measures the three things that recording could slow down.
fn leftovers(gpu: &Gpu) -> [Vec<f64>; 3] {
    let repeated = |n: usize, measure: &dyn Fn() -> f64| (0..n).map(|_| measure()).collect();
    [
        repeated(400, &|| host_ns(gpu, 16, untimed) / 16.0),
        repeated(200, &|| held_pair_ns(gpu)),
        repeated(60, &|| back_to_back_ns(gpu)),
    ]
}

fn run(gpu: &Gpu, table: &mut Table) {
    (0..50).for_each(|_| untimed(gpu, 64));
    let before = leftovers(gpu);
    for (launches, [plain, over]) in LAUNCHES.into_iter().zip(LABELS) {
        // The first opened call loads CUPTI.
        host_ns(gpu, launches, opened);
        let (mut alone, mut more) = (Vec::new(), Vec::new());
        for _ in 0..BATCHES {
            let ns = host_ns(gpu, launches, untimed);
            alone.push(ns);
            more.push(host_ns(gpu, launches, opened) - ns);
        }
        table.row(plain, Figure::of(alone), "ns", Bound::None);
        let most = 4_000.0 + 600.0 * launches as f64;
        table.row(over, Figure::of(more), "ns", Bound::AtMost(most));
    }
    let after = leftovers(gpu);
    let labels = [
        ["launch before", "launch after opened calls", "after over before"],
        ["held pair around 5 µs before", "held pair after opened calls", "after over before"],
        ["3 µs kernels back to back before", "the same after opened calls", "after over before"],
    ];
    for ((before, after), [label, label_after, ratio]) in before.into_iter().zip(after).zip(labels)
    {
        let (before, after) = (Figure::of(before), Figure::of(after));
        table.row(label, before, "ns", Bound::None);
        table.row(label_after, after, "ns", Bound::None);
        table.value(ratio, after.median / before.median, "ratio", Bound::AtMost(1.003));
    }
}

fn main() {
    // SAFETY: no other thread is running yet.
    unsafe { std::env::set_var("GPU_TIME_REPORT", "none") };
    // Arguments, such as cargo's `--bench`, are ignored.
    let mut table = Table::default();
    match Gpu::new() {
        Ok(gpu) => run(&gpu, &mut table),
        Err(why) => println!("no GPU here ({why}): nothing to measure"),
    }
    print!("{table}");
    let snapshot = gpu_time::snapshot();
    if let Some(why) = snapshot.process().kernels() {
        println!("not opened: {why}");
        std::process::exit(1);
    }
    if table.has_missed() {
        std::process::exit(1);
    }
}
