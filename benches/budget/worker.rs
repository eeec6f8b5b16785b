//! The worker process: runs the loop on request and answers with its duration.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cudarc::driver::{
    CudaContext, CudaFunction, CudaStream, DriverError, LaunchConfig, PushKernelArg,
};
use cudarc::nvrtc::Ptx;
use gpu_time::gpu_timed;
use gpu_time_kernels::workloads;

use crate::turns::Case;

/// The duration of a kernel that keeps the GPU busy for longer than a launch takes on the host.
const LONG_NS: u64 = 3_000;
/// The duration of a kernel that ends before the host has launched the next one.
const SHORT_NS: u64 = 0;
const SINGLE_THREAD: LaunchConfig =
    LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 };
/// The number of calls between two reads of the clock while the budget settles.
const BATCH: u32 = 256;

#[gpu_timed(name = "spin")]
fn spin(stream: &Arc<CudaStream>, kernel: &CudaFunction, ns: u64) -> Result<(), DriverError> {
    // SAFETY: the argument matches the kernel.
    unsafe { stream.launch_builder(kernel).arg(&ns).launch(SINGLE_THREAD) }.map(drop)
}

struct Loop {
    stream: Arc<CudaStream>,
    kernel: CudaFunction,
    case: Case,
}

impl Loop {
    fn calls(&self, calls: u32) -> Result<(), DriverError> {
        let Loop { stream, kernel, case } = self;
        (0..calls).try_for_each(|_| match case {
            Case::GpuBound => spin(stream, kernel, LONG_NS),
            Case::HostBound => spin(stream, kernel, SHORT_NS),
            Case::Synchronous => {
                spin(stream, kernel, LONG_NS)?;
                stream.synchronize()
            }
        })
    }

    /// Runs the loop for a given time and returns the nanoseconds per call.
    fn settle(&self, time: Duration) -> Result<f64, DriverError> {
        let (started, mut calls) = (Instant::now(), 0);
        while started.elapsed() < time {
            self.calls(BATCH)?;
            calls += BATCH;
        }
        self.stream.synchronize()?;
        Ok(started.elapsed().as_nanos() as f64 / f64::from(calls.max(1)))
    }

    /// Takes a turn with timing on or off: `lead` unmeasured calls, then `calls` measured ones.
    /// Returns the nanoseconds per call, and the nanoseconds by which the GPU lagged behind the
    /// host after the last call.
    fn turn(&self, is_on: bool, lead: u32, calls: u32) -> Result<[f64; 2], DriverError> {
        gpu_time::set_enabled(is_on);
        self.calls(lead)?;
        self.stream.synchronize()?;
        let started = Instant::now();
        self.calls(calls)?;
        let enqueued = Instant::now();
        self.stream.synchronize()?;
        let lag_ns = enqueued.elapsed().as_nanos() as f64;
        Ok([started.elapsed().as_nanos() as f64 / f64::from(calls.max(1)), lag_ns])
    }
}

/// Returns the number of timed calls, the nanoseconds that the budget counted for all calls on the
/// host and on the device, and the fraction of time that it charged recently.
fn counts() -> (u64, u64, u64, f64) {
    let snapshot = gpu_time::snapshot();
    let timed = snapshot.site("spin").map_or(0, |site| site.timed);
    snapshot.process.budget.map_or((timed, 0, 0, 0.0), |budget| {
        (timed, budget.host_ns, budget.device_ns, budget.cost_share)
    })
}

/// Answers each line on stdin with one on stdout, until stdin ends.
pub fn run(case: Case) -> Result<(), Box<dyn Error>> {
    let context = CudaContext::new(0)?;
    let stream = context.new_stream()?;
    // SAFETY: no memory is shared between streams here.
    unsafe { context.disable_event_tracking() };
    let kernel =
        context.load_module(Ptx::from_src(workloads::PTX))?.load_function(workloads::SPIN_NS)?;
    let spins = Loop { stream, kernel, case };
    // Pinning comes last, so that the driver's threads do not inherit it.
    pin();
    println!("{}", context.name()?);
    for request in io::stdin().lines() {
        let request = request?;
        match *request.split(' ').collect::<Vec<_>>() {
            ["settle", ms] => println!("{}", spins.settle(Duration::from_millis(ms.parse()?))?),
            ["turn", timing, lead, calls] => {
                let [ns, lag_ns] = spins.turn(timing == "on", lead.parse()?, calls.parse()?)?;
                println!("{ns} {lag_ns}");
            }
            ["count"] => {
                let (timed, host_ns, device_ns, share) = counts();
                println!("{timed} {host_ns} {device_ns} {share}");
            }
            _ => return Err(format!("unknown request `{request}`").into()),
        }
    }
    Ok(())
}

/// Pins the calling thread to the last core available to the process. This is the same core for all
/// processes, and not the one that handles most interrupts. Does nothing if the system refuses.
fn pin() {
    // SAFETY: an all-zero `cpu_set_t` is valid. Both calls get its size, and 0 means this thread.
    unsafe {
        let mut cores: libc::cpu_set_t = std::mem::zeroed();
        let size = size_of_val(&cores);
        if libc::sched_getaffinity(0, size, &raw mut cores) != 0 {
            return;
        }
        let last = (0..libc::CPU_SETSIZE as usize).rfind(|core| libc::CPU_ISSET(*core, &cores));
        if let Some(last) = last {
            libc::CPU_ZERO(&mut cores);
            libc::CPU_SET(last, &mut cores);
            libc::sched_setaffinity(0, size, &raw const cores);
        }
    }
}
