//! The host time of a launch before, while and after CUPTI records, and after CUPTI is detached.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use comfy_table::{CellAlignment, presets};
use cudarc::driver::CudaFunction;
use gpu_time_kernels::EMPTY;
use serde::{Deserialize, Serialize};

use crate::child;
use crate::cupti::{Cupti, Order};
use crate::failure::Failure;
use crate::figure::Figure;
use crate::gpu::{Gpu, ONE, is_present};

/// Processes differ by a few percent, so the medians of several are shown.
const PROCESSES: usize = 10;
/// The number of launches between two waits for the stream. Its queue has room for all of them.
const BATCH: u32 = 128;
const BATCHES: usize = 200;
const LIMIT: Duration = Duration::from_secs(60);
const STATES: [&str; 6] =
    ["before", "loaded", "recording", "after it", "after it, with a callback", "detached"];

/// The time of a launch in each of [`STATES`], in nanoseconds.
#[derive(Serialize, Deserialize)]
pub struct Times([f64; STATES.len()]);

/// Prints a row for each state. Fails without a GPU or CUPTI.
pub fn compare() -> Result<ExitCode, Failure> {
    if !is_present() {
        return Err("no GPU here".into());
    }
    let mut times = STATES.map(|_| Vec::new());
    for _ in 0..PROCESSES {
        let Times(of) =
            child::parse(&child::run(&mut child::role(&["leftover", "once"])?, LIMIT)?)?;
        times.iter_mut().zip(of).for_each(|(times, ns)| times.push(ns));
    }
    let mut table = comfy_table::Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table.set_header(["CUPTI", "a launch on the host, ns"]);
    if let Some(column) = table.column_mut(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for (state, times) in STATES.into_iter().zip(times) {
        let ns = Figure::of(times).ok_or("there was no process")?;
        table.add_row([state.to_owned(), ns.to_string()]);
    }
    println!("{table}");
    Ok(ExitCode::SUCCESS)
}

/// Measures in this process.
pub fn once() -> Result<Times, Failure> {
    let gpu = Gpu::new()?;
    let kernel = gpu.runtime_kernel(EMPTY)?;
    let launch = || launch_ns(&gpu, &kernel);
    launch()?; // the driver's first launches are slower
    let before = launch()?;
    let cupti = Cupti::load()?;
    let loaded = launch()?;
    cupti.switch(true, Order::KernelsAround)?;
    let recording = launch()?;
    cupti.switch(false, Order::KernelsAround)?;
    let after = launch()?;
    cupti.call_back_launches()?;
    let called_back = launch()?;
    // SAFETY: the process has no other thread that uses the driver, and no graph.
    unsafe { cupti.detach() }?;
    Ok(Times([before, loaded, recording, after, called_back, launch()?]))
}

/// Returns the median over batches, on one core.
fn launch_ns(gpu: &Gpu, kernel: &CudaFunction) -> Result<f64, Failure> {
    let mut times = Vec::with_capacity(BATCHES);
    let _pinned = Pinned::new();
    for _ in 0..BATCHES {
        gpu.stream.synchronize()?;
        let start = Instant::now();
        for _ in 0..BATCH {
            // SAFETY: the kernel has no parameters.
            unsafe { gpu.stream.launch_builder(kernel).launch(ONE) }?;
        }
        times.push(start.elapsed().as_nanos() as f64 / f64::from(BATCH));
    }
    gpu.stream.synchronize()?;
    Ok(Figure::of(times).ok_or("there was no batch")?.median)
}

/// Keeps the thread on its current core, because other cores have other caches. Threads that begin
/// meanwhile would stay there too.
struct Pinned(libc::cpu_set_t);

impl Pinned {
    fn new() -> Pinned {
        // SAFETY: a set of zeros is valid, and both calls get the size of theirs.
        unsafe {
            let mut before: libc::cpu_set_t = std::mem::zeroed();
            libc::sched_getaffinity(0, size_of_val(&before), &raw mut before);
            let mut one: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(libc::sched_getcpu().try_into().unwrap_or(0), &mut one);
            // Without permission the times vary more.
            libc::sched_setaffinity(0, size_of_val(&one), &raw const one);
            Pinned(before)
        }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: the call gets the size of the set.
        unsafe { libc::sched_setaffinity(0, size_of_val(&self.0), &raw const self.0) };
    }
}
