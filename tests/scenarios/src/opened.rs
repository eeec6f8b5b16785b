//! Opened calls in programs that fail, unwind, recurse, end threads, and drop pending futures.

use std::cell::RefCell;
use std::future::Future;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::task::{Context, Waker};
use std::thread;
use std::time::{Duration, Instant};

use cudarc::driver::{CudaSlice, CudaStream};
use gpu_time::gpu_timed;

use crate::gpu::{Gpu, LaunchResult, Spin};
use crate::handler::raise;
use crate::later::later;
use crate::scenario::Scenario;
use crate::tally::{self, ran};

pub const SCENARIOS: &[Scenario] = &[
    ("opened/failing", failing),
    ("opened/empty", empty),
    ("opened/first", first),
    ("opened/long", long),
    ("opened/unwinding", unwinding),
    ("opened/recursive", recursive),
    ("opened/alternating", alternating),
    ("opened/threads", threads),
    ("opened/teardown", teardown),
    ("opened/in_turns", in_turns),
    ("opened/during_flushes", during_flushes),
    ("opened/during_memsets", during_memsets),
    ("opened/keyed", keyed),
    ("opened/futures", futures),
    ("opened/crowded", crowded),
    ("opened/long_outer", long_outer),
    ("opened/late", late),
    ("opened/first_and_only", first_and_only),
    ("opened/beside_others", beside_others),
    ("opened/long_at_once", long_at_once),
    ("opened/exit_inside", exit_inside),
    ("opened/exit_beside", exit_beside),
    ("opened/exit_amid", exit_amid),
    ("opened/exit_inside_beside_short", exit_inside_beside_short),
    ("opened/killed", killed),
    ("opened/forgotten", forgotten),
    ("opened/guards", guards),
    ("opened/leaked", leaked),
    ("opened/in_flight", in_flight),
    ("opened/inner_cost", inner_cost),
    ("opened/shapes", shapes),
];

const NS: u64 = 10_000;
const LAUNCHES: u64 = 900;

struct Program {
    stream: Arc<CudaStream>,
    spin: Spin,
}

impl Program {
    fn new(gpu: &Gpu) -> Program {
        Program { stream: gpu.stream.clone(), spin: gpu.spin("opened") }
    }

    fn launch(&self) -> LaunchResult {
        self.spin.launch(&self.stream, NS)
    }
}

/// Tries a launch that fails, as libraries do to find a configuration.
#[gpu_timed]
fn tries(program: &Program) -> LaunchResult {
    ran!();
    program.launch()?;
    program.spin.launch_badly(&program.stream).expect_err("too many threads");
    program.launch()
}

fn failing(_: &[String]) {
    let gpu = Gpu::new();
    let program = Program::new(&gpu);
    for _ in 0..10 {
        tries(&program).unwrap();
        gpu.synchronize();
    }
    // Sleeps for longer than calls wait for their records.
    thread::sleep(Duration::from_secs(1));
    tally::fact("in_flight", tally::in_flight());
    tally::print();
}

/// Copies and sets zero bytes, as programs do with empty tensors.
#[gpu_timed]
fn copies_nothing(program: &Program, memory: &mut CudaSlice<u8>) -> LaunchResult {
    ran!();
    program.stream.memcpy_htod(&[0; 0], memory)?;
    program.stream.memset_zeros(&mut memory.slice_mut(..0))?;
    program.launch()
}

fn empty(_: &[String]) {
    let gpu = Gpu::new();
    let program = Program::new(&gpu);
    let mut memory = gpu.stream.alloc_zeros::<u8>(64).unwrap();
    for _ in 0..10 {
        copies_nothing(&program, &mut memory).unwrap();
        gpu.synchronize();
    }
    tally::print();
}

#[gpu_timed(clock = "kernels")]
fn at_once(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, NS)
}

#[gpu_timed(clock = "kernels", warmup = 2)]
fn after_warmup(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, NS)
}

/// Makes calls of functions that need records, of which two are warm-up calls.
fn first(_: &[String]) {
    let gpu = Gpu::new();
    let spins = [gpu.spin("opened::at_once"), gpu.spin("opened::after_warmup")];
    (0..3).for_each(|_| at_once(&gpu.stream, &spins[0]).unwrap());
    (0..4).for_each(|_| after_warmup(&gpu.stream, &spins[1]).unwrap());
    gpu.synchronize();
    tally::print();
}

#[gpu_timed]
fn launches_often(program: &Program) -> LaunchResult {
    ran!();
    (0..LAUNCHES).try_for_each(|_| program.launch())
}

/// Makes calls with many launches, each of which takes longer when it is recorded.
fn long(_: &[String]) {
    let gpu = Gpu::new();
    let program = Program::new(&gpu);
    for _ in 0..20 {
        launches_often(&program).unwrap();
        gpu.synchronize();
    }
    // The budget is adjusted a few times a second.
    thread::sleep(Duration::from_secs(1));
    launches_often(&program).unwrap();
    gpu.synchronize();
    tally::fact("launches", 21 * LAUNCHES);
    tally::print();
}

#[gpu_timed]
fn catches(program: &Program) -> LaunchResult {
    ran!();
    program.launch()?;
    assert!(catch_unwind(AssertUnwindSafe(|| unwinds(program))).is_err());
    program.launch()
}

#[gpu_timed]
fn unwinds(program: &Program) {
    ran!();
    program.launch().unwrap();
    panic!("as the test wants it");
}

/// Unwinds inside opened calls, and out of them.
fn unwinding(_: &[String]) {
    std::panic::set_hook(Box::new(|_| {}));
    let gpu = Gpu::new();
    let program = Program::new(&gpu);
    for _ in 0..5 {
        catches(&program).unwrap();
        assert!(catch_unwind(AssertUnwindSafe(|| unwinds(&program))).is_err());
        // Outside any call, because the call has ended.
        program.launch().unwrap();
        gpu.synchronize();
    }
    tally::print();
}

/// Launches one kernel per level of recursion.
#[gpu_timed]
fn recurs(program: &Program, levels: u32) -> LaunchResult {
    ran!();
    program.launch()?;
    if levels > 1 { recurs(program, levels - 1) } else { Ok(()) }
}

fn recursive(_: &[String]) {
    let gpu = Gpu::new();
    let program = Program::new(&gpu);
    for _ in 0..10 {
        recurs(&program, 4).unwrap();
        gpu.synchronize();
    }
    tally::print();
}

/// Launches as much as [`pong`].
#[gpu_timed]
fn ping(program: &Program, levels: u32) -> LaunchResult {
    ran!();
    program.launch()?;
    if levels > 1 { pong(program, levels - 1) } else { Ok(()) }
}

#[gpu_timed]
fn pong(program: &Program, levels: u32) -> LaunchResult {
    ran!();
    program.launch()?;
    if levels > 1 { ping(program, levels - 1) } else { Ok(()) }
}

fn alternating(_: &[String]) {
    let gpu = Gpu::new();
    let program = Program::new(&gpu);
    for _ in 0..5 {
        ping(&program, 200).unwrap();
        gpu.synchronize();
    }
    tally::print();
}

/// Makes more calls on a stream than an opened call keeps at once.
#[gpu_timed]
fn crowds(gpu: &Gpu, spin: &Spin) {
    ran!();
    for _ in 0..5_000 {
        one_of_many(&gpu.stream, spin).unwrap();
    }
}

#[gpu_timed]
fn one_of_many(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 1_000)
}

fn crowded(_: &[String]) {
    let gpu = Gpu::new();
    crowds(&gpu, &gpu.spin("opened"));
    gpu.synchronize();
    tally::print();
}

/// The number of launches of a step.
const OF_STEP: u32 = 100;

#[gpu_timed]
fn step(program: &Program) {
    ran!();
    // Another thread may end the process meanwhile.
    _ = (0..OF_STEP).try_for_each(|_| program.spin.launch(&program.stream, 1_000));
}

/// Makes steps as a whole program would, with one launch of its own after each step, and then calls `last`.
#[gpu_timed]
fn trains(program: &Program, steps: u32, last: impl FnOnce()) {
    ran!();
    for _ in 0..steps {
        step(program);
        program.launch().unwrap();
        program.stream.synchronize().unwrap();
    }
    last();
}

#[gpu_timed]
fn named(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, NS)
}

#[gpu_timed]
fn bare(program: &Program) -> LaunchResult {
    ran!();
    program.spin.launch(&program.stream, NS)
}

#[gpu_timed]
fn outlives_phase(program: &Program, inside: impl FnOnce()) -> LaunchResult {
    ran!();
    inside();
    program.spin.launch(&program.stream, NS)
}

/// Ends the phase inside a call that began in it, and makes further calls inside.
fn late(_: &[String]) {
    let gpu = Gpu::new();
    let program = Program::new(&gpu);
    let spin = gpu.spin("opened::named");
    gpu_time::configure().record("off").apply();
    named(&gpu.stream, &spin).unwrap();
    gpu_time::configure().record("on").apply();
    let both = || {
        bare(&program).unwrap();
        named(&gpu.stream, &spin).unwrap();
    };
    let inside = || {
        both();
        gpu_time::configure().record("off").apply();
        (0..3).for_each(|_| both());
    };
    outlives_phase(&program, inside).unwrap();
    named(&gpu.stream, &spin).unwrap();
    gpu.synchronize();
    tally::print();
}

/// Returns the number of opened calls and of calls in flight of a function.
fn counts(function: &str) -> [u64; 2] {
    let snapshot = gpu_time::snapshot();
    let sites = snapshot.sites.iter().filter(|site| site.name == function);
    let series: Vec<_> = sites.flat_map(|site| &site.series).collect();
    [
        series.iter().map(|series| series.opened()).sum(),
        series.iter().map(|series| series.in_flight).sum(),
    ]
}

/// Makes one call with 70,700 launches inside, and takes a snapshot before it ends.
fn long_outer(_: &[String]) {
    let gpu = Gpu::new();
    let program = Program::new(&gpu);
    trains(&program, 700, || {
        let [opened, in_flight] = counts("scenario::opened::step");
        tally::fact("steps", opened);
        tally::fact("steps_in_flight", in_flight);
        tally::fact("in_flight", counts("scenario::opened::trains")[1]);
    });
    gpu.synchronize();
    tally::print();
}

/// Makes many launches, and lets the GPU keep up.
fn launch_often(spin: &Spin, stream: &CudaStream, launches: u64) {
    for n in 1..=launches {
        spin.launch(stream, 100).unwrap();
        if n % 500 == 0 {
            stream.synchronize().unwrap();
            // The records are collected meanwhile, on a machine with one processor too.
            thread::sleep(Duration::from_millis(1));
        }
    }
}

#[gpu_timed(clock = "kernels")]
fn launches_all(
    spin: &Spin,
    stream: &CudaStream,
    launches: u64,
    turn: &Mutex<()>,
    last: impl FnOnce(),
) {
    ran!();
    // Several threads together would launch faster than a busy machine takes the records.
    let turn = turn.lock().unwrap();
    launch_often(spin, stream, launches);
    drop(turn);
    last();
}

/// Makes a single call, with this many launches.
fn first_and_only(args: &[String]) {
    let gpu = Gpu::new();
    let program = Program::new(&gpu);
    let turn = Mutex::new(());
    launches_all(&program.spin, &program.stream, args[0].parse().unwrap(), &turn, || ());
    tally::print();
}

/// Returns `true` if all calls of a function have been recorded.
fn has_opened(function: &str) -> bool {
    let snapshot = gpu_time::snapshot();
    let site = snapshot.site(&format!("scenario::opened::{function}")).unwrap();
    site.series.iter().any(|series| series.timed == series.opened())
}

/// Makes calls on so many threads, with this many launches each. None ends before all launches are made.
fn long_at_once(args: &[String]) {
    let gpu = Gpu::new();
    let (program, launches) = (Program::new(&gpu), args[1].parse().unwrap());
    let (barrier, turn) = (Barrier::new(args[0].parse().unwrap()), Mutex::new(()));
    thread::scope(|scope| {
        for _ in 0..args[0].parse().unwrap() {
            let stream = gpu.new_stream();
            let (spin, turn, last) = (&program.spin, &turn, || _ = barrier.wait());
            scope.spawn(move || launches_all(spin, &stream, launches, turn, last));
        }
    });
    // The end of the process does not wait long for the records.
    let began = Instant::now();
    while !has_opened("launches_all") && began.elapsed() < Duration::from_secs(60) {
        thread::sleep(Duration::from_millis(20));
    }
    tally::print();
}

/// Makes calls between the launches of a thread that is not annotated.
#[gpu_timed]
fn alternates(gpu: &Gpu, program: &Program, launches: u64) {
    ran!();
    for _ in 0..10 {
        step(program);
        let stream = gpu.new_stream();
        thread::scope(|scope| _ = scope.spawn(|| launch_often(&program.spin, &stream, launches)));
    }
}

/// Makes one call, during which another thread launches ten times this often.
fn beside_others(args: &[String]) {
    let gpu = Gpu::new();
    alternates(&gpu, &Program::new(&gpu), args[0].parse().unwrap());
    gpu.synchronize();
    tally::print();
}

fn exit_inside(_: &[String]) {
    let gpu = Gpu::new();
    let program = Program::new(&gpu);
    trains(&program, 5, || {
        tally::print();
        process::exit(0);
    });
}

/// Exits while another thread is inside a call, and while a future is suspended.
fn exit_beside(_: &[String]) {
    let gpu = Gpu::new();
    let program = Program::new(&gpu);
    let mut context = Context::from_waker(Waker::noop());
    let suspended: &'static Program = Box::leak(Box::new(Program::new(&gpu)));
    let future = Box::leak(Box::new(Box::pin(in_parts(suspended, 2))));
    assert!(future.as_mut().poll(&mut context).is_pending());
    let (begun, has_begun) = mpsc::channel();
    thread::spawn(move || {
        trains(&program, 5, || {
            begun.send(()).unwrap();
            loop {
                thread::park();
            }
        });
    });
    has_begun.recv().unwrap();
    tally::print();
}

/// The number of steps that have ended inside a call that never does.
static ENDED_STEPS: AtomicU64 = AtomicU64::new(0);

/// Makes steps until the process ends. Without the pauses, CUPTI's buffers would fill while the report is made.
#[gpu_timed]
fn goes_on_for_ever(program: &Program) {
    ran!();
    loop {
        step(program);
        ENDED_STEPS.fetch_add(1, Relaxed);
        if program.stream.synchronize().is_err() {
            // The process is ending, and the driver with it.
            return;
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Ends while a thread is inside a call that never ends, and others make short calls all the time.
fn exit_inside_beside_short(_: &[String]) {
    let gpu = Gpu::new();
    let program = Program::new(&gpu);
    thread::spawn(move || goes_on_for_ever(&program));
    for _ in 0..2 {
        let program = Program { stream: gpu.new_stream(), spin: gpu.spin("opened") };
        thread::spawn(move || {
            while on_thread(&program).is_ok() && program.stream.synchronize().is_ok() {
                thread::sleep(Duration::from_micros(200));
            }
        });
    }
    thread::sleep(Duration::from_millis(500));
    tally::fact("ended steps", ENDED_STEPS.load(Relaxed));
    tally::print();
}

/// Raises SIGTERM while the program is inside a call that never ends.
fn killed(_: &[String]) {
    let gpu = Gpu::new();
    let program = Program::new(&gpu);
    thread::spawn(|| {
        thread::sleep(Duration::from_millis(500));
        tally::fact("ended steps", ENDED_STEPS.load(Relaxed));
        tally::print();
        raise(libc::SIGTERM);
    });
    goes_on_for_ever(&program);
}

#[gpu_timed(scope = "body")]
fn by_events(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, NS)
}

/// Ends a thread that has forgotten a guard, and then makes the first call that calibrates.
fn forgotten(_: &[String]) {
    let gpu = Gpu::new();
    let program = Program::new(&gpu);
    thread::scope(|scope| {
        scope.spawn(|| {
            let guard = gpu_time::guard!("forgets");
            tally::count_runs("forgets", 1);
            program.launch().unwrap();
            std::mem::forget(guard);
        });
    });
    by_events(&gpu.stream, &gpu.spin("opened::by_events")).unwrap();
    gpu.synchronize();
    tally::print();
}

/// Drops guards in the order in which they were created.
fn guards(_: &[String]) {
    let gpu = Gpu::new();
    let program = Program::new(&gpu);
    for _ in 0..10 {
        let first = gpu_time::guard!("first guard");
        tally::count_runs("first guard", 1);
        program.launch().unwrap();
        let second = gpu_time::guard!("second guard");
        tally::count_runs("second guard", 1);
        program.launch().unwrap();
        drop(first);
        program.launch().unwrap();
        drop(second);
        gpu.synchronize();
    }
    tally::print();
}

/// Leaks guards.
#[gpu_timed]
fn leaks(program: &Program) {
    ran!();
    std::mem::forget(gpu_time::guard!("leaked"));
    tally::count_runs("leaked", 1);
    std::mem::forget(gpu_time::guard!("leaked_by_events", stream = &program.stream));
    tally::count_runs("leaked_by_events", 1);
}

/// Calls a function after another one has leaked guards.
fn leaked(_: &[String]) {
    let gpu = Gpu::new();
    let program = Program::new(&gpu);
    for _ in 0..20 {
        leaks(&program);
        step(&program);
        gpu.synchronize();
    }
    tally::print();
}

/// Takes a snapshot inside the first call from which the runtime learns of the context.
fn in_flight(_: &[String]) {
    let gpu = Gpu::new();
    let program = Program::new(&gpu);
    trains(&program, 3, || {
        tally::fact("outer", counts("scenario::opened::trains")[1]);
        tally::fact("inner", counts("scenario::opened::step")[1]);
    });
    gpu.synchronize();
    tally::print();
}

#[gpu_timed]
fn does_nothing() {
    ran!();
}

#[gpu_timed]
fn calls_many(program: &Program) -> LaunchResult {
    ran!();
    (0..1_000).for_each(|_| does_nothing());
    program.launch()
}

fn inner_cost(_: &[String]) {
    let gpu = Gpu::new();
    let program = Program::new(&gpu);
    for _ in 0..20 {
        calls_many(&program).unwrap();
        gpu.synchronize();
    }
    // The budget is adjusted a few times a second.
    thread::sleep(Duration::from_secs(1));
    calls_many(&program).unwrap();
    gpu.synchronize();
    tally::print();
}

/// Launches a kernel with each of these numbers of blocks.
#[gpu_timed]
fn in_shapes(program: &Program, mut blocks: Range<u32>) -> LaunchResult {
    ran!();
    blocks.try_for_each(|blocks| program.spin.launch_blocks(&program.stream, 1_000, blocks))
}

#[gpu_timed]
fn in_new_shapes(program: &Program, mut blocks: Range<u32>) -> LaunchResult {
    ran!();
    blocks.try_for_each(|blocks| program.spin.launch_blocks(&program.stream, 1_000, blocks))
}

/// Launches a kernel in 4,200 shapes, more than the runtime tells apart, and then in four others.
fn shapes(_: &[String]) {
    let gpu = Gpu::new();
    let program = Program::new(&gpu);
    for call in 0..42 {
        in_shapes(&program, 100 * call + 1..100 * call + 101).unwrap();
        gpu.synchronize();
    }
    in_new_shapes(&program, 5_001..5_005).unwrap();
    gpu.synchronize();
    tally::print();
}

#[gpu_timed]
fn on_thread(program: &Program) -> LaunchResult {
    ran!();
    program.launch()
}

/// Ends many threads, and drops their streams, while their kernels are pending.
fn threads(_: &[String]) {
    let gpu = Gpu::new();
    for _ in 0..8 {
        thread::scope(|scope| {
            for _ in 0..16 {
                let program = Program { stream: gpu.new_stream(), spin: gpu.spin("opened") };
                scope.spawn(move || {
                    (0..5).for_each(|_| on_thread(&program).unwrap());
                });
            }
        });
    }
    gpu.synchronize();
    tally::print();
}

#[gpu_timed]
fn at_end(program: &Program) -> LaunchResult {
    ran!();
    program.launch()
}

/// Makes a call when it is dropped.
struct AtEnd(Program);

impl Drop for AtEnd {
    fn drop(&mut self) {
        at_end(&self.0).unwrap();
    }
}

thread_local! {
    // The runtime's own variables are first used after one of these, and before the other one.
    static EARLY: RefCell<Option<AtEnd>> = const { RefCell::new(None) };
    static LATE: RefCell<Option<AtEnd>> = const { RefCell::new(None) };
}

fn teardown(_: &[String]) {
    let gpu = Gpu::new();
    let program = || Program { stream: gpu.new_stream(), spin: gpu.spin("opened") };
    for _ in 0..10 {
        let [early, between, late] = [(); 3].map(|()| program());
        // Joined explicitly, because a scope does not wait for thread-local destructors.
        let thread = thread::spawn(move || {
            EARLY.set(Some(AtEnd(early)));
            on_thread(&between).unwrap();
            LATE.set(Some(AtEnd(late)));
        });
        thread.join().unwrap();
    }
    gpu.synchronize();
    tally::print();
}

/// Launches on several threads at once for a second.
fn in_turns(_: &[String]) {
    let gpu = Gpu::new();
    let end = Instant::now() + Duration::from_secs(1);
    thread::scope(|scope| {
        for _ in 0..8 {
            let program = Program { stream: gpu.new_stream(), spin: gpu.spin("opened") };
            scope.spawn(move || {
                while Instant::now() < end {
                    (0..16).for_each(|_| on_thread(&program).unwrap());
                    program.stream.synchronize().unwrap();
                    // Old versions record all launches, in buffers of a bounded size.
                    thread::sleep(Duration::from_millis(1));
                }
            });
        }
    });
    gpu.synchronize();
    tally::print();
}

/// Opens calls for longer than the runtime waits for records.
fn during_flushes(_: &[String]) {
    let gpu = Gpu::new();
    let program = Program::new(&gpu);
    let end = Instant::now() + Duration::from_millis(500);
    while Instant::now() < end {
        on_thread(&program).unwrap();
        thread::sleep(Duration::from_millis(1));
    }
    gpu.synchronize();
    tally::print();
}

#[gpu_timed]
fn launches_eight(program: &Program) -> LaunchResult {
    ran!();
    (0..8).try_for_each(|_| program.launch())
}

/// Ends while other threads begin and end calls.
fn exit_amid(_: &[String]) {
    let gpu = Gpu::new();
    for _ in 0..4 {
        let program = Program { stream: gpu.new_stream(), spin: gpu.spin("opened") };
        thread::spawn(move || {
            // Launches fail once the driver has ended.
            while launches_eight(&program).is_ok() && program.stream.synchronize().is_ok() {
                thread::sleep(Duration::from_micros(200));
            }
        });
    }
    thread::sleep(Duration::from_millis(300));
    tally::print();
}

#[gpu_timed(clock = "kernels")]
fn sets(program: &Program, memory: &mut CudaSlice<u8>) -> LaunchResult {
    ran!();
    program.stream.memset_zeros(memory)?;
    program.launch()
}

/// Opens calls that each make a memset, while two threads make memsets outside any call.
fn during_memsets(_: &[String]) {
    let gpu = Gpu::new();
    let program = Program::new(&gpu);
    let end = Instant::now() + Duration::from_millis(500);
    thread::scope(|scope| {
        for _ in 0..2 {
            let stream = gpu.new_stream();
            scope.spawn(move || {
                let mut memory = stream.alloc_zeros::<u8>(4_096).unwrap();
                while Instant::now() < end {
                    (0..16).for_each(|_| stream.memset_zeros(&mut memory).unwrap());
                    stream.synchronize().unwrap();
                }
            });
        }
        let mut memory = gpu.stream.alloc_zeros::<u8>(4_096).unwrap();
        while Instant::now() < end {
            sets(&program, &mut memory).unwrap();
            gpu.synchronize();
        }
    });
    tally::print();
}

#[gpu_timed(clock = "kernels", key = key)]
fn by_key(program: &Program, key: u64) -> LaunchResult {
    ran!();
    (0..key).try_for_each(|_| program.launch())
}

fn keyed(_: &[String]) {
    let gpu = Gpu::new();
    let program = Program::new(&gpu);
    for key in [1, 2, 3, 2, 1, 1] {
        by_key(&program, key).unwrap();
        gpu.synchronize();
    }
    tally::print();
}

/// Launches one kernel in each part, and waits between the parts.
#[gpu_timed]
async fn in_parts(program: &Program, parts: u32) {
    ran!();
    program.launch().unwrap();
    for _ in 1..parts {
        later().await;
        program.launch().unwrap();
    }
}

/// Completes a future that was first polled outside this call.
#[gpu_timed]
async fn goes_on(program: &Program, future: Pin<&mut impl Future>) {
    ran!();
    program.launch().unwrap();
    future.await;
}

/// Polls, once, a future that was first polled outside this call.
#[gpu_timed]
fn polls(program: &Program, future: Pin<&mut impl Future>) {
    ran!();
    program.launch().unwrap();
    assert!(future.poll(&mut Context::from_waker(Waker::noop())).is_pending());
    program.launch().unwrap();
}

/// Drops futures that are pending, and polls futures inside calls that did not begin them.
fn futures(_: &[String]) {
    let gpu = Gpu::new();
    let program = Program::new(&gpu);
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..5 {
        {
            let mut given_up = pin!(in_parts(&program, 2));
            assert!(given_up.as_mut().poll(&mut context).is_pending());
        }
        let mut moved = pin!(in_parts(&program, 2));
        assert!(moved.as_mut().poll(&mut context).is_pending());
        let mut around = pin!(goes_on(&program, moved));
        assert!(around.as_mut().poll(&mut context).is_ready());
        let mut borrowed = pin!(in_parts(&program, 3));
        assert!(borrowed.as_mut().poll(&mut context).is_pending());
        polls(&program, borrowed.as_mut());
        assert!(borrowed.as_mut().poll(&mut context).is_ready());
        gpu.synchronize();
    }
    tally::print();
}
