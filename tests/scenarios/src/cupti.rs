//! Programs in situations that are difficult for CUPTI: forks, destroyed contexts, other tools.

use std::sync::{Arc, Barrier, OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use cudarc::driver::{CudaSlice, CudaStream};
use cudarc::nvrtc::Ptx;
use gpu_time::gpu_timed;

use crate::child;
use crate::gpu::{self, Gpu, LaunchResult, Spin};
use crate::scenario::Scenario;
use crate::tally::{self, ran};

pub const SCENARIOS: &[Scenario] = &[
    ("cupti/version", version),
    ("cupti/forked", forked),
    ("cupti/context_gone", context_gone),
    ("cupti/retried", retried),
    ("cupti/busy_exit", busy_exit),
    ("cupti/late_work", late_work),
    ("cupti/memory", memory),
    ("cupti/window", window),
    ("cupti/beside", beside),
    ("cupti/mixed", mixed),
    ("cupti/mixed_devices", mixed_devices),
];

#[gpu_timed]
fn timed(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 20_000)
}

/// Launches on a stream that the macro does not know, so that CUPTI records the kernels.
#[gpu_timed]
fn recorded(work: &Work) -> LaunchResult {
    ran!();
    work.spin.launch(&work.stream, 20_000)
}

#[gpu_timed]
fn nothing() {
    ran!();
}

struct Work {
    stream: Arc<CudaStream>,
    spin: Spin,
}

impl Work {
    fn new(gpu: &Gpu) -> Work {
        Work { stream: gpu.stream.clone(), spin: gpu.spin("cupti::recorded") }
    }

    fn call(&self, times: usize) {
        (0..times).for_each(|_| recorded(self).unwrap());
    }
}

/// Forks while records are outstanding. The child calls a timed function, but does not use the GPU.
fn forked(_: &[String]) {
    let gpu = Gpu::new();
    let work = Work::new(&gpu);
    work.call(5);
    let child = child::fork(|| (0..5).for_each(|_| nothing()));
    child::assert_exits(child, 0);
    work.call(5);
    gpu.synchronize();
    tally::print();
}

/// Destroys the context while records are outstanding, and continues in a new context.
fn context_gone(_: &[String]) {
    let gpu = Gpu::new();
    Work::new(&gpu).call(5);
    gpu::reset_primary_context();
    std::mem::forget(gpu);
    let gpu = Gpu::new();
    Work::new(&gpu).call(5);
    gpu.synchronize();
    tally::print();
}

/// Makes calls before and after a report.
fn retried(_: &[String]) {
    let gpu = Gpu::new();
    let work = Work::new(&gpu);
    work.call(5);
    gpu.synchronize();
    gpu_time::report();
    work.call(7);
    gpu.synchronize();
    tally::print();
}

#[gpu_timed]
fn sets_memory(work: &Work, memory: &mut CudaSlice<u8>) -> LaunchResult {
    ran!();
    work.stream.memset_zeros(memory)?;
    work.spin.launch(&work.stream, 20_000)
}

#[gpu_timed]
fn copies_memory(work: &Work, memory: &mut CudaSlice<u8>) -> LaunchResult {
    ran!();
    work.stream.memcpy_htod(&[1; 64], memory)?;
    work.spin.launch(&work.stream, 20_000)
}

/// Alternates calls with memsets, with copies and with kernels alone.
fn memory(_: &[String]) {
    let gpu = Gpu::new();
    let work = Work::new(&gpu);
    let mut memory = gpu.stream.alloc_zeros::<u8>(64).unwrap();
    for _ in 0..10 {
        sets_memory(&work, &mut memory).unwrap();
        copies_memory(&work, &mut memory).unwrap();
        work.call(1);
        gpu.synchronize();
    }
    tally::fact("in_flight", tally::in_flight());
    tally::print();
}

/// Sets memory until a window has ended and has been evaluated.
fn window(_: &[String]) {
    // The runtime waits up to ten seconds for a window's records.
    const PATIENCE: Duration = Duration::from_secs(12);
    let gpu = Gpu::new();
    let work = Work::new(&gpu);
    let mut memory = gpu.stream.alloc_zeros::<u8>(64).unwrap();
    let windows = || {
        let snapshot = gpu_time::snapshot();
        let coverage = snapshot.devices.iter().filter_map(|device| device.coverage.as_ref());
        coverage.map(|coverage| coverage.windows + coverage.incomplete).sum::<u64>()
    };
    work.call(1);
    gpu_time::record_phase(Duration::from_millis(100));
    let began = Instant::now();
    while windows() == 0 && began.elapsed() < PATIENCE {
        gpu.stream.memset_zeros(&mut memory).unwrap();
        gpu.synchronize();
        thread::sleep(Duration::from_millis(1));
    }
    tally::print();
}

/// Makes held calls on a stream: `alone` of them first, then `beside` while another thread is inside an opened call.
fn beside(arguments: &[String]) {
    let [alone, beside] = [0, 1].map(|at| arguments[at].parse::<usize>().unwrap());
    let gpu = Gpu::new();
    let spin = gpu.spin("cupti::held");
    let calls = |times| {
        (0..times).for_each(|_| {
            held(&gpu.stream, &spin).unwrap();
            gpu.synchronize();
        });
    };
    calls(alone);
    thread::scope(|scope| {
        let (open, opened) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let work = Work { stream: gpu.new_stream(), spin: gpu.spin("cupti::long") };
        scope.spawn(move || {
            long(&work, || {
                open.send(()).unwrap();
                ended.recv().unwrap();
            })
        });
        opened.recv().unwrap();
        calls(beside);
        end.send(()).unwrap();
    });
    gpu.synchronize();
    tally::print();
}

#[gpu_timed(scope = "body", sleep)]
fn held(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 5_000)
}

#[gpu_timed]
fn long(work: &Work, meanwhile: impl FnOnce()) {
    ran!();
    work.spin.launch(&work.stream, 5_000).unwrap();
    meanwhile();
}

/// Times functions with a stream by events, and functions without a stream by CUPTI. The argument gives the order.
fn mixed(arguments: &[String]) {
    let gpu = Gpu::new();
    let work = Work::new(&gpu);
    let spin = gpu.spin("cupti::timed");
    let by_events = || (0..10).for_each(|_| timed(&gpu.stream, &spin).unwrap());
    if arguments[0] == "events first" {
        by_events();
        gpu.synchronize();
        work.call(10);
    } else {
        work.call(10);
        gpu.synchronize();
        by_events();
    }
    gpu.synchronize();
    tally::print();
}

#[gpu_timed(scope = "body")]
fn around(stream: &Arc<CudaStream>, meanwhile: impl FnOnce()) {
    ran!();
    meanwhile();
}

/// Times functions on two devices by events. CUPTI comes into use during a call on the first device, so the runtime
/// cannot measure the CUPTI times of empty kernels there yet. On the second device, it measures them at once.
fn mixed_devices(_: &[String]) {
    let by_events = |gpu: &Gpu| {
        let spin = gpu.spin("cupti::timed");
        (0..10).for_each(|_| timed(&gpu.stream, &spin).unwrap());
        gpu.synchronize();
    };
    let first = Gpu::at(0);
    let work = Work::new(&first);
    by_events(&first);
    let (begun, done) = (Barrier::new(2), Barrier::new(2));
    thread::scope(|scope| {
        scope.spawn(|| {
            first.context.bind_to_thread().unwrap();
            around(&first.stream, || {
                begun.wait();
                done.wait();
            });
        });
        begun.wait();
        work.call(1);
        done.wait();
    });
    first.synchronize();
    let second = Gpu::at(1);
    by_events(&second);
    first.context.bind_to_thread().unwrap();
    work.call(10);
    first.synchronize();
    tally::print();
}

/// Ends the process in a window, while other threads make calls and load code.
fn busy_exit(_: &[String]) {
    let gpu = Gpu::new();
    for number in 0..6 {
        let work = Work { stream: gpu.new_stream(), spin: gpu.spin("cupti::recorded") };
        let gpu = Gpu { context: gpu.context.clone(), stream: gpu.stream.clone() };
        thread::spawn(move || {
            loop {
                // During the exit, the driver refuses these calls.
                if number == 0 {
                    let ptx = gpu_time_kernels::PTX.to_str().unwrap();
                    _ = gpu.context.load_module(Ptx::from_src(ptx));
                }
                if let Ok(mut memory) = work.stream.alloc_zeros::<u8>(64) {
                    _ = sets_memory(&work, &mut memory);
                }
                _ = recorded(&work);
            }
        });
    }
    gpu_time::record_phase(Duration::from_secs(3));
    thread::sleep(Duration::from_millis(200));
    tally::print();
}

static LATE: OnceLock<(Gpu, Work)> = OnceLock::new();

/// Uses the GPU after the exit handlers of the runtime and of CUPTI have run, but before the driver's. The
/// process ends in a window.
fn late_work(_: &[String]) {
    extern "C" fn work_late() {
        let (gpu, work) = LATE.get().unwrap();
        let mut memory = gpu.stream.alloc_zeros::<u8>(64).unwrap();
        gpu.stream.memcpy_htod(&[1; 64], &mut memory).unwrap();
        work.call(1_000);
        gpu.synchronize();
        std::mem::forget(memory);
    }
    let gpu = Gpu::new();
    let work = Work::new(&gpu);
    _ = LATE.set((gpu, work));
    // SAFETY: the handler does not unwind into the C library: a panic aborts.
    unsafe { libc::atexit(work_late) };
    let (gpu, work) = LATE.get().unwrap();
    work.call(5);
    gpu_time::record_phase(Duration::from_secs(3));
    thread::sleep(Duration::from_millis(50));
    work.call(5);
    gpu.synchronize();
    tally::print();
}

/// Records the version of the library with this file name, if it can be loaded.
fn version(arguments: &[String]) {
    type GetVersion = unsafe extern "C" fn(*mut u32) -> u32;
    let gpu = Gpu::new();
    timed(&gpu.stream, &gpu.spin("cupti::timed")).unwrap();
    gpu.synchronize();
    let file = std::ffi::CString::new(arguments[0].as_str()).unwrap();
    let mut version = 0;
    // SAFETY: the name ends in NUL, and the type matches CUPTI's header.
    unsafe {
        let library = libc::dlopen(file.as_ptr(), libc::RTLD_NOW);
        if !library.is_null() {
            let function = libc::dlsym(library, c"cuptiGetVersion".as_ptr());
            let function = std::mem::transmute::<*mut libc::c_void, GetVersion>(function);
            assert_eq!(function(&mut version), 0);
        }
    }
    tally::fact("version", version);
    tally::print();
}
