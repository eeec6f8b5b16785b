//! What a budget of 1 % slows a program down by: a loop of 3 µs kernels that never waits.
//!
//! ```text
//! cargo bench --bench budget
//! ```
//!
//! The same program runs again and again as a process of its own: with the budget, with timing off, and
//! with timing off once more, in turn. The second of these says how far two runs differ that should not.
//! Prints what each loses against the first run with timing off, and fails where a bound is missed.

#![allow(unsafe_code)] // launching a kernel is unsafe in cudarc

use std::error::Error;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cudarc::driver::{
    CudaContext, CudaFunction, CudaStream, DriverError, LaunchConfig, PushKernelArg, sys,
};
use cudarc::nvrtc::Ptx;
use gpu_time::gpu_timed;
use gpu_time_kernels::workloads;

/// Set in the processes that run the loop.
const LOOP: &str = "GPU_TIME_BENCH_LOOP";
const ROUNDS: usize = 7;
const WARM_UP: Duration = Duration::from_secs(1);
const CALLS: u32 = 1_500_000;
const NS: u64 = 3_000;
const ONE: LaunchConfig =
    LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 };

/// What is compared, by what its environment says, and what it may lose, in percent.
const RUNS: [(&str, &str, &str, f64); 3] = [
    ("off", "GPU_TIME", "off", 0.0),
    ("budget of 1 %", "GPU_TIME_BUDGET", "1%", 1.2),
    ("off again", "GPU_TIME", "off", 0.2),
];

#[gpu_timed]
fn spin(stream: &Arc<CudaStream>, kernel: &CudaFunction) -> Result<(), DriverError> {
    // SAFETY: the argument is the kernel's.
    unsafe { stream.launch_builder(kernel).arg(&NS).launch(ONE) }.map(drop)
}

/// The loop, by its nanoseconds a call.
fn run() -> Result<f64, Box<dyn Error>> {
    let context = CudaContext::new(0)?;
    let stream = context.new_stream()?;
    // SAFETY: no memory is shared between streams here.
    unsafe { context.disable_event_tracking() };
    let kernel =
        context.load_module(Ptx::from_src(workloads::PTX))?.load_function(workloads::SPIN_NS)?;
    // What is done once in a process, and the clock ramp.
    let started = Instant::now();
    while started.elapsed() < WARM_UP {
        spin(&stream, &kernel)?;
    }
    stream.synchronize()?;
    let started = Instant::now();
    for _ in 0..CALLS {
        spin(&stream, &kernel)?;
    }
    stream.synchronize()?;
    Ok(started.elapsed().as_nanos() as f64 / f64::from(CALLS))
}

/// The loop in a process of its own.
fn child(variable: &str, value: &str) -> Result<f64, Box<dyn Error>> {
    let mut command = Command::new(std::env::current_exe()?);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("GPU_TIME") {
            command.env_remove(name);
        }
    }
    command.env(LOOP, "").env("GPU_TIME_REPORT", "none").env(variable, value);
    let output = command.output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    said.trim().parse().map_err(|_| {
        format!("the loop said `{said}`{}", String::from_utf8_lossy(&output.stderr)).into()
    })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<(), Box<dyn Error>> {
    if std::env::var_os(LOOP).is_some() {
        println!("{}", run()?);
        return Ok(());
    }
    // SAFETY: looks for the driver's library; without it cudarc would panic.
    if !unsafe { sys::is_culib_present() } {
        println!("no GPU here (no CUDA driver): nothing was timed");
        return Ok(());
    }
    let mut times: [Vec<f64>; RUNS.len()] = Default::default();
    for _ in 0..ROUNDS {
        for ((_, variable, value, _), times) in RUNS.iter().zip(&mut times) {
            times.push(child(variable, value)?);
        }
    }
    println!("{:<16} {:>10} {:>9} {:>9} {:>9}  bound", "", "ns a call", "median", "least", "most");
    let mut has_missed = false;
    for ((what, _, _, bound), own) in RUNS.iter().zip(&times) {
        let losses: Vec<f64> =
            own.iter().zip(&times[0]).map(|(own, off)| 100.0 * (own / off - 1.0)).collect();
        let least = losses.iter().copied().fold(f64::INFINITY, f64::min);
        let most = losses.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (loss, ns) = (median(losses), median(own.clone()));
        let is_missed = if *bound > 1.0 { loss > *bound } else { loss.abs() > *bound };
        has_missed |= is_missed;
        let verdict = if is_missed { "MISSED" } else { "ok" };
        println!(
            "{what:<16} {ns:>10.1} {loss:>8.2}% {least:>8.2}% {most:>8.2}%  {bound}% {verdict}"
        );
    }
    if has_missed {
        return Err("a bound was missed".into());
    }
    Ok(())
}
