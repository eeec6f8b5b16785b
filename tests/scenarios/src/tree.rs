//! Functions with several callers, recursive functions, and calls in which the GPU waits for the host,
//! timed by CUPTI and by events.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use cudarc::driver::CudaStream;
use gpu_time::gpu_timed;

use crate::gpu::{Gpu, LaunchResult, Spin};
use crate::later::later;
use crate::scenario::Scenario;
use crate::tally::{self, ran};
use crate::time;

pub const SCENARIOS: &[Scenario] = &[
    ("tree/callers", callers),
    ("tree/shares", shares),
    ("tree/layers", layers),
    ("tree/async_shares", async_shares),
    ("tree/sampled_inside", sampled_between),
    ("tree/late", late),
    ("tree/behind", behind_others),
    ("tree/overlap", overlap),
    ("tree/events", by_events),
    ("tree/sampled", sampled_by_events),
    ("tree/mixed", mixed),
    ("tree/futures", futures),
    ("tree/in_launch", in_launch),
    ("tree/left", left_early),
    ("tree/bounds", bounds),
];

/// The duration of each kernel.
const NS: u64 = 10_000;
/// The pause after each round, which leaves time for more phases.
const PAUSE: Duration = Duration::from_micros(200);

struct Program {
    gpu: Gpu,
    stream: Arc<CudaStream>,
    spin: Spin,
}

impl Program {
    fn new() -> Program {
        let gpu = Gpu::new();
        let (stream, spin) = (gpu.stream.clone(), gpu.spin("tree"));
        Program { gpu, stream, spin }
    }

    fn launch(&self, ns: u64) -> LaunchResult {
        self.spin.launch(&self.stream, ns)
    }
}

#[gpu_timed]
fn left(program: &Program) -> LaunchResult {
    ran!();
    program.launch(NS)?;
    shared(program)
}

#[gpu_timed]
fn right(program: &Program) -> LaunchResult {
    ran!();
    shared(program)?;
    shared(program)
}

#[gpu_timed]
fn shared(program: &Program) -> LaunchResult {
    ran!();
    program.launch(2 * NS)
}

#[gpu_timed]
fn countdown(program: &Program, n: u32) -> LaunchResult {
    ran!();
    program.launch(NS)?;
    if n > 0 { countdown(program, n - 1) } else { Ok(()) }
}

/// Calls one function directly and through two callers, and one function that calls itself twice.
fn callers(arguments: &[String]) {
    let program = Program::new();
    for _ in 0..arguments[0].parse().unwrap() {
        left(&program).unwrap();
        right(&program).unwrap();
        shared(&program).unwrap();
        countdown(&program, 2).unwrap();
    }
    program.gpu.synchronize();
    tally::print();
}

#[gpu_timed]
fn sampled(program: &Program, n: u64) -> LaunchResult {
    ran!();
    program.launch(NS)?;
    sampled_inside(program, n)
}

#[gpu_timed]
fn sampled_inside(program: &Program, n: u64) -> LaunchResult {
    ran!();
    program.launch(NS + n % 7 * NS)
}

#[gpu_timed]
fn sampled_around(program: &Program) -> LaunchResult {
    ran!();
    program.launch(NS)?;
    always(program)
}

#[gpu_timed]
fn always(program: &Program) -> LaunchResult {
    ran!();
    program.launch(2 * NS)
}

/// Makes nested calls, of which some vary.
fn shares(_: &[String]) {
    let program = Program::new();
    for n in 0..1_500 {
        sampled(&program, n).unwrap();
        sampled_around(&program).unwrap();
        program.gpu.synchronize();
        thread::sleep(PAUSE);
    }
    tally::print();
}

#[gpu_timed(clock = "kernels")]
fn pass(program: &Program, ns: u64) -> LaunchResult {
    ran!();
    (0..50).try_for_each(|_| layer(program, ns))
}

#[gpu_timed(clock = "kernels")]
fn layer(program: &Program, ns: u64) -> LaunchResult {
    ran!();
    program.launch(ns)
}

/// Makes calls of different lengths that have many calls inside, all of which are recorded with them.
fn layers(_: &[String]) {
    let program = Program::new();
    for turn in 0..300 {
        pass(&program, NS * (1 + turn % 5)).unwrap();
        program.gpu.synchronize();
        thread::sleep(5 * PAUSE);
    }
    tally::print();
}

#[gpu_timed]
async fn waits_sampled(program: &Program, n: u64) -> LaunchResult {
    ran!();
    program.launch(NS)?;
    waits_sampled_inside(program, n).await
}

#[gpu_timed]
async fn waits_sampled_inside(program: &Program, n: u64) -> LaunchResult {
    ran!();
    later().await;
    program.launch(NS)?;
    sampled_inside(program, n)
}

#[gpu_timed(scope = "body")]
async fn waits_on_stream(stream: Arc<CudaStream>, program: &Program) -> LaunchResult {
    ran!();
    program.spin.launch(&stream, NS)?;
    later().await;
    always(program)
}

/// Polls async functions, and completes one of them on another thread.
fn async_shares(_: &[String]) {
    let program = Program::new();
    let mut context = Context::from_waker(Waker::noop());
    for n in 0..1_500 {
        let mut moved = pin!(waits_sampled(&program, n));
        let mut on_stream = pin!(waits_on_stream(program.stream.clone(), &program));
        assert!(moved.as_mut().poll(&mut context).is_pending());
        assert!(on_stream.as_mut().poll(&mut context).is_pending());
        // While both futures wait, this call is inside neither.
        shared(&program).unwrap();
        assert!(on_stream.as_mut().poll(&mut context).is_ready());
        thread::scope(|scope| {
            let poll = || moved.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
            assert!(scope.spawn(poll).join().unwrap());
        });
        program.gpu.synchronize();
        thread::sleep(PAUSE);
    }
    tally::print();
}

#[gpu_timed]
fn around_sampled(program: &Program) -> LaunchResult {
    ran!();
    rarely_by_events(&program.stream, program)?;
    often_by_events(&program.stream, program)?;
    half_by_kernels(program)
}

#[gpu_timed(scope = "body", sample = 0.1)]
fn rarely_by_events(stream: &Arc<CudaStream>, program: &Program) -> LaunchResult {
    ran!();
    program.spin.launch(stream, NS)?;
    in_rarely(program)
}

#[gpu_timed]
fn in_rarely(program: &Program) -> LaunchResult {
    ran!();
    program.launch(2 * NS)
}

#[gpu_timed(scope = "body", sample = 0.6)]
fn often_by_events(stream: &Arc<CudaStream>, program: &Program) -> LaunchResult {
    ran!();
    program.spin.launch(stream, NS)?;
    in_often(program)
}

#[gpu_timed]
fn in_often(program: &Program) -> LaunchResult {
    ran!();
    program.launch(2 * NS)
}

#[gpu_timed(sample = 0.5)]
fn half_by_kernels(program: &Program) -> LaunchResult {
    ran!();
    program.launch(NS)?;
    in_half(program)
}

#[gpu_timed]
fn in_half(program: &Program) -> LaunchResult {
    ran!();
    program.launch(2 * NS)
}

/// Calls sampled functions inside another function.
fn sampled_between(_: &[String]) {
    let program = Program::new();
    for _ in 0..2_000 {
        around_sampled(&program).unwrap();
        program.gpu.synchronize();
    }
    tally::print();
}

#[gpu_timed]
fn prompt(program: &Program) -> LaunchResult {
    ran!();
    (0..5).try_for_each(|_| program.launch(10 * NS))
}

#[gpu_timed]
fn late_by_turns(program: &Program) -> LaunchResult {
    ran!();
    (0..5).try_for_each(|_| {
        program.launch(NS)?;
        time::pass(10 * NS);
        Ok(())
    })
}

/// Calls a function that enqueues its work in time, and a function during which the GPU has to wait.
fn late(_: &[String]) {
    let program = Program::new();
    for _ in 0..20 {
        prompt(&program).unwrap();
        program.gpu.synchronize();
        late_by_turns(&program).unwrap();
        program.gpu.synchronize();
    }
    tally::print();
}

#[gpu_timed(clock = "kernels")]
fn behind(program: &Program, other: &Arc<CudaStream>) -> LaunchResult {
    ran!();
    program.launch(NS)?;
    time::pass(2 * NS);
    program.stream.join(other)?;
    program.launch(NS)
}

/// Calls a function whose second kernel has to wait for the long kernel of another stream.
fn behind_others(_: &[String]) {
    let program = Program::new();
    let other = program.gpu.new_stream();
    for _ in 0..20 {
        program.spin.launch(&other, 100 * NS).unwrap();
        behind(&program, &other).unwrap();
        program.gpu.synchronize();
    }
    tally::print();
}

#[gpu_timed(clock = "kernels")]
fn long(stream: &CudaStream, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, LONG)
}

/// Makes calls whose work runs on two streams at the same time.
fn overlap(arguments: &[String]) {
    let gpu = Gpu::new();
    let streams = [gpu.new_stream(), gpu.new_stream()];
    let spin = gpu.spin("tree::long");
    for _ in 0..arguments[0].parse().unwrap() {
        for stream in &streams {
            long(stream, &spin).unwrap();
        }
        gpu.synchronize();
    }
    tally::print();
}

/// The duration of each kernel in functions timed by events.
const LONG: u64 = 100_000;

/// Streams that are busy until everything has been enqueued, and a kernel for each function.
struct Timed {
    gpu: Gpu,
    stream: Arc<CudaStream>,
    other: Arc<CudaStream>,
    blocker: Spin,
    spins: HashMap<&'static str, Spin>,
}

impl Timed {
    fn new(functions: &[&'static str]) -> Timed {
        let gpu = Gpu::new();
        let spin = |name: &&'static str| (*name, gpu.spin(&format!("tree::{name}")));
        let (stream, other) = (gpu.stream.clone(), gpu.new_stream());
        let (blocker, spins) = (gpu.spin("blocker"), functions.iter().map(spin).collect());
        Timed { gpu, stream, other, blocker, spins }
    }

    /// Launches a function's kernel, for `kernels` times [`LONG`].
    fn work(&self, stream: &CudaStream, function: &str, kernels: u64) -> LaunchResult {
        self.spins[function].launch(stream, kernels * LONG)
    }

    /// Calls functions while the GPU is busy.
    fn queued(&self, round: u32, calls: impl FnOnce() -> LaunchResult) {
        // The first call registers the context, which takes longer.
        let busy_ms = if round == 0 { 100 } else { 2 };
        for stream in [&self.stream, &self.other] {
            self.blocker.launch(stream, busy_ms * 1_000_000).unwrap();
        }
        calls().unwrap();
        self.gpu.synchronize();
    }
}

#[gpu_timed(scope = "body")]
fn outer(stream: &Arc<CudaStream>, timed: &Timed) -> LaunchResult {
    ran!();
    timed.work(stream, "outer", 1)?;
    middle(stream, timed)?;
    aside(&timed.other, timed)?;
    leaf(stream, &timed.spins["leaf"])
}

#[gpu_timed(scope = "body")]
fn middle(stream: &Arc<CudaStream>, timed: &Timed) -> LaunchResult {
    ran!();
    timed.work(stream, "middle", 2)?;
    leaf(stream, &timed.spins["leaf"])?;
    leaf(stream, &timed.spins["leaf"])
}

/// Makes a single launch, which is timed by itself.
#[gpu_timed]
fn leaf(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 3 * LONG)
}

/// Launches on a different stream than its caller.
#[gpu_timed(scope = "body")]
fn aside(stream: &Arc<CudaStream>, timed: &Timed) -> LaunchResult {
    ran!();
    timed.work(stream, "aside", 1)
}

/// Times only the launches. The call in between is not inside their brackets.
#[gpu_timed]
fn by_launches(stream: &Arc<CudaStream>, timed: &Timed, spins: &[Spin; 2]) -> LaunchResult {
    ran!();
    spins[0].launch(stream, LONG)?;
    leaf(stream, &timed.spins["leaf"])?;
    spins[1].launch(stream, LONG)
}

#[gpu_timed(scope = "body")]
fn repeated(stream: &Arc<CudaStream>, timed: &Timed, n: u32) -> LaunchResult {
    ran!();
    timed.work(stream, "repeated", 1)?;
    if n > 0 { repeated(stream, timed, n - 1) } else { Ok(()) }
}

/// Calls nested and recursive functions, one of which has three callers.
fn by_events(_: &[String]) {
    let timed = Timed::new(&["outer", "middle", "leaf", "aside", "repeated"]);
    let spins = [0, 1].map(|at| timed.gpu.spin(&format!("tree::by_launches#{at}")));
    for round in 0..20 {
        timed.queued(round, || {
            outer(&timed.stream, &timed)?;
            by_launches(&timed.stream, &timed, &spins)?;
            leaf(&timed.stream, &timed.spins["leaf"])?;
            repeated(&timed.stream, &timed, 2)
        });
    }
    tally::print();
}

#[gpu_timed(scope = "body", sample = 0.3)]
fn often(stream: &Arc<CudaStream>, timed: &Timed) -> LaunchResult {
    ran!();
    timed.work(stream, "often", 1)?;
    half(stream, timed)
}

#[gpu_timed(scope = "body", sample = 0.5)]
fn half(stream: &Arc<CudaStream>, timed: &Timed) -> LaunchResult {
    ran!();
    timed.work(stream, "half", 2)?;
    each(stream, timed)
}

#[gpu_timed(scope = "body")]
fn each(stream: &Arc<CudaStream>, timed: &Timed) -> LaunchResult {
    ran!();
    timed.work(stream, "each", 3)
}

#[gpu_timed(scope = "body")]
fn around(stream: &Arc<CudaStream>, timed: &Timed) -> LaunchResult {
    ran!();
    timed.work(stream, "around", 1)?;
    often(stream, timed)
}

/// Calls nested functions, of which two are sampled.
fn sampled_by_events(_: &[String]) {
    let timed = Timed::new(&["around", "often", "half", "each"]);
    for round in 0..1_000 {
        timed.queued(round, || around(&timed.stream, &timed));
    }
    tally::print();
}

#[gpu_timed(scope = "body")]
fn partly(stream: &Arc<CudaStream>, timed: &Timed) -> LaunchResult {
    ran!();
    timed.work(stream, "partly", 1)?;
    each(stream, timed)
}

/// Calls a function by itself and inside another one.
fn mixed(_: &[String]) {
    let timed = Timed::new(&["partly", "around", "often", "half", "each"]);
    for round in 0..100 {
        timed.queued(round, || {
            partly(&timed.stream, &timed)?;
            each(&timed.stream, &timed)
        });
    }
    tally::print();
}

#[gpu_timed]
async fn waits(stream: Arc<CudaStream>, timed: &Timed, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(&stream, LONG)?;
    waits_inside(stream, timed).await
}

#[gpu_timed(scope = "body")]
async fn waits_inside(stream: Arc<CudaStream>, timed: &Timed) -> LaunchResult {
    ran!();
    timed.work(&stream, "waits_inside", 2)?;
    later().await;
    each(&stream, timed)
}

#[gpu_timed]
async fn waits_elsewhere(stream: Arc<CudaStream>, timed: &Timed, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(&stream, LONG)?;
    later().await;
    each(&stream, timed)
}

/// Polls two futures alternately, and completes one of them on another thread.
fn futures(_: &[String]) {
    let timed = Timed::new(&["waits", "waits_inside", "waits_elsewhere", "each"]);
    let mut context = Context::from_waker(Waker::noop());
    for round in 0..20 {
        timed.queued(round, || {
            let (stream, other) = (timed.stream.clone(), timed.other.clone());
            let mut one = pin!(waits(stream, &timed, &timed.spins["waits"]));
            let mut two = pin!(waits_elsewhere(other, &timed, &timed.spins["waits_elsewhere"]));
            assert!(one.as_mut().poll(&mut context).is_pending());
            assert!(two.as_mut().poll(&mut context).is_pending());
            // While both futures wait, this call is inside neither.
            each(&timed.stream, &timed)?;
            assert!(one.as_mut().poll(&mut context).is_ready());
            thread::scope(|scope| {
                let poll = || two.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
                assert!(scope.spawn(poll).join().unwrap());
            });
            Ok(())
        });
    }
    tally::print();
}

/// Waits in the argument of its launch, whose bracket is open by then.
#[gpu_timed]
async fn waits_in_launch(stream: Arc<CudaStream>, timed: &Timed, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(&stream, {
        later().await;
        each(&stream, timed)?;
        LONG
    })
}

/// Polls a future that is pending within a launch.
fn in_launch(_: &[String]) {
    let timed = Timed::new(&["waits_in_launch", "each"]);
    let mut context = Context::from_waker(Waker::noop());
    for round in 0..20 {
        timed.queued(round, || {
            let (stream, spin) = (timed.stream.clone(), &timed.spins["waits_in_launch"]);
            let mut waiting = pin!(waits_in_launch(stream, &timed, spin));
            assert!(waiting.as_mut().poll(&mut context).is_pending());
            assert!(waiting.as_mut().poll(&mut context).is_ready());
            Ok(())
        });
    }
    tally::print();
}

#[gpu_timed(scope = "body")]
fn leaves(stream: &Arc<CudaStream>, timed: &Timed, panics: bool) -> LaunchResult {
    ran!();
    timed.work(stream, "leaves", 1)?;
    each(stream, timed)?;
    if panics {
        panic!("on purpose");
    }
    Ok(())
}

/// May leave its second launch before it is made. The call that follows is inside neither launch.
#[gpu_timed]
fn skips(stream: &Arc<CudaStream>, timed: &Timed, skips_one: bool) -> LaunchResult {
    ran!();
    for is_skipped in [false, skips_one] {
        timed.spins["skips"].launch(stream, if is_skipped { continue } else { LONG })?;
    }
    each(stream, timed)
}

/// Makes calls of which every second one unwinds or leaves a launch.
fn left_early(_: &[String]) {
    let timed = Timed::new(&["leaves", "around", "often", "half", "each", "skips"]);
    for round in 0..20 {
        timed.queued(round, || {
            let call = || leaves(&timed.stream, &timed, round % 2 == 1);
            _ = catch_unwind(AssertUnwindSafe(call));
            skips(&timed.stream, &timed, round % 2 == 1)?;
            each(&timed.stream, &timed)
        });
    }
    tally::print();
}

#[gpu_timed(scope = "body")]
fn starved(stream: &Arc<CudaStream>, timed: &Timed) -> LaunchResult {
    ran!();
    timed.work(stream, "starved", 1)?;
    time::pass(10 * LONG);
    timed.work(stream, "starved", 1)
}

#[gpu_timed(scope = "body")]
fn shares_stream(stream: &Arc<CudaStream>, timed: &Timed) -> LaunchResult {
    ran!();
    timed.work(stream, "shares_stream", 1)?;
    // Runs inside the bracket but on another thread, so this function is not its caller.
    let call = || each(stream, timed);
    thread::scope(|scope| scope.spawn(call).join().unwrap())
}

/// Calls functions whose times by events are only upper bounds.
fn bounds(_: &[String]) {
    let timed = Timed::new(&["starved", "shares_stream", "each"]);
    for round in 0..20 {
        timed.queued(round, || shares_stream(&timed.stream, &timed));
        starved(&timed.stream, &timed).unwrap();
        timed.gpu.synchronize();
    }
    tally::print();
}
