//! The ways in which a process can end.

use std::cell::Cell;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use cudarc::driver::{CudaContext, CudaStream};
use gpu_time::{Settle, gpu_timed};

use crate::child;
use crate::gpu::{Gpu, LaunchResult, Spin, reset_primary_context};
use crate::scenario::Scenario;
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
    ("exit/contexts_in_turn", contexts_in_turn),
    ("exit/context_reset", context_reset),
    ("exit/fork_after", fork_after),
    ("exit/fork_inside", fork_inside),
    ("exit/fork_before", fork_before),
    ("exit/after_host", after_host),
    ("exit/context_not_retained", context_not_retained),
    ("exit/fork_after_host", fork_after_host),
    ("exit/fork_beside_threads", fork_beside_threads),
    ("exit/fork_beside_everything", fork_beside_everything),
    ("exit/constructor", constructor),
    ("exit/driver_begun_inside", driver_begun_inside),
    ("exit/abort", abort),
    ("exit/stuck", stuck),
    ("exit/never_called", never_called),
    ("exit/never_called_to_nowhere", never_called_to_nowhere),
];

#[gpu_timed]
fn timed(stream: &Arc<CudaStream>, spin: &Spin, ns: u64) -> LaunchResult {
    ran!();
    spin.launch(stream, ns)
}

#[gpu_timed(scope = "body")]
fn body(stream: &Arc<CudaStream>, spin: &Spin, then: impl FnOnce()) -> LaunchResult {
    ran!();
    spin.launch(stream, 20_000)?;
    then();
    Ok(())
}

/// Uses everything that the runtime allocates: a kernel, memory read by the GPU, and a flush
/// buffer.
#[gpu_timed(cold, sleep)]
fn held(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 20_000)
}

/// Enqueues nothing, so it can be called after the GPU is gone.
#[gpu_timed(scope = "body")]
fn quiet(stream: &Arc<CudaStream>) {
    ran!();
    let _ = stream;
}

/// Makes ten calls to each of two functions, and waits for the GPU.
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
    panic!("intentional panic");
}

fn panics_inside(_: &[String]) {
    let gpu = Gpu::new();
    ten(&gpu);
    let spin = gpu.spin("exit::body");
    body(&gpu.stream, &spin, || {
        tally::print();
        panic!("intentional panic")
    })
    .unwrap();
}

/// Panics on another thread, which the main thread joins unless the argument is `ignored`.
fn panics_elsewhere(arguments: &[String]) {
    let gpu = Gpu::new();
    ten(&gpu);
    let (stream, spin) = (gpu.stream.clone(), gpu.spin("exit::body"));
    let thread = thread::spawn(move || body(&stream, &spin, || panic!("intentional panic")));
    if arguments == ["ignored"] {
        while !thread.is_finished() {
            thread::yield_now();
        }
    } else {
        assert!(thread.join().is_err());
    }
    tally::print();
}

/// Exits without waiting for the last call's kernel, which runs for the given number of
/// milliseconds.
fn running(arguments: &[String]) {
    let gpu = Gpu::new();
    ten(&gpu);
    let ms: u64 = arguments[0].parse().unwrap();
    let spin = gpu.spin("exit::timed");
    timed(&gpu.stream, &spin, ms * 1_000_000).unwrap();
    tally::print();
    process::exit(7);
}

/// Makes short calls, then exits without waiting for the GPU.
fn unread(_: &[String]) {
    let gpu = Gpu::new();
    let spin = gpu.spin("exit::timed");
    for _ in 0..10 {
        timed(&gpu.stream, &spin, 20_000).unwrap();
    }
    tally::print();
    process::exit(0);
}

/// Returns from main while other threads call annotated functions as fast as they can.
fn threads_at_work(_: &[String]) {
    let gpu = Gpu::new();
    ten(&gpu);
    for _ in 0..3 {
        let (stream, spin) = (gpu.new_stream(), gpu.spin("exit::timed"));
        thread::spawn(move || {
            // The driver may shut down at any time now; a launch then fails.
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
    let gpu = Gpu::in_own_context(0);
    ten(&gpu);
    drop(gpu);
    tally::print();
}

/// Creates and destroys contexts one after another. Timed calls use each of them.
fn contexts_in_turn(args: &[String]) {
    Gpu::new();
    for _ in 0..args[0].parse().expect("a number of contexts") {
        ten(&Gpu::in_own_context(0));
    }
    tally::print();
}

/// Resets the device between two rounds of calls. Its context comes back at the same address.
fn context_reset(_: &[String]) {
    let gpu = Gpu::new();
    ten(&gpu);
    // The handles are invalid after the reset and must not be released.
    std::mem::forget(gpu);
    reset_primary_context();
    ten(&Gpu::new());
    tally::print();
}

/// Forks, and asserts that the child exits with `code` after running `child`.
fn fork(code: i32, child: impl FnOnce()) {
    let pid = child::fork(|| {
        child();
        process::exit(code);
    });
    child::assert_exits(pid, code);
}

fn fork_after(_: &[String]) {
    let gpu = Gpu::new();
    ten(&gpu);
    fork(3, || {
        for _ in 0..5 {
            quiet(&gpu.stream);
        }
        gpu_time::report();
        // This must not block on locks that another thread held at the fork.
        gpu_time::configure().sample(0.5).apply();
        assert_eq!(gpu_time::snapshot().sites, []);
        let settled = gpu_time::until_stable(gpu_time::Settle::default(), || quiet(&gpu.stream));
        assert_eq!((settled.calls, settled.is_settled()), (1, true));
    });
    ten(&gpu);
    tally::print();
}

/// Forks between a call's two events. The child returns from the function as well.
fn fork_inside(_: &[String]) {
    let gpu = Gpu::new();
    ten(&gpu);
    let spin = gpu.spin("exit::body");
    let parent = process::id();
    fork_in(&gpu.stream, &spin, || {
        // SAFETY: no other thread in the program holds a lock that the child needs.
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

/// Records host times before the driver is loaded, so the driver's exit handler is registered after
/// the runtime's first handler. Some samples are still unread when the process ends.
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

/// As is common in a `main`, the value of the stream expression is dropped before the body begins,
/// and the context created by the body is dropped before the bracket ends.
#[gpu_timed(stream = CudaContext::new(0)?.default_stream(), scope = "body")]
fn published() -> LaunchResult {
    ran!();
    let gpu = Gpu::new();
    gpu.spin("exit::published").launch(&gpu.context.default_stream(), 20_000)?;
    gpu.context.default_stream().synchronize()
}

fn context_not_retained(_: &[String]) {
    published().unwrap();
    tally::print();
}

fn fork_after_host(_: &[String]) {
    host(|| ran!("scenario::exit::host"));
    fork(3, || {
        host(|| ());
        ten(&Gpu::new());
        gpu_time::report();
        assert_eq!(gpu_time::snapshot().sites, []);
    });
    host(|| ran!("scenario::exit::host"));
    tally::print();
}

/// Forks children that end inside and outside a function, while other threads in the parent are in
/// the middle of calls and reports. No thread in the child completes these calls and reports.
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
        // The child leaves a function that its parent entered.
        let parent = process::id();
        // SAFETY: the child only leaves the function and exits.
        let child = host(|| unsafe { libc::fork() });
        if process::id() != parent {
            process::exit(3);
        }
        child::assert_exits(child, 3);
    }
    IS_OVER.store(true, Relaxed);
    reader.join().unwrap();
    let calls: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    tally::count_runs("scenario::exit::host", 1 + calls + 2 * forks);
    tally::print();
}

/// Calls the library's functions that use its locks. With `all`, also those after which a process knows that
/// children it forks must not be timed.
const FUNCTIONS: [fn(); 9] = [
    || {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        // A configuration that changes nothing is applied more quickly.
        let label = COUNT.fetch_add(1, Relaxed).to_string();
        gpu_time::configure().label(&label).apply();
    },
    || drop(gpu_time::snapshot()),
    gpu_time::report,
    gpu_time::publish,
    || gpu_time::set_enabled(true),
    || gpu_time::set_default_stream(gpu_time::NULL_STREAM),
    || gpu_time::set_thread_default_stream(gpu_time::NULL_STREAM),
    || drop(gpu_time::spans().sample(2.0)),
    || drop(gpu_time::until_stable(Settle::default().timeout(Duration::ZERO), || ())),
];
const FUNCTIONS_AFTER_CALL: [fn(); 5] = [
    || gpu_time::record_phase(Duration::from_millis(1)),
    || drop(gpu_time::until_stable(Settle::default().timeout(Duration::ZERO), || host(|| ()))),
    || {
        let settle = Settle::default().timeout(Duration::ZERO);
        drop(gpu_time::compare(settle, ("base", || host(|| ())), ("new", || host(|| ()))));
    },
    || {
        let settle = Settle::default().timeout(Duration::ZERO);
        fork_in_run(|fork| drop(gpu_time::until_stable(settle, || host(fork))));
    },
    || {
        let settle = Settle::default().timeout(Duration::ZERO);
        fork_in_run(|fork| {
            drop(gpu_time::compare(settle, ("base", || host(fork)), ("new", || host(|| ()))));
        });
    },
];

/// Forks a child in the first call of a run. The child returns from the run and ends.
fn fork_in_run(run: impl FnOnce(&dyn Fn())) {
    let (parent, child) = (process::id(), Cell::new(None));
    run(&|| {
        if child.get().is_none() {
            // SAFETY: the child only returns from the run and exits.
            let pid = unsafe { libc::fork() };
            child.set(Some(pid));
            if pid == 0 {
                // SAFETY: ends this process if it hangs.
                unsafe { libc::alarm(PATIENCE) };
            }
        }
    });
    if process::id() != parent {
        // SAFETY: ends the process at once.
        unsafe { libc::_exit(3) };
    }
    child::assert_exits(child.get().unwrap(), 3);
}

/// The time in which a child must end, in seconds.
const PATIENCE: u32 = 120;

/// Forks thousands of children while other threads are in every public function. Each child calls all of them, and
/// must end. With the argument `called`, a function was called before.
fn fork_beside_everything(arguments: &[String]) {
    static IS_OVER: AtomicBool = AtomicBool::new(false);
    let mut functions = FUNCTIONS.to_vec();
    if arguments == ["called"] {
        host(|| ());
        functions.extend(FUNCTIONS_AFTER_CALL);
    }
    let forever = |function: fn()| {
        move || {
            while !IS_OVER.load(Relaxed) {
                function();
            }
        }
    };
    let threads: Vec<_> = functions.iter().map(|of| thread::spawn(forever(*of))).collect();
    for _ in 0..1_000 {
        fork(3, || {
            // SAFETY: ends this process if it hangs.
            unsafe { libc::alarm(PATIENCE) };
            functions.iter().for_each(|function| function());
        });
    }
    IS_OVER.store(true, Relaxed);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Set for the child of a test whose annotated function is called before `main`.
const CONSTRUCTOR: &str = "GPU_TIME_TEST_CONSTRUCTOR";

/// Calls an annotated function before `main`, and before the runtime's own constructor.
#[used]
#[unsafe(link_section = ".init_array.00101")]
static ON_LOAD: extern "C" fn() = {
    extern "C" fn on_load() {
        if std::env::var_os(CONSTRUCTOR).is_some() {
            host(|| ran!("scenario::exit::host"));
        }
    }
    on_load
};

/// Calls the function once more.
fn constructor(_: &[String]) {
    host(|| ran!("scenario::exit::host"));
    tally::print();
}

/// Makes the first use of the driver inside an opened call, as an annotated `main` does. With the argument
/// `launches`, the call has a kernel; with `exits`, the process ends inside it.
fn driver_begun_inside(arguments: &[String]) {
    #[gpu_timed(clock = "kernels")]
    fn opened(then: &str) -> LaunchResult {
        ran!("scenario::exit::driver_begun_inside::opened");
        let gpu = Gpu::new();
        match then {
            "launches" => {
                gpu.spin("exit::driver_begun_inside::opened").launch(&gpu.stream, 20_000)?;
                gpu.synchronize();
            }
            "exits" => {
                tally::print();
                process::exit(0);
            }
            _ => {}
        }
        Ok(())
    }
    opened(&arguments[0]).unwrap();
    tally::print();
}

fn abort(_: &[String]) {
    ten(&Gpu::new());
    tally::print();
    process::abort();
}

/// Makes a first call on another thread, which hangs in the driver. The hang advances virtual time
/// by the given duration, which tells the main thread that the hang has begun.
fn stuck(arguments: &[String]) {
    let hang_ns = arguments[0].parse().expect("a time in nanoseconds");
    let gpu = Gpu::new();
    let (stream, spin) = (gpu.stream.clone(), gpu.spin("exit::timed"));
    thread::spawn(move || timed(&stream, &spin, 20_000));
    time::wait_until(hang_ns);
    tally::print();
}

/// Calls no annotated function, and neither does its child.
fn never_called(_: &[String]) {
    let child = child::fork(|| {});
    child::assert_exits(child, 0);
    tally::print();
}

/// Requests, from the program itself, a report in a directory that does not exist.
fn never_called_to_nowhere(_: &[String]) {
    let targets = std::env::var("GPU_TIME_REPORT").unwrap();
    // SAFETY: no other thread is running.
    unsafe { std::env::remove_var("GPU_TIME_REPORT") };
    gpu_time::configure().report(&format!("{targets},csv:/no/such/folder/a.csv")).apply();
    tally::print();
}
