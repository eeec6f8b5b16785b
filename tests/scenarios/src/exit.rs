//! The ways in which a process may end.

use std::process;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use cudarc::driver::{CudaContext, CudaStream, DriverError, sys};
use gpu_time::gpu_timed;

use crate::Scenario;
use crate::gpu::{Gpu, Spin};
use crate::tally::{self, ran};
use crate::time;

pub const SCENARIOS: &[Scenario] = &[
    ("exit/return", returns),
    ("exit/code", code),
    ("exit/code_elsewhere", code_elsewhere),
    ("exit/code_inside", code_inside),
    ("exit/panic", panics),
    ("exit/panic_inside", panics_inside),
    ("exit/panic_elsewhere", panics_elsewhere),
    ("exit/running", running),
    ("exit/unread", unread),
    ("exit/threads_at_work", threads_at_work),
    ("exit/context_dropped", context_dropped),
    ("exit/context_destroyed", context_destroyed),
    ("exit/context_reset", context_reset),
    ("exit/fork_after", fork_after),
    ("exit/fork_inside", fork_inside),
    ("exit/fork_before", fork_before),
    ("exit/after_host", after_host),
    ("exit/nobody_keeps_the_context", nobody_keeps_the_context),
    ("exit/fork_after_host", fork_after_host),
    ("exit/fork_beside_threads", fork_beside_threads),
    ("exit/abort", abort),
    ("exit/stuck", stuck),
];

#[gpu_timed]
fn timed(stream: &Arc<CudaStream>, spin: &Spin, ns: u64) -> Result<(), DriverError> {
    ran!();
    spin.launch(stream, ns)
}

#[gpu_timed(scope = "body")]
fn body(stream: &Arc<CudaStream>, spin: &Spin, then: impl FnOnce()) -> Result<(), DriverError> {
    ran!();
    spin.launch(stream, 20_000)?;
    then();
    Ok(())
}

/// With everything that the runtime has: a kernel of its own, memory that the GPU reads, a buffer.
#[gpu_timed(cold, sleep)]
fn held(stream: &Arc<CudaStream>, spin: &Spin) -> Result<(), DriverError> {
    ran!();
    spin.launch(stream, 20_000)
}

/// Enqueues nothing, so that it can be called where there is no GPU any more.
#[gpu_timed(scope = "body")]
fn quiet(stream: &Arc<CudaStream>) {
    ran!();
    let _ = stream;
}

/// Ten calls of two functions each, that the GPU has done.
fn ten(gpu: &Gpu) {
    let (spin, held_spin) = (gpu.spin("exit::timed"), gpu.spin("exit::held"));
    for _ in 0..10 {
        timed(&gpu.stream, &spin, 20_000).unwrap();
        held(&gpu.stream, &held_spin).unwrap();
    }
    gpu.synchronize();
}

fn returns(_: &[String]) {
    ten(&Gpu::new());
    tally::print();
}

fn code(_: &[String]) {
    ten(&Gpu::new());
    tally::print();
    process::exit(7);
}

fn code_elsewhere(_: &[String]) {
    thread::spawn(|| code(&[]));
    loop {
        thread::park();
    }
}

fn code_inside(_: &[String]) {
    let gpu = Gpu::new();
    ten(&gpu);
    let spin = gpu.spin("exit::body");
    body(&gpu.stream, &spin, || {
        tally::print();
        process::exit(7)
    })
    .unwrap();
}

fn panics(_: &[String]) {
    let gpu = Gpu::new();
    ten(&gpu);
    tally::print();
    panic!("as the scenario wants it");
}

fn panics_inside(_: &[String]) {
    let gpu = Gpu::new();
    ten(&gpu);
    let spin = gpu.spin("exit::body");
    body(&gpu.stream, &spin, || {
        tally::print();
        panic!("as the scenario wants it")
    })
    .unwrap();
}

/// `ignored`: main does not ask how the thread ended.
fn panics_elsewhere(arguments: &[String]) {
    let gpu = Gpu::new();
    ten(&gpu);
    let (stream, spin) = (gpu.stream.clone(), gpu.spin("exit::body"));
    let thread = thread::spawn(move || body(&stream, &spin, || panic!("as the scenario wants it")));
    if arguments == ["ignored"] {
        while !thread.is_finished() {
            thread::yield_now();
        }
    } else {
        assert!(thread.join().is_err());
    }
    tally::print();
}

/// The last call's kernel runs for so many milliseconds, and nobody waits for it.
fn running(arguments: &[String]) {
    let gpu = Gpu::new();
    ten(&gpu);
    let ms: u64 = arguments[0].parse().unwrap();
    let spin = gpu.spin("exit::timed");
    timed(&gpu.stream, &spin, ms * 1_000_000).unwrap();
    tally::print();
    process::exit(7);
}

/// Short work that the GPU has not been waited for.
fn unread(_: &[String]) {
    let gpu = Gpu::new();
    let spin = gpu.spin("exit::timed");
    for _ in 0..10 {
        timed(&gpu.stream, &spin, 20_000).unwrap();
    }
    tally::print();
    process::exit(0);
}

/// Main returns while other threads call annotated functions as fast as they can.
fn threads_at_work(_: &[String]) {
    let gpu = Gpu::new();
    ten(&gpu);
    for _ in 0..3 {
        let (stream, spin) = (gpu.new_stream(), gpu.spin("exit::timed"));
        thread::spawn(move || {
            // The driver may go at any time now, and then says so.
            while timed(&stream, &spin, 1_000).is_ok() {}
            loop {
                thread::park();
            }
        });
    }
    thread::sleep(Duration::from_millis(20));
    tally::print();
}

fn context_dropped(_: &[String]) {
    let gpu = Gpu::new();
    ten(&gpu);
    assert_eq!(Arc::strong_count(&gpu.stream), 1);
    drop(gpu);
    tally::print();
}

fn context_destroyed(_: &[String]) {
    Gpu::new();
    let mut raw = ptr::null_mut();
    // SAFETY: the driver is initialised; writes one handle.
    unsafe { sys::cuCtxCreate_v4(&raw mut raw, ptr::null_mut(), 0, 0) }.result().unwrap();
    // SAFETY: the context was just made on that device, and is given away.
    let context = unsafe { CudaContext::from_raw_context(0, 0, raw) }.unwrap();
    // SAFETY: there is one stream only.
    unsafe { context.disable_event_tracking() };
    let stream = context.new_stream().unwrap();
    let gpu = Gpu { context, stream };
    ten(&gpu);
    drop(gpu);
    tally::print();
}

/// The device is reset between two lots of calls, and its context comes back at the same address.
fn context_reset(_: &[String]) {
    let gpu = Gpu::new();
    ten(&gpu);
    // Their handles are void after the reset, and must not be given back.
    std::mem::forget(gpu);
    // SAFETY: the handle is a device's ordinal.
    unsafe { sys::cuDevicePrimaryCtxReset_v2(0) }.result().unwrap();
    ten(&Gpu::new());
    tally::print();
}

/// Forks. The child runs `child` and ends with this code; the parent waits and checks it.
fn fork(code: i32, child: impl FnOnce()) {
    // SAFETY: no other thread of the program holds a lock that the child needs.
    match unsafe { libc::fork() } {
        -1 => panic!("no fork: {}", std::io::Error::last_os_error()),
        0 => {
            child();
            process::exit(code);
        }
        pid => join(pid, code),
    }
}

/// Waits for a child and checks how it ends.
fn join(pid: libc::pid_t, code: i32) {
    let mut status = 0;
    // SAFETY: writes one integer.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    assert!(libc::WIFEXITED(status), "the child was killed: {status:#x}");
    assert_eq!(libc::WEXITSTATUS(status), code);
}

fn fork_after(_: &[String]) {
    let gpu = Gpu::new();
    ten(&gpu);
    fork(3, || {
        for _ in 0..5 {
            quiet(&gpu.stream);
        }
        gpu_time::report();
        // Whatever another thread had locked when the process was forked.
        gpu_time::configure().sample(0.5).apply();
        assert_eq!(gpu_time::snapshot().sites(), []);
        let settled = gpu_time::until_stable(gpu_time::Settle::default(), || quiet(&gpu.stream));
        assert_eq!((settled.calls(), settled.is_settled()), (1, true));
    });
    ten(&gpu);
    tally::print();
}

/// The fork happens between the two events of a call, and the child leaves the function as well.
fn fork_inside(_: &[String]) {
    let gpu = Gpu::new();
    ten(&gpu);
    let spin = gpu.spin("exit::body");
    let parent = process::id();
    fork_in(&gpu.stream, &spin, || {
        // SAFETY: as in `fork`.
        unsafe { libc::fork() }
    });
    if process::id() != parent {
        process::exit(3);
    }
    let mut status = 0;
    // SAFETY: writes one integer.
    assert!(unsafe { libc::wait(&raw mut status) } > 0);
    assert_eq!(libc::WEXITSTATUS(status), 3);
    gpu.synchronize();
    tally::print();
}

fn fork_in(stream: &Arc<CudaStream>, spin: &Spin, fork: impl FnOnce() -> i32) {
    body(stream, spin, || assert!(fork() >= 0)).unwrap();
}

fn fork_before(_: &[String]) {
    fork(3, || {
        let gpu = Gpu::new();
        let spin = gpu.spin("exit::timed");
        for _ in 0..3 {
            timed(&gpu.stream, &spin, 20_000).unwrap();
        }
        gpu.synchronize();
    });
    ten(&Gpu::new());
    tally::print();
}

#[gpu_timed(clock = "host")]
fn host<T>(inside: impl FnOnce() -> T) -> T {
    inside()
}

/// Nothing but the host was timed before, and CUDA comes only in the child.
/// The host's clock times before there is a driver, whose own exit handler comes after what was
/// registered then. Samples are unread when the process ends.
fn after_host(_: &[String]) {
    host(|| ran!("scenario::exit::host"));
    let gpu = Gpu::new();
    let spin = gpu.spin("exit::timed");
    for _ in 0..10 {
        timed(&gpu.stream, &spin, 20_000).unwrap();
    }
    gpu.synchronize();
    tally::print();
}

/// As in many a `main`: what the expression makes is gone before the body begins, and what the body
/// makes before the bracket ends.
#[gpu_timed(stream = CudaContext::new(0)?.default_stream(), scope = "body")]
fn published() -> Result<(), DriverError> {
    ran!();
    let gpu = Gpu::new();
    gpu.spin("exit::published").launch(&gpu.context.default_stream(), 20_000)?;
    gpu.context.default_stream().synchronize()
}

fn nobody_keeps_the_context(_: &[String]) {
    published().unwrap();
    tally::print();
}

fn fork_after_host(_: &[String]) {
    host(|| ran!("scenario::exit::host"));
    fork(3, || {
        host(|| ());
        ten(&Gpu::new());
        gpu_time::report();
        assert_eq!(gpu_time::snapshot().sites(), []);
    });
    host(|| ran!("scenario::exit::host"));
    tally::print();
}

/// Children end inside and outside of a function while other threads of the parent are in the middle of
/// calls and reports, which nobody in a child brings to an end.
fn fork_beside_threads(_: &[String]) {
    static IS_OVER: AtomicBool = AtomicBool::new(false);
    host(|| ());
    let at_work = || {
        let mut calls = 0;
        while !IS_OVER.load(Relaxed) {
            host(|| ());
            calls += 1;
        }
        calls
    };
    let threads = [thread::spawn(at_work), thread::spawn(at_work)];
    let reader = thread::spawn(|| {
        while !IS_OVER.load(Relaxed) {
            gpu_time::snapshot();
        }
    });
    let forks = 100;
    for _ in 0..forks {
        host(|| fork(3, || ()));
        fork(3, || host(|| gpu_time::set_enabled(true)));
        // What the child leaves, its parent entered.
        let parent = process::id();
        // SAFETY: as in `fork`.
        let child = host(|| unsafe { libc::fork() });
        if process::id() != parent {
            process::exit(3);
        }
        join(child, 3);
    }
    IS_OVER.store(true, Relaxed);
    reader.join().unwrap();
    let calls: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    tally::count_runs("scenario::exit::host", 1 + calls + 2 * forks);
    tally::print();
}

fn abort(_: &[String]) {
    ten(&Gpu::new());
    tally::print();
    process::abort();
}

/// Another thread's first call does not come back from the driver; by the virtual time that its wait will
/// have taken, it is there.
fn stuck(arguments: &[String]) {
    let hang_ns = arguments[0].parse().expect("a time");
    let gpu = Gpu::new();
    let (stream, spin) = (gpu.stream.clone(), gpu.spin("exit::timed"));
    thread::spawn(move || timed(&stream, &spin, 20_000));
    time::wait_until(hang_ns);
    tally::print();
}
