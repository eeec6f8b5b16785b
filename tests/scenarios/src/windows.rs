//! Programs whose devices are busy for a known share of the time, while windows are opened.

mod in_steps;

use std::ffi::c_void;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};
use std::{mem, ptr, thread};

use cudarc::driver::CudaStream;
use gpu_time::gpu_timed;
use in_steps::Windows;

use crate::child;
use crate::gpu::{Gpu, LaunchResult, Spin};
use crate::handler::raise;
use crate::later::later;
use crate::scenario::Scenario;
use crate::tally::{self, ran};
use crate::time;

pub const SCENARIOS: &[Scenario] = &[
    ("windows/busy", busy),
    ("windows/busy_in_steps", busy_in_steps),
    ("windows/around", around),
    ("windows/full_queue", full_queue),
    ("windows/asked_for", asked_for),
    ("windows/planned", planned),
    ("windows/sampled", sampled),
    ("windows/loading", loading),
    ("windows/loads", loads),
    ("windows/asked_late", asked_late),
    ("windows/raised", raised),
    ("windows/end", end),
    ("windows/ends_inside", ends_inside),
    ("windows/fork", fork),
    ("windows/devices", devices),
    ("windows/unannotated", unannotated),
    ("windows/raised_early", raised_early),
    ("windows/no_context", no_context),
    ("windows/fork_before_calls", fork_before_calls),
    ("windows/late_device", late_device),
    ("windows/start", start),
];

/// The longest wait for a window. The runtime waits up to ten seconds for its records.
const PATIENCE: Duration = Duration::from_secs(12);
/// The duration of a kernel inside an annotated function. Kernels outside take twice as long.
const NS: u64 = 20_000;
/// The same where the GPU shall be busy for most of the time: it idles for a microsecond before each kernel.
const LONG_NS: u64 = 60_000;

#[gpu_timed]
fn timed(stream: &Arc<CudaStream>, spin: &Spin, ns: u64) -> LaunchResult {
    ran!();
    spin.launch(stream, ns)
}

#[gpu_timed(sample = 0.01)]
fn rarely_timed(stream: &Arc<CudaStream>, spin: &Spin, ns: u64) -> LaunchResult {
    ran!();
    spin.launch(stream, ns)
}

#[gpu_timed(sample = 0.01)]
async fn rarely_timed_async(stream: &Arc<CudaStream>, spin: &Spin, ns: u64) -> LaunchResult {
    ran!();
    later().await;
    spin.launch(stream, ns)
}

/// Makes an opened call, for which the runtime loads CUPTI and measures empty kernels.
#[gpu_timed(clock = "kernels")]
fn opened(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, NS)
}

#[gpu_timed(clock = "host")]
fn host_only() {
    ran!();
}

/// A device with one kernel for launches inside annotated functions, and one for launches outside.
struct Program {
    gpu: Gpu,
    inside: Spin,
    outside: Spin,
}

impl Program {
    fn new(ordinal: usize) -> Program {
        let gpu = Gpu::at(ordinal);
        let (inside, outside) = (gpu.spin("windows::inside"), gpu.spin("windows::outside"));
        // The first call calibrates.
        timed(&gpu.stream, &inside, 1_000).unwrap();
        gpu.synchronize();
        Program { gpu, inside, outside }
    }

    /// Launches one kernel inside an annotated function, and one outside that takes twice as long.
    fn launch(&self, ns: u64) {
        timed(&self.gpu.stream, &self.inside, ns).unwrap();
        self.outside.launch(&self.gpu.stream, 2 * ns).unwrap();
    }

    /// Runs for the time `real`, with `depth` calls of `launch` between waits. They keep the GPU busy for
    /// the given share of the time.
    fn run(&self, share: f64, depth: u64, real: Duration) {
        self.run_kernels(NS, share, depth, real);
    }

    /// Does the same with kernels of this duration.
    fn run_kernels(&self, ns: u64, share: f64, depth: u64, real: Duration) {
        let end = Instant::now() + real;
        let mut launches = 0;
        tally::fact("began_ns", time::now_ns());
        while Instant::now() < end {
            let began_ns = time::now_ns();
            (0..depth).for_each(|_| self.launch(ns));
            launches += depth;
            self.gpu.synchronize();
            let took_ns = time::now_ns() - began_ns;
            let wanted_ns = ((3 * ns * depth) as f64 / share) as u64;
            time::pass(wanted_ns.saturating_sub(took_ns));
        }
        tally::fact("ended_ns", time::now_ns());
        // The requested time. A spin takes slightly longer.
        tally::fact("busy_ns", launches * 3 * ns);
    }

    /// Runs like `run`, but in virtual time and until all windows have been closed.
    fn run_in_steps(&self, share: f64, depth: u64) {
        let period_ns = ((3 * NS * depth) as f64 / share) as u64;
        let mut windows = Windows::new();
        tally::fact("began_ns", time::now_ns());
        while !windows.is_over() {
            let end_ns = time::now_ns() + period_ns;
            for _ in 0..depth {
                self.launch(NS);
                windows.pass_until(time::now_ns());
            }
            windows.pass_until(end_ns);
            self.gpu.synchronize();
        }
        tally::fact("ended_ns", time::now_ns());
    }
}

/// Launches kernels of 3 ms without waiting for them. Once the driver's queue of some 1,000 launches is full, each launch
/// takes as long as a kernel.
fn full_queue(_: &[String]) {
    let program = Program::new(0);
    // Records come when the queue has passed, and no more than 16 windows wait for them.
    gpu_time::configure().record("4ms/150ms").apply();
    let end = Instant::now() + Duration::from_secs(2);
    while Instant::now() < end {
        timed(&program.gpu.stream, &program.inside, 3_000_000).unwrap();
    }
    gpu_time::configure().record("off").apply();
    program.gpu.synchronize();
    tally::print();
}

/// Keeps the GPU busy for a share of the time. The arguments are the share, the number of launches between waits,
/// and an optional plan of windows, which applies only to this work: the device is idle before and after it.
fn busy(arguments: &[String]) {
    let (of_run, plan) = arguments.split_at(2);
    let (share, depth) = parse(of_run);
    // A deep queue is filled in bursts, of which a window catches few.
    let real = Duration::from_millis(if depth < 100 { 1_200 } else { 4_800 });
    let program = Program::new(0);
    plan.iter().for_each(|plan| gpu_time::configure().record(plan).apply());
    program.run_kernels(LONG_NS, share, depth, real);
    plan.iter().for_each(|_| gpu_time::configure().record("").apply());
    thread::sleep(Duration::from_millis(300));
    tally::print();
}

/// Runs like `busy`, but in virtual time and with windows that the program opens.
fn busy_in_steps(arguments: &[String]) {
    let (share, depth) = parse(arguments);
    let program = Program::new(0);
    opened(&program.gpu.stream, &program.outside).unwrap();
    program.gpu.synchronize();
    // CUPTI is loaded. From now on, there are only the phases that the program asks for.
    gpu_time::configure().record("off").apply();
    program.run_in_steps(share, depth);
    thread::sleep(Duration::from_millis(300));
    tally::print();
}

/// Runs in one call of an annotated function that is longer than all phases.
fn around(arguments: &[String]) {
    let program = Program::new(0);
    opened(&program.gpu.stream, &program.outside).unwrap();
    program.gpu.synchronize();
    let in_steps = arguments.is_empty();
    gpu_time::configure().record(if in_steps { "off" } else { "5ms/25ms" }).apply();
    whole(&program, in_steps);
    thread::sleep(Duration::from_millis(300));
    tally::print();
}

#[gpu_timed]
fn whole(program: &Program, in_steps: bool) {
    ran!();
    if in_steps {
        program.run_in_steps(0.5, 1);
    } else {
        program.run(0.5, 1, Duration::from_secs(3));
    }
}

fn parse(arguments: &[String]) -> (f64, u64) {
    let [share, depth] = arguments else { panic!("a share and a depth") };
    (share.parse().unwrap(), depth.parse().unwrap())
}

/// Asks for windows without a plan, and launches the given number of thousands of kernels after each.
fn asked_for(arguments: &[String]) {
    let thousands = arguments.first().map_or(0, |thousands| thousands.parse().unwrap());
    let program = Program::new(0);
    for asked in 1..=2 {
        gpu_time::record_phase(Duration::from_millis(30));
        program.run(0.5, 1, Duration::from_millis(100));
        // Opening a second window while the first is open would prolong the first.
        let began = Instant::now();
        while windows() < asked && began.elapsed() < PATIENCE {
            program.run(0.5, 1, Duration::from_millis(20));
        }
        for _ in 0..thousands {
            (0..1_000).for_each(|_| program.outside.launch(&program.gpu.stream, 0).unwrap());
            program.gpu.synchronize();
            thread::sleep(Duration::from_millis(2));
        }
    }
    tally::print();
}

/// Launches kernels outside of annotated functions that keep a GPU busy for half of the time, until there is
/// a window with some of them. Asks again after a window that ended before the first launch.
fn launch_until_window(gpu: &Gpu, spin: &Spin, patience: Duration, ask: impl Fn()) {
    let (began, mut seen) = (Instant::now(), 0);
    while !has_busy_window() && began.elapsed() < patience {
        if windows() > seen {
            seen = windows();
            ask();
        }
        let end = Instant::now() + Duration::from_millis(50);
        while Instant::now() < end {
            spin.launch(&gpu.stream, NS).unwrap();
            gpu.synchronize();
            time::pass(NS);
        }
    }
}

/// Calls no annotated function. Asks for a window before or after opening the device, or plans windows.
fn unannotated(arguments: &[String]) {
    let ask = || gpu_time::record_phase(Duration::from_millis(30));
    let when = arguments.first().map_or("", String::as_str);
    match when {
        "early" => ask(),
        "planned" => gpu_time::configure().record("4ms/20ms").apply(),
        _ => {}
    }
    thread::sleep(Duration::from_millis(50));
    let gpu = Gpu::new();
    let spin = gpu.spin("windows::outside");
    if when == "late" {
        ask();
    }
    launch_until_window(&gpu, &spin, Duration::from_secs(12), ask);
    tally::print();
}

/// Raises SIGUSR2 before any call has used the GPU, and waits at most the given number of seconds for a window.
fn raised_early(arguments: &[String]) {
    let patience = Duration::from_secs(arguments[0].parse().unwrap());
    let gpu = Gpu::new();
    let spin = gpu.spin("windows::outside");
    host_only();
    raise(libc::SIGUSR2);
    launch_until_window(&gpu, &spin, patience, || raise(libc::SIGUSR2));
    tally::print();
}

/// Asks for a window, and never uses CUDA.
fn no_context(_: &[String]) {
    host_only();
    gpu_time::record_phase(Duration::from_millis(10));
    thread::sleep(Duration::from_millis(100));
    tally::print();
}

/// Asks for a window and forks, before any call. The child, which lacks the thread that opens windows, makes a call.
fn fork_before_calls(_: &[String]) {
    gpu_time::record_phase(Duration::from_millis(10));
    let child = child::fork(|| {
        host_only();
        gpu_time::record_phase(Duration::from_millis(10));
        gpu_time::report();
    });
    child::assert_exits(child, 0);
    host_only();
    tally::print();
}

/// Begins to use a second device during a window, without annotated calls.
fn late_device(_: &[String]) {
    let first = Program::new(0);
    gpu_time::record_phase(Duration::from_millis(500));
    first.run(0.5, 1, Duration::from_millis(50));
    let second = Gpu::at(1);
    let spin = second.spin("windows::outside");
    launch_until_window(&second, &spin, Duration::from_secs(12), || ());
    tally::print();
}

#[gpu_timed]
fn waits_for_ever(has_begun: &mpsc::Sender<()>) {
    ran!();
    has_begun.send(()).unwrap();
    loop {
        thread::park();
    }
}

/// Records a short run, and ends while a thread is inside of a function, for which the last report waits in vain.
fn ends_inside(_: &[String]) {
    gpu_time::configure().record("on").apply();
    let program = Program::new(0);
    program.run(0.5, 1, Duration::from_millis(10));
    let (begun, has_begun) = mpsc::channel();
    thread::spawn(move || waits_for_ever(&begun));
    has_begun.recv().unwrap();
    tally::print();
}

/// Returns `true` if a planned window could not open.
fn has_missed_window() -> bool {
    let snapshot = gpu_time::snapshot();
    let found = snapshot.devices.iter().filter_map(|device| device.coverage.as_ref());
    found.map(|coverage| coverage.missed).any(|missed| missed > 0)
}

/// Returns `true` if work ran in a window.
pub fn has_busy_window() -> bool {
    let snapshot = gpu_time::snapshot();
    let found = snapshot.devices.iter().filter_map(|device| device.coverage.as_ref());
    found.map(|coverage| coverage.busy).any(|busy| busy > 0.0)
}

/// Returns the number of windows so far.
fn windows() -> u64 {
    let snapshot = gpu_time::snapshot();
    let found = snapshot.devices.iter().filter_map(|device| device.coverage.as_ref());
    found.map(|coverage| coverage.windows + coverage.incomplete).max().unwrap_or(0)
}

/// Plans windows, and runs until one is in the snapshot.
fn planned(_: &[String]) {
    let program = Program::new(0);
    gpu_time::configure().record("4ms/20ms").apply();
    let began = Instant::now();
    while windows() == 0 && began.elapsed() < PATIENCE {
        program.run(0.5, 1, Duration::from_millis(50));
    }
    tally::fact("windows", windows());
    tally::print();
}

/// Launches kernels in calls of which few are timed. An argument makes them async.
fn sampled(arguments: &[String]) {
    let program = Program::new(0);
    let (stream, spin) = (&program.gpu.stream, &program.inside);
    gpu_time::record_phase(Duration::from_millis(100));
    let end = Instant::now() + Duration::from_millis(200);
    while Instant::now() < end {
        if arguments.is_empty() {
            rarely_timed(stream, spin, NS).unwrap();
        } else {
            let mut call = pin!(rarely_timed_async(stream, spin, NS));
            while call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {}
        }
        program.gpu.synchronize();
    }
    thread::sleep(Duration::from_millis(300));
    tally::print();
}

/// Asks for a window long before there is a context.
fn loading(_: &[String]) {
    gpu_time::record_phase(Duration::from_millis(50));
    thread::sleep(Duration::from_millis(300));
    let program = Program::new(0);
    program.run(0.5, 1, Duration::from_millis(100));
    thread::sleep(Duration::from_millis(300));
    tally::print();
}

/// Plans windows while several threads load code all the time, until one is missed.
fn loads(_: &[String]) {
    const PATIENCE: Duration = Duration::from_secs(60);
    let program = Program::new(0);
    opened(&program.gpu.stream, &program.inside).unwrap();
    program.gpu.synchronize();
    gpu_time::configure().record("1ms/10ms").apply();
    let (began, is_over) = (Instant::now(), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    drop(program.gpu.spin("windows::loaded"));
                }
            });
        }
        while !has_missed_window() && began.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(20));
        }
        is_over.store(true, Relaxed);
    });
    gpu_time::configure().record("off").apply();
    tally::print();
}

/// Asks for a window after 300 ms of work.
fn asked_late(_: &[String]) {
    let program = Program::new(0);
    program.run(0.5, 1, Duration::from_millis(300));
    gpu_time::record_phase(Duration::from_millis(50));
    program.run(0.5, 1, Duration::from_millis(100));
    thread::sleep(Duration::from_millis(300));
    tally::print();
}

/// Opens a window by raising SIGUSR2, and another if the program's thread did not run in it.
fn raised(_: &[String]) {
    let program = Program::new(0);
    let (began, mut seen) = (Instant::now(), 0);
    raise(libc::SIGUSR2);
    while !has_busy_window() && began.elapsed() < PATIENCE {
        if windows() > seen {
            seen = windows();
            raise(libc::SIGUSR2);
        }
        program.run(0.5, 1, Duration::from_millis(100));
    }
    tally::print();
}

/// Ends while a window is open, with work in the queue.
fn end(_: &[String]) {
    let program = Program::new(0);
    gpu_time::record_phase(Duration::from_secs(10));
    program.run(0.5, 1, Duration::from_millis(500));
    // Longer than the process waits at its end.
    program.outside.launch(&program.gpu.stream, 3_000_000_000).unwrap();
    tally::print();
    // Without destructors, in which the driver waits for the kernel.
    std::process::exit(0);
}

/// Forks while a window is open. The child asks for another window.
fn fork(_: &[String]) {
    let program = Program::new(0);
    gpu_time::record_phase(Duration::from_millis(100));
    program.run(0.5, 1, Duration::from_millis(30));
    // SAFETY: the child makes one call and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        gpu_time::record_phase(Duration::from_millis(10));
        // SAFETY: ends the child without its exit handlers.
        unsafe { libc::_exit(0) };
    }
    let mut status = -1;
    // SAFETY: waits for the child.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
    program.run(0.5, 1, Duration::from_millis(150));
    thread::sleep(Duration::from_millis(300));
    tally::print();
}

/// Keeps two devices busy for different shares.
fn devices(_: &[String]) {
    let programs = [Program::new(0), Program::new(1)];
    gpu_time::record_phase(Duration::from_millis(100));
    let end = Instant::now() + Duration::from_millis(200);
    while Instant::now() < end {
        let began_ns = time::now_ns();
        for (program, ns) in programs.iter().zip([20_000, 10_000]) {
            program.gpu.context.bind_to_thread().unwrap();
            program.launch(ns);
            program.gpu.synchronize();
        }
        time::pass(180_000_u64.saturating_sub(time::now_ns() - began_ns));
    }
    thread::sleep(Duration::from_millis(300));
    tally::print();
}

/// Makes calls until another tool can subscribe to CUPTI, and ten more.
fn start(arguments: &[String]) {
    if arguments == ["configured"] {
        gpu_time::configure().record("start:200ms").apply();
    }
    let gpu = Gpu::new();
    let spin = gpu.spin("windows::timed");
    let deadline = Instant::now() + PATIENCE;
    while !can_subscribe() && Instant::now() < deadline {
        timed(&gpu.stream, &spin, NS).unwrap();
        gpu.synchronize();
        thread::sleep(Duration::from_millis(1));
    }
    (0..10).for_each(|_| timed(&gpu.stream, &spin, NS).unwrap());
    gpu.synchronize();
    gpu_time::record_phase(Duration::from_millis(1));
    tally::print();
}

/// Subscribes to CUPTI, if it has been loaded. Returns `true` if that succeeds.
fn can_subscribe() -> bool {
    type Subscribe =
        unsafe extern "C" fn(*mut *mut c_void, extern "C" fn(), *mut c_void) -> libc::c_int;
    extern "C" fn ignore() {}
    let mut subscriber = ptr::null_mut();
    // SAFETY: the names end in NUL, the type matches CUPTI's header, and without callbacks nothing is called.
    unsafe {
        let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
        let library = libc::dlopen(c"libcupti.so.13".as_ptr(), flags);
        if library.is_null() {
            return false;
        }
        let subscribe = libc::dlsym(library, c"cuptiSubscribe".as_ptr());
        let subscribe = mem::transmute::<*mut c_void, Subscribe>(subscribe);
        subscribe(&raw mut subscriber, ignore, ptr::null_mut()) == 0
    }
}
