//! Functions of which not every call is timed, and functions that a key splits into series.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use cudarc::driver::{CudaStream, DriverError};
use gpu_time::gpu_timed;

use crate::Scenario;
use crate::gpu::{Copy, Gpu, Spin};
use crate::tally::{self, ran};

pub const SCENARIOS: &[Scenario] = &[
    ("sampling/periodic", periodic),
    ("sampling/loops", loops),
    ("sampling/threads", threads),
    ("sampling/keys", keys),
    ("sampling/budget", budget),
    ("sampling/cost", cost),
    ("sampling/dear", dear),
    ("sampling/passing", passing),
    ("sampling/drop", drop_of_load),
    ("sampling/configured", configured),
    ("sampling/reconfigured", reconfigured),
    ("sampling/settle", settle),
];

type Done = Result<(), DriverError>;

#[gpu_timed]
fn all(stream: &Arc<CudaStream>, spin: &Spin, ns: u64) -> Done {
    ran!();
    spin.launch(stream, ns)
}

#[gpu_timed(sample = 0.01)]
fn drawn(stream: &Arc<CudaStream>, spin: &Spin, ns: u64) -> Done {
    ran!();
    spin.launch(stream, ns)
}

#[gpu_timed(every = 100)]
fn counted(stream: &Arc<CudaStream>, spin: &Spin, ns: u64) -> Done {
    ran!();
    spin.launch(stream, ns)
}

#[gpu_timed(sample = 0.1, warmup = 20, clock = "host")]
fn warmed() {
    ran!();
}

/// A loop whose hundredth call is long, each time: what counts to a hundred sees nothing else.
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
fn looping(stream: &Arc<CudaStream>, spin: &Spin, times: u64) -> Done {
    ran!();
    spin.launch(stream, 1_000)?;
    for _ in 0..times {
        spin.launch(stream, 1_000)?;
    }
    Ok(())
}

/// Launches in a loop, that not every call makes.
fn loops(_: &[String]) {
    let gpu = Gpu::new();
    let spin = gpu.spin("sampling::looping");
    for call in 0..400 {
        looping(&gpu.stream, &spin, [3, 0, 0, 0][call % 4]).unwrap();
        gpu.synchronize();
    }
    tally::print();
}

/// The same from threads that come and go.
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

/// A value that knows how often it was looked at.
struct Counted(u64);

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        tally::count("formatted");
        write!(f, "<{}>\n\u{1b}[31m", self.0)
    }
}

#[gpu_timed(key = ns, warmup = 10)]
fn by_time(stream: &Arc<CudaStream>, spin: &Spin, ns: u64) -> Done {
    ran!();
    spin.launch(stream, ns)
}

#[gpu_timed(key = Counted(*name?), scope = "body", every = 2)]
fn by_name(stream: &Arc<CudaStream>, spin: &Spin, name: Option<&u64>) -> Done {
    ran!();
    spin.launch(stream, 5_000)
}

#[gpu_timed(key = n, clock = "host")]
fn without_end(n: u64) {
    ran!();
    std::hint::black_box(n);
}

#[gpu_timed(key = if panics { panic!("the key panics") } else { 1 }, clock = "host")]
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
            scope.spawn(|| (0..1_000).for_each(without_end));
        }
    });
    panicking(false);
    assert!(thread::spawn(|| panicking(true)).join().is_err());
    // That was a call, though its body was not reached.
    tally::count_runs("scenario::sampling::panicking", 1);
    tally::print();
}

/// Calls until the budget makes itself felt.
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
        unsampled = snapshot.site("scenario::sampling::all").expect("it was called").unsampled();
    }
    tally::print();
}

#[gpu_timed]
fn copies(stream: &Arc<CudaStream>, copy: &mut Copy) -> Done {
    ran!();
    copy.launch(stream)
}

/// Copies within the L2, on a GPU that has time between the calls or never has.
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
fn perhaps_in_a_graph(stream: &Arc<CudaStream>, spin: &Spin, ns: u64) -> Done {
    ran!();
    spin.launch(stream, ns)
}

/// One function is asked for its stream whenever it is called, the other one is not.
fn passing(arguments: &[String]) {
    let gpu = Gpu::new();
    type Function = fn(&Arc<CudaStream>, &Spin, u64) -> Done;
    let (name, function): (_, Function) = match arguments == ["asked"] {
        true => ("sampling::perhaps_in_a_graph", perhaps_in_a_graph),
        false => ("sampling::all", all),
    };
    let spin = gpu.spin(name);
    for _ in 0..20_000 {
        function(&gpu.stream, &spin, 1_000).unwrap();
    }
    gpu.synchronize();
    tally::print();
}

#[gpu_timed(clock = "host", key = dear_key())]
fn dear_to_time() {
    ran!();
}

/// Takes 50 µs, and more on a busy machine.
fn dear_key() -> u64 {
    let end = Instant::now() + Duration::from_micros(50);
    while Instant::now() < end {
        std::hint::spin_loop();
    }
    0
}

fn dear(_: &[String]) {
    (0..3_000).for_each(|_| dear_to_time());
    tally::print();
}

#[gpu_timed(clock = "host", bytes = timed_now())]
fn rare() {
    ran!();
}

static TIMED: AtomicBool = AtomicBool::new(false);

/// Asked of calls that are timed, and of no others.
fn timed_now() -> u64 {
    TIMED.store(true, Relaxed);
    1
}

/// Whether a call of it was timed.
fn rare_is_timed() -> bool {
    rare();
    TIMED.swap(false, Relaxed)
}

/// A load of which hardly a call is timed ceases just after one was, and calls become rare: those to come
/// were to be passed over for a long time.
fn drop_of_load(_: &[String]) {
    let unsampled = || {
        let snapshot = gpu_time::snapshot();
        snapshot.site("scenario::sampling::rare").expect("it was called").unsampled()
    };
    loop {
        (0..100_000).for_each(|_| rare());
        if unsampled() > 1_000_000 {
            break;
        }
    }
    TIMED.store(false, Relaxed);
    while !rare_is_timed() {}
    let wait = |_: &u32| {
        thread::sleep(Duration::from_secs(2));
        !rare_is_timed()
    };
    let waited = (0..15).take_while(wait).count();
    tally::fact("waited", waited);
    tally::print();
}

/// The program says how it is timed, while it runs and from another thread.
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
        let site = snapshot.site(&format!("scenario::sampling::{name}")).expect("it is there");
        tally::fact(&format!("{name}_timed"), site.timed());
        tally::fact(&format!("{name}_warmup"), site.warmup());
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

/// What goes before a call changes while the program runs, for functions that were called already.
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
    // Three are missing of the one, and one of the other.
    calls(gpu_time::configure().cold("").sleep("").warmup(3));
    calls(gpu_time::configure().warmup(1));
    tally::print();
}

#[gpu_timed(cold, warmup = 2)]
fn cold_and_warmed(stream: &Arc<CudaStream>, spin: &Spin, ns: u64) -> Done {
    ran!();
    spin.launch(stream, ns)
}

/// One in a hundred is timed, and the run goes on until that is enough.
fn settle(_: &[String]) {
    let gpu = Gpu::new();
    let spin = gpu.spin("sampling::drawn");
    let settled = gpu_time::until_stable(gpu_time::Settle::default(), || {
        drawn(&gpu.stream, &spin, 5_000).unwrap();
        gpu.synchronize();
    });
    tally::fact("settled", settled.is_settled());
    tally::print();
}
