//! Sampled functions, and functions divided into series by a key.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use cudarc::driver::CudaStream;
use gpu_time::gpu_timed;

use crate::gpu::{Copy, Gpu, LaunchResult, Spin};
use crate::scenario::Scenario;
use crate::tally::{self, ran};

pub const SCENARIOS: &[Scenario] = &[
    ("sampling/periodic", periodic),
    ("sampling/loops", loops),
    ("sampling/threads", threads),
    ("sampling/keys", keys),
    ("sampling/effect", effect),
    ("sampling/budget", budget),
    ("sampling/cost", cost),
    ("sampling/costly", costly),
    ("sampling/skipping", skipping),
    ("sampling/configured", configured),
    ("sampling/reconfigured", reconfigured),
    ("sampling/settle", settle),
];

#[gpu_timed]
fn all(stream: &Arc<CudaStream>, spin: &Spin, ns: u64) -> LaunchResult {
    ran!();
    spin.launch(stream, ns)
}

#[gpu_timed(sample = 0.01)]
fn drawn(stream: &Arc<CudaStream>, spin: &Spin, ns: u64) -> LaunchResult {
    ran!();
    spin.launch(stream, ns)
}

#[gpu_timed(every = 100)]
fn counted(stream: &Arc<CudaStream>, spin: &Spin, ns: u64) -> LaunchResult {
    ran!();
    spin.launch(stream, ns)
}

#[gpu_timed(sample = 0.1, warmup = 20, clock = "host")]
fn warmed() {
    ran!();
}

/// Runs a loop in which every hundredth call is long. Timing every hundredth call samples only the
/// long calls.
fn periodic(_: &[String]) {
    let gpu = Gpu::new();
    let spins = ["all", "drawn", "counted"].map(|name| gpu.spin(&format!("sampling::{name}")));
    for call in 0..20_000 {
        let ns = if call % 100 == 99 { 100_000 } else { 1_000 };
        all(&gpu.stream, &spins[0], ns).unwrap();
        drawn(&gpu.stream, &spins[1], ns).unwrap();
        counted(&gpu.stream, &spins[2], ns).unwrap();
        warmed();
        if call % 100 == 0 {
            gpu.synchronize();
        }
    }
    gpu.synchronize();
    tally::print();
}

#[gpu_timed(sample = 0.5)]
fn looping(stream: &Arc<CudaStream>, spin: &Spin, times: u64) -> LaunchResult {
    ran!();
    spin.launch(stream, 1_000)?;
    for _ in 0..times {
        spin.launch(stream, 1_000)?;
    }
    Ok(())
}

/// Makes a launch in a loop that not every call executes.
fn loops(_: &[String]) {
    let gpu = Gpu::new();
    let spin = gpu.spin("sampling::looping");
    for call in 0..400 {
        looping(&gpu.stream, &spin, [3, 0, 0, 0][call % 4]).unwrap();
        gpu.synchronize();
    }
    tally::print();
}

/// Calls the same functions from short-lived threads.
fn threads(_: &[String]) {
    let gpu = Gpu::new();
    let spins = ["all", "drawn", "counted"].map(|name| gpu.spin(&format!("sampling::{name}")));
    for _ in 0..40 {
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..25 {
                        drawn(&gpu.stream, &spins[1], 1_000).unwrap();
                        counted(&gpu.stream, &spins[2], 1_000).unwrap();
                    }
                });
            }
        });
        gpu.synchronize();
    }
    tally::print();
}

/// A key that counts how often it is formatted.
struct CountingKey(u64);

impl fmt::Display for CountingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        tally::count("formatted");
        write!(f, "<{}>\n\u{1b}[31m", self.0)
    }
}

#[gpu_timed(key = ns, warmup = 10)]
fn by_time(stream: &Arc<CudaStream>, spin: &Spin, ns: u64) -> LaunchResult {
    ran!();
    spin.launch(stream, ns)
}

#[gpu_timed(key = CountingKey(*name?), scope = "body", every = 2)]
fn by_name(stream: &Arc<CudaStream>, spin: &Spin, name: Option<&u64>) -> LaunchResult {
    ran!();
    spin.launch(stream, 5_000)
}

#[gpu_timed(key = n, clock = "host")]
fn unbounded(n: u64) {
    ran!();
    std::hint::black_box(n);
}

#[gpu_timed(key = if panics { panic!("intentional panic") } else { 1 }, clock = "host")]
fn panicking(panics: bool) {
    ran!();
    std::hint::black_box(panics);
}

fn keys(_: &[String]) {
    let gpu = Gpu::new();
    let (by_time_spin, by_name_spin) =
        (gpu.spin("sampling::by_time"), gpu.spin("sampling::by_name"));
    for call in 0..130 {
        by_time(&gpu.stream, &by_time_spin, [10_000, 20_000, 40_000][call % 3]).unwrap();
        let name = [None, Some(&7)][call / 2 % 2];
        by_name(&gpu.stream, &by_name_spin, name).unwrap();
        gpu.synchronize();
    }
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..1_000).for_each(unbounded));
        }
    });
    panicking(false);
    assert!(thread::spawn(|| panicking(true)).join().is_err());
    // This counts as a call, although it did not reach the body.
    tally::count_runs("scenario::sampling::panicking", 1);
    tally::print();
}

/// Makes calls until the budget has caused thousands to be skipped.
fn budget(_: &[String]) {
    let gpu = Gpu::new();
    let spin = gpu.spin("sampling::all");
    let deadline = Instant::now() + Duration::from_secs(30);
    let mut unsampled = 0;
    while unsampled < 20_000 && Instant::now() < deadline {
        for _ in 0..1_000 {
            all(&gpu.stream, &spin, 1_000).unwrap();
        }
        gpu.synchronize();
        let snapshot = gpu_time::snapshot();
        assert_eq!(snapshot.inconsistencies(), [""; 0]);
        unsampled =
            snapshot.site("scenario::sampling::all").expect("the function was called").unsampled;
    }
    tally::print();
}

/// Requests after which the program does more if something in them was timed: a cost that only a comparison can tell.
#[gpu_timed(clock = "host")]
fn request(was_timed: &Cell<bool>) {
    ran!();
    inner_step(was_timed);
    let busy = if was_timed.get() { REQUEST + ADDED } else { REQUEST };
    let begin = Instant::now();
    while begin.elapsed() < busy {
        std::hint::spin_loop();
    }
}

const REQUEST: Duration = Duration::from_micros(200);
const ADDED: Duration = Duration::from_micros(100);

#[gpu_timed(clock = "host", key = { was_timed.set(true); "timed" })]
fn inner_step(was_timed: &Cell<bool>) {
    ran!();
    let _ = was_timed;
}

/// Compares the requests in which something was timed with the others.
fn effect(_: &[String]) {
    // Of the first calls, none is left alone.
    let (mut times, first) = ([(0, 0); 2], 8);
    for nth in 0..4_000 {
        let was_timed = Cell::new(false);
        let begin = Instant::now();
        request(&was_timed);
        let (count, ns) = &mut times[usize::from(was_timed.get())];
        if nth >= first {
            (*count, *ns) = (*count + 1, *ns + begin.elapsed().as_nanos() as u64);
        }
    }
    let [(alone, alone_ns), (timed, timed_ns)] = times;
    let expected_ns = alone_ns as f64 / alone as f64 * timed as f64;
    tally::fact("added_ns", (timed_ns as f64 - expected_ns) as u64);
    tally::fact("all_ns", alone_ns + timed_ns);
    tally::print();
}

#[gpu_timed]
fn copies(stream: &Arc<CudaStream>, copy: &mut Copy) -> LaunchResult {
    ran!();
    copy.launch(stream)
}

/// Copies within the L2, on a GPU that is either idle between calls or never idle.
fn cost(arguments: &[String]) {
    let gpu = Gpu::new();
    let mut copy = gpu.copy("sampling::copies", 15 << 20);
    for _ in 0..200 {
        copies(&gpu.stream, &mut copy).unwrap();
        if arguments == ["idle"] {
            gpu.synchronize();
        }
    }
    gpu.synchronize();
    tally::print();
}

#[gpu_timed(graph)]
fn graph_capable(stream: &Arc<CudaStream>, spin: &Spin, ns: u64) -> LaunchResult {
    ran!();
    spin.launch(stream, ns)
}

/// The stream is evaluated on every call for `graph_capable`, but only on timed calls for `all`.
fn skipping(arguments: &[String]) {
    let gpu = Gpu::new();
    type Function = fn(&Arc<CudaStream>, &Spin, u64) -> LaunchResult;
    let (name, function): (_, Function) = match arguments == ["stream evaluated"] {
        true => ("sampling::graph_capable", graph_capable),
        false => ("sampling::all", all),
    };
    let spin = gpu.spin(name);
    for _ in 0..20_000 {
        function(&gpu.stream, &spin, 1_000).unwrap();
    }
    gpu.synchronize();
    tally::print();
}

#[gpu_timed(clock = "host", key = costly_key())]
fn costly_to_time() {
    ran!();
}

/// Takes 50 µs, or longer on a busy machine.
fn costly_key() -> u64 {
    let end = Instant::now() + Duration::from_micros(50);
    while Instant::now() < end {
        std::hint::spin_loop();
    }
    0
}

fn costly(_: &[String]) {
    (0..3_000).for_each(|_| costly_to_time());
    tally::print();
}

/// Configures timing at run time, also from another thread.
fn configured(_: &[String]) {
    gpu_time::configure().warmup(3).sample(0.0).filter("!*::counted").apply();
    let gpu = Gpu::new();
    let spins = ["all", "drawn", "counted"].map(|name| gpu.spin(&format!("sampling::{name}")));
    let calls = || {
        for _ in 0..10_000 {
            all(&gpu.stream, &spins[0], 1_000).unwrap();
        }
        for _ in 0..10 {
            drawn(&gpu.stream, &spins[1], 1_000).unwrap();
            counted(&gpu.stream, &spins[2], 1_000).unwrap();
        }
        gpu.synchronize();
    };
    let timed = |name: &str| {
        let snapshot = gpu_time::snapshot();
        let site =
            snapshot.site(&format!("scenario::sampling::{name}")).expect("the site is listed");
        tally::fact(&format!("{name}_timed"), site.timed);
        tally::fact(&format!("{name}_warmup"), site.warmup);
    };
    calls();
    timed("all");
    thread::scope(|scope| {
        scope.spawn(|| gpu_time::configure().sample(1.0).filter("").apply());
    });
    calls();
    gpu_time::configure().sample(None).budget(2.0).apply();
    calls();
    tally::print();
}

/// Changes `cold`, `sleep` and `warmup` at run time, for functions that have already been called.
fn reconfigured(_: &[String]) {
    let gpu = Gpu::new();
    let (spin, cold_spin) = (gpu.spin("sampling::all"), gpu.spin("sampling::cold_and_warmed"));
    let calls = |options: gpu_time::Configure| {
        thread::scope(|scope| _ = scope.spawn(|| options.apply()));
        for _ in 0..10 {
            all(&gpu.stream, &spin, 20_000).unwrap();
            cold_and_warmed(&gpu.stream, &cold_spin, 20_000).unwrap();
            gpu.synchronize();
        }
    };
    calls(gpu_time::configure());
    calls(gpu_time::configure().cold("dirty"));
    calls(gpu_time::configure().cold("off").sleep("50us"));
    // One function still has three warm-up calls left, and the other has one.
    calls(gpu_time::configure().cold("").sleep("").warmup(3));
    calls(gpu_time::configure().warmup(1));
    tally::print();
}

#[gpu_timed(cold, warmup = 2)]
fn cold_and_warmed(stream: &Arc<CudaStream>, spin: &Spin, ns: u64) -> LaunchResult {
    ran!();
    spin.launch(stream, ns)
}

#[gpu_timed(sample = 0.1)]
fn drawn_often(stream: &Arc<CudaStream>, spin: &Spin, ns: u64) -> LaunchResult {
    ran!();
    spin.launch(stream, ns)
}

/// Times one call in ten. The run continues until there are enough samples.
fn settle(_: &[String]) {
    let gpu = Gpu::new();
    let spin = gpu.spin("sampling::drawn_often");
    let settled = gpu_time::until_stable(crate::settle::settle(), || {
        drawn_often(&gpu.stream, &spin, 5_000).unwrap();
        gpu.synchronize();
    });
    tally::fact("settled", settled.is_settled());
    tally::print();
}
