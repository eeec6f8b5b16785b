//! A long run of everything at once, with sixteen threads, streams and functions, and a thread that
//! takes snapshots.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use cudarc::driver::CudaStream;
use gpu_time::gpu_timed;

use crate::allocator::allocated;
use crate::gpu::{Gpu, LaunchResult, Spin};
use crate::scenario::Scenario;
use crate::tally;

pub const SCENARIOS: &[Scenario] = &[("soak/run", run)];

type Function = fn(&Arc<CudaStream>, &Spin, u64) -> LaunchResult;

const THREADS: usize = 16;
/// The number of calls between two checks for the end, each of which waits for the stream.
const BATCH: u64 = 500;
/// The memory growth allowed for the whole process in the second half.
const GROWTH: u64 = 4 << 20;

/// Defines functions with these attribute keys, which may refer to the last parameter, and lists
/// them by name.
macro_rules! functions {
    ($n:ident: $($name:ident [$($key:tt)*])*) => {
        $(
            #[gpu_timed($($key)*)]
            fn $name(stream: &Arc<CudaStream>, spin: &Spin, $n: u64) -> LaunchResult {
                spin.launch(stream, 500 + $n % 64)
            }
        )*
        const FUNCTIONS: &[(&str, Function)] = &[$((stringify!($name), $name)),*];
    };
}

functions! {
    n:
    all []
    drawn [sample = 0.01]
    rarely [sample = 0.001]
    counted [every = 100]
    keyed [sample = 0.05, key = n % 80]
    all_keyed [key = n % 8]
    body [scope = "body", sample = 0.02]
    cold [cold, sample = 0.0005]
    dirty [cold = "dirty", sleep, sample = 0.0005]
    held [sleep, sample = 0.002]
    delayed [sleep = "5us", every = 1000]
    warmed [warmup = 1000, sample = 0.1]
    waited [clock = "sync", sample = 0.0005]
    working [bytes = n, flops = 2 * n, sample = 0.05]
    named [name = "soak <named>", sample = 0.01]
    around [scope = "body", key = "around", sample = 0.01]
}

const _: () = assert!(FUNCTIONS.len() == THREADS);

/// The length of the run: a number of calls, or a duration such as `600s`.
#[derive(Clone, Copy)]
enum Length {
    Calls(u64),
    Time(Duration),
}

impl Length {
    fn parse(text: &str) -> Length {
        match text.strip_suffix('s') {
            Some(seconds) => Length::Time(Duration::from_secs(seconds.parse().expect("seconds"))),
            None => Length::Calls(text.parse().expect("a number of calls")),
        }
    }

    /// Returns the fraction of the run that is complete.
    fn done(self, calls: u64, started: Instant) -> f64 {
        match self {
            Length::Calls(most) => calls as f64 / most as f64,
            Length::Time(most) => started.elapsed().as_secs_f64() / most.as_secs_f64(),
        }
    }
}

/// Returns the process's resident memory in bytes.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux has `/proc/self/statm`");
    let pages: u64 = statm.split(' ').nth(1).and_then(|text| text.parse().ok()).expect("a number");
    pages * 4096
}

fn run(arguments: &[String]) {
    let length = Length::parse(arguments.first().map_or("100000", String::as_str));
    let gpu = Gpu::new();
    let spin = gpu.spin("soak");
    let calls: Vec<AtomicU64> = FUNCTIONS.iter().map(|_| AtomicU64::new(0)).collect();
    let total = || calls.iter().map(|calls| calls.load(Relaxed)).sum::<u64>();
    let is_over = AtomicBool::new(false);
    let started = Instant::now();
    let mut half_way = None;
    thread::scope(|scope| {
        for first in 0..THREADS {
            let stream = gpu.new_stream();
            let (calls, is_over, spin) = (&calls, &is_over, &spin);
            scope.spawn(move || {
                let mut n = first as u64;
                while !is_over.load(Relaxed) {
                    for _ in 0..BATCH {
                        // Each thread calls all functions, starting with a different one.
                        let at = (n % THREADS as u64) as usize;
                        FUNCTIONS[at].1(&stream, spin, n).expect("a launch");
                        calls[at].fetch_add(1, Relaxed);
                        n += 1;
                    }
                    // One thread never waits, so the GPU falls behind.
                    if first > 0 {
                        stream.synchronize().expect("the stream completes its work");
                    }
                }
            });
        }
        loop {
            thread::sleep(Duration::from_millis(100));
            assert_eq!(gpu_time::snapshot().inconsistencies(), [""; 0]);
            let done = length.done(total(), started);
            if done >= 0.5 && half_way.is_none() {
                half_way = Some((resident(), allocated()));
            }
            if done >= 1.0 {
                is_over.store(true, Relaxed);
                break;
            }
        }
    });
    gpu.synchronize();
    let snapshot = gpu_time::snapshot();
    assert_eq!(snapshot.inconsistencies(), [""; 0]);
    for ((name, _), calls) in FUNCTIONS.iter().zip(&calls) {
        let path = format!("scenario::soak::{name}");
        let path = if *name == "named" { "soak <named>" } else { &path };
        tally::count_runs(path, calls.load(Relaxed));
    }
    let (before, allocated_before) = half_way.expect("the run passed its half");
    let (after, allocated_after) = (resident(), allocated());
    println!(
        "{} calls in {:?}, {before} B half-way, {after} B at the end, {} and {} B of them by Rust code",
        total(),
        started.elapsed(),
        allocated_before.iter().sum::<u64>(),
        allocated_after.iter().sum::<u64>(),
    );
    for (class, (before, after)) in allocated_before.iter().zip(allocated_after).enumerate() {
        if before.abs_diff(after) > 1 << 16 {
            println!(
                "allocations of 2^{class} B and more: {before} B half-way, {after} B at the end"
            );
        }
    }
    tally::fact("calls", total());
    tally::print();
    assert!(after < before + GROWTH, "the process grew from {before} to {after} bytes");
}
