//! The host cost of recorded calls (timed calls whose kernels CUPTI records), and how much they slow the
//! process down afterwards.
//!
//! ```text
//! cargo bench --features kernels --bench opened
//! ```
//!
//! The cost is the difference between a function whose every call is recorded and the same function
//! without the attribute, in alternating batches. Between batches, the GPU is synchronized and the phase ends, because
//! it would record every launch of the process.
//!
//! The slowdown is measured in child processes. Each measures launches, held event pairs and kernels
//! back to back, records many calls, and measures again. Hosts drift by more than the bound, so control
//! processes, which make the same calls and record none, alternate with these.
//!
//! The collector is the thread that reads CUPTI's records. Its cost is the CPU time that Linux counts for it, divided
//! by the number of launches in recorded calls.
//!
//! Needs a GPU and `libcupti`. Prints one table and fails if a bound is missed.

#![allow(unsafe_code)] // launching a kernel is unsafe in cudarc

#[allow(dead_code, reason = "the table has kinds of bounds that are not used here")]
#[path = "../overhead/table.rs"]
mod table;

use std::error::Error;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use cudarc::driver::sys::{self, CUevent_flags};
use cudarc::driver::{CudaContext, CudaFunction, CudaStream, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use gpu_time::gpu_timed;
use gpu_time_kernels::workloads;
use table::{Bound, Figure, Table};

const LAUNCHES: [usize; 3] = [1, 16, 64];
const LABELS: [[&str; 2]; 3] = [
    ["1 launch, untimed", "1 launch, recorded, over untimed"],
    ["16 launches, untimed", "16 launches, recorded, over untimed"],
    ["64 launches, untimed", "64 launches, recorded, over untimed"],
];
/// Number of calls between two synchronizations: few enough for the stream's queue to hold all their
/// launches.
const BATCH: usize = 8;
const BATCHES: usize = 400;
/// The time that the end of a phase may take.
const PHASE_END: Duration = Duration::from_millis(30);
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

/// Ends the phase, which otherwise lasts as long as the process.
fn stop_recording() {
    gpu_time::set_enabled(false);
    thread::sleep(PHASE_END);
}

/// Returns the mean host time of a call in a batch.
fn host_ns(gpu: &Gpu, launches: usize, call: fn(&Gpu, usize)) -> f64 {
    gpu.stream.synchronize().expect("synchronize");
    let started = Instant::now();
    (0..BATCH).for_each(|_| call(gpu, launches));
    started.elapsed().as_nanos() as f64 / BATCH as f64
}

/// Returns the time between two events around a spin of 5 µs. A longer spin holds the stream until
/// all three are enqueued.
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

/// Returns the time per kernel of a hundred spins back to back, from events around them.
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

/// The row labels of what recorded calls could slow down: launches, held pairs, and kernels back to back.
const LEFTOVERS: [&str; 3] = [
    "launch after recorded calls, over before",
    "held pair around 5 µs after recorded calls, over before",
    "3 µs kernels back to back after recorded calls, over before",
];
/// Number of processes with recorded calls, and of control processes.
const PROCESSES: usize = 24;

fn leftovers(gpu: &Gpu) -> [f64; 3] {
    let median = |n: usize, measure: &dyn Fn() -> f64| {
        Figure::of((0..n).map(|_| measure()).collect()).median
    };
    [
        median(400, &|| host_ns(gpu, 16, untimed) / 16.0),
        median(200, &|| held_pair_ns(gpu)),
        median(60, &|| back_to_back_ns(gpu)),
    ]
}

/// Measures before and after many calls of a function, and prints the ratios, one per line.
fn print_leftovers(gpu: &Gpu, call: fn(&Gpu, usize)) {
    // Warms up, so that both measurements see the driver at its usual speed.
    let _ = leftovers(gpu);
    let before = leftovers(gpu);
    for launches in LAUNCHES {
        (0..50).for_each(|_| _ = host_ns(gpu, launches, call));
    }
    stop_recording();
    for (after, before) in leftovers(gpu).into_iter().zip(before) {
        println!("{}", after / before);
    }
}

/// Runs a process with or without recorded calls and returns its ratios.
fn process(role: &str) -> Result<[f64; 3], Box<dyn Error>> {
    let output = Command::new(std::env::current_exe()?).arg(role).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let ratios = String::from_utf8(output.stdout)?;
    let ratios = ratios.lines().map(str::parse).collect::<Result<Vec<f64>, _>>()?;
    Ok(ratios.try_into().map_err(|_| "a process printed other than three ratios")?)
}

fn compare_processes(table: &mut Table) -> Result<(), Box<dyn Error>> {
    let [mut opened, mut control] = [const { [const { Vec::new() }; 3] }; 2];
    for i in 0..2 * PROCESSES {
        // Each role comes first equally often.
        let is_opened = (i % 4 == 0) || (i % 4 == 3);
        let (role, ratios) =
            if is_opened { ("opened", &mut opened) } else { ("untimed", &mut control) };
        for (ratios, ratio) in ratios.iter_mut().zip(process(role)?) {
            ratios.push(ratio);
        }
    }
    for ((opened, control), label) in opened.into_iter().zip(control).zip(LEFTOVERS) {
        let control = Figure::of(control);
        table.row("the next, without recorded calls", control, "ratio", Bound::None);
        let opened = opened.into_iter().map(|ratio| ratio / control.median).collect();
        table.row(label, Figure::of(opened), "ratio", Bound::AtMost(1.003));
    }
    Ok(())
}

/// Returns the CPU time that the collector has used, in ns and in steps of the kernel's clock (usually 10 ms).
fn collector_ns() -> Result<f64, Box<dyn Error>> {
    // SAFETY: no pointers are involved.
    let ticks_per_s = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
    for thread in std::fs::read_dir("/proc/self/task")? {
        let stat = std::fs::read_to_string(thread?.path().join("stat"))?;
        // Linux cuts names after 15 bytes.
        let Some((_, fields)) = stat.split_once("(gpu-time-kernel) ") else { continue };
        // `utime` and `stime`, the fields 14 and 15 of proc(5), of which the name is the second.
        let ticks: Vec<u64> = fields.split(' ').skip(11).take(2).flat_map(str::parse).collect();
        return Ok(ticks.iter().sum::<u64>() as f64 / ticks_per_s * 1e9);
    }
    Ok(0.0)
}

fn run(gpu: &Gpu, table: &mut Table) -> Result<(), Box<dyn Error>> {
    (0..50).for_each(|_| untimed(gpu, 64));
    for (launches, [plain, over]) in LAUNCHES.into_iter().zip(LABELS) {
        // Warms up: the first recorded call loads CUPTI.
        host_ns(gpu, launches, opened);
        let (mut alone, mut more) = (Vec::new(), Vec::new());
        for _ in 0..BATCHES {
            stop_recording();
            let ns = host_ns(gpu, launches, untimed);
            alone.push(ns);
            gpu_time::set_enabled(true);
            more.push(host_ns(gpu, launches, opened) - ns);
        }
        table.row(plain, Figure::of(alone), "ns", Bound::None);
        let most = 4_000.0 + 600.0 * launches as f64;
        table.row(over, Figure::of(more), "ns", Bound::AtMost(most));
    }
    // A snapshot waits for the records that the collector still has to read.
    gpu_time::snapshot();
    let launches: usize =
        LAUNCHES.into_iter().map(|launches| (BATCHES + 1) * BATCH * launches).sum();
    let per_record = collector_ns()? / launches as f64;
    table.value("collector, CPU time per record", per_record, "ns", Bound::AtMost(1_000.0));
    Ok(())
}

fn main() -> ExitCode {
    // SAFETY: no other thread is running yet.
    unsafe { std::env::set_var("GPU_TIME_REPORT", "none") };
    let gpu = match Gpu::new() {
        Ok(gpu) => gpu,
        Err(why) => {
            println!("no GPU here ({why}): nothing to measure");
            return ExitCode::SUCCESS;
        }
    };
    // Other arguments, such as cargo's `--bench`, are ignored.
    match measure(&gpu, &std::env::args().nth(1).unwrap_or_default()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("opened: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the bench, or the part of a child process that `role` names. Returns `true` if all bounds are
/// met.
fn measure(gpu: &Gpu, role: &str) -> Result<bool, Box<dyn Error>> {
    let mut table = Table::default();
    match role {
        "opened" => print_leftovers(gpu, opened),
        "untimed" => print_leftovers(gpu, untimed),
        _ => {
            run(gpu, &mut table)?;
            let compared = compare_processes(&mut table);
            print!("{table}");
            compared?;
        }
    }
    if let Some(why) = gpu_time::snapshot().process.kernels.as_deref() {
        // `gpu/run.sh` parses the first part.
        let absent = if why.contains("no libcupti") { "no libcupti on this machine: " } else { "" };
        return Err(format!("{absent}nothing was recorded: {why}").into());
    }
    Ok(!table.has_missed())
}
