//! Every kind of thread.

use std::cell::RefCell;
use std::sync::Arc;
use std::thread;

use cudarc::driver::CudaStream;
use gpu_time::gpu_timed;
use rayon::prelude::*;

use crate::gpu::{Gpu, LaunchResult, Spin};
use crate::scenario::Scenario;
use crate::tally::{self, ran};

pub const SCENARIOS: &[Scenario] = &[
    ("threads/own_streams", own_streams),
    ("threads/one_stream", one_stream),
    ("threads/short", short),
    ("threads/rayon", rayon),
    ("threads/teardown", teardown),
    ("threads/teardown_of_main", teardown_of_main),
    ("threads/inside", inside),
    ("threads/warmup", warmup),
];

#[gpu_timed(cold, sleep)]
fn timed(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 5_000)
}

#[gpu_timed(scope = "body")]
fn body(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 5_000)
}

fn own_streams(_: &[String]) {
    let gpu = Gpu::new();
    let (spin, other) = (gpu.spin("threads::timed"), gpu.spin("threads::body"));
    thread::scope(|scope| {
        for _ in 0..8 {
            let stream = gpu.new_stream();
            let (spin, other) = (&spin, &other);
            scope.spawn(move || {
                for _ in 0..100 {
                    timed(&stream, spin).unwrap();
                    body(&stream, other).unwrap();
                }
                stream.synchronize().unwrap();
            });
        }
    });
    gpu.synchronize();
    tally::print();
}

/// Enqueues on the same stream from eight threads, while one more takes snapshots.
fn one_stream(_: &[String]) {
    let gpu = Gpu::new();
    let (spin, other) = (gpu.spin("threads::timed"), gpu.spin("threads::body"));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..50 {
                    timed(&gpu.stream, &spin).unwrap();
                    body(&gpu.stream, &other).unwrap();
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..50 {
                assert_eq!(gpu_time::snapshot().inconsistencies(), [""; 0]);
            }
        });
    });
    gpu.synchronize();
    tally::print();
}

/// Spawns a thread for each call.
fn short(_: &[String]) {
    let gpu = Gpu::new();
    let spin = gpu.spin("threads::timed");
    for _ in 0..100 {
        thread::scope(|scope| {
            scope.spawn(|| timed(&gpu.stream, &spin).unwrap());
        });
    }
    gpu.synchronize();
    tally::print();
}

fn rayon(_: &[String]) {
    let gpu = Gpu::new();
    let streams = [0; 4].map(|_| gpu.new_stream());
    let (spin, other) = (gpu.spin("threads::timed"), gpu.spin("threads::body"));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
    pool.install(|| {
        (0..200).into_par_iter().for_each(|i| {
            timed(&streams[i % 4], &spin).unwrap();
            body(&streams[i / 4 % 4], &other).unwrap();
        });
    });
    gpu.synchronize();
    tally::print();
}

/// Calls annotated functions while its thread is exiting.
struct CallsInDrop {
    stream: Arc<CudaStream>,
    spins: Arc<[Spin; 2]>,
    prints: bool,
}

impl Drop for CallsInDrop {
    fn drop(&mut self) {
        for _ in 0..3 {
            timed(&self.stream, &self.spins[0]).unwrap();
            body(&self.stream, &self.spins[1]).unwrap();
        }
        self.stream.synchronize().unwrap();
        if self.prints {
            tally::print();
        }
    }
}

thread_local! {
    // Destructors run in the order in which the variables were first used, or in reverse order. One
    // of these is used before the runtime's own thread-local, one after.
    static EARLY: RefCell<Option<CallsInDrop>> = const { RefCell::new(None) };
    static LATE: RefCell<Option<CallsInDrop>> = const { RefCell::new(None) };
}

fn teardown(_: &[String]) {
    let gpu = Gpu::new();
    let spins = Arc::new(["timed", "body"].map(|name| gpu.spin(&format!("threads::{name}"))));
    for calls_before in [0, 5] {
        let (stream, spins) = (gpu.stream.clone(), spins.clone());
        // Joined explicitly, because a scope does not wait for thread-local destructors.
        let thread = thread::spawn(move || {
            let calls = || {
                let (stream, spins) = (stream.clone(), spins.clone());
                Some(CallsInDrop { stream, spins, prints: false })
            };
            EARLY.set(calls());
            for _ in 0..calls_before {
                timed(&stream, &spins[0]).unwrap();
            }
            LATE.set(calls());
        });
        thread.join().unwrap();
    }
    gpu.synchronize();
    tally::print();
}

/// Checks that the main thread's variables are destroyed before the exit handlers run.
fn teardown_of_main(_: &[String]) {
    let gpu = Gpu::new();
    let spins = Arc::new(["timed", "body"].map(|name| gpu.spin(&format!("threads::{name}"))));
    EARLY.set(Some(CallsInDrop { stream: gpu.stream.clone(), spins: spins.clone(), prints: true }));
    for _ in 0..5 {
        timed(&gpu.stream, &spins[0]).unwrap();
    }
}

#[gpu_timed(scope = "body")]
fn around(stream: &Arc<CudaStream>, inner: impl FnOnce()) {
    ran!();
    let _ = stream;
    inner();
}

/// Opens a bracket on another thread inside a bracket, on the same stream and on another one.
fn inside(_: &[String]) {
    let gpu = Gpu::new();
    let spin = gpu.spin("threads::timed");
    let other = gpu.new_stream();
    timed(&gpu.stream, &spin).unwrap();
    gpu.synchronize();
    for outer in [&gpu.stream, &other] {
        for _ in 0..10 {
            around(outer, || {
                thread::scope(|scope| {
                    scope.spawn(|| timed(&gpu.stream, &spin).unwrap());
                });
            });
            gpu.synchronize();
            other.synchronize().unwrap();
        }
    }
    tally::print();
}

#[gpu_timed(warmup = 1_000)]
fn warms_up(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 1_000)
}

/// Threads share a warm-up: either one thread makes one call and another makes the rest, or eight
/// threads make the same number.
fn warmup(arguments: &[String]) {
    let gpu = Gpu::new();
    let spin = gpu.spin("threads::warms_up");
    let streams: Vec<_> = (0..8).map(|_| gpu.new_stream()).collect();
    let call = |thread: usize, times: usize| {
        for _ in 0..times {
            warms_up(&streams[thread], &spin).unwrap();
        }
        streams[thread].synchronize().unwrap();
    };
    thread::scope(|scope| {
        if arguments == ["uneven"] {
            scope.spawn(|| call(0, 1)).join().unwrap();
            call(1, 1_999);
        } else {
            for thread in 0..8 {
                scope.spawn(move || call(thread, 250));
            }
        }
    });
    tally::print();
}
