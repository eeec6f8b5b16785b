//! The extent of brackets, and the ways in which a function can leave one.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;

use cudarc::driver::{CudaSlice, CudaStream, DriverError, PushKernelArg};
use gpu_time::{gpu_timed, guard, scope};

use crate::gpu::{Gpu, LaunchResult, ONE, Spin};
use crate::scenario::Scenario;
use crate::tally::{self, ran};

pub const SCENARIOS: &[Scenario] = &[
    ("scopes/shapes", shapes),
    ("scopes/early", early_returns),
    ("scopes/errors", errors),
    ("scopes/panics", panics),
    ("scopes/recursion", recursion),
    ("scopes/nested", nested),
    ("scopes/inner", inner_brackets),
    ("scopes/mixture", mixture),
    ("scopes/futures", futures),
    ("scopes/blocks", blocks),
    ("scopes/members", members),
];

/// The number of timed kernels in a pass, as many as a small model has.
const KERNELS: usize = 28;

/// Makes a held pass of `steps` and one kernels, which is timed only as a whole.
#[gpu_timed(scope = "body", sleep)]
fn pass_alone(stream: &Arc<CudaStream>, spin: &Spin, steps: usize, ns: u64) -> LaunchResult {
    ran!();
    (0..=steps).try_for_each(|_| spin.launch(stream, ns))
}

/// The same pass, with a timed function around each kernel but the first.
#[gpu_timed(scope = "body", sleep)]
fn pass_around(
    stream: &Arc<CudaStream>,
    [own, inner]: [&Spin; 2],
    steps: usize,
    ns: u64,
) -> LaunchResult {
    ran!();
    own.launch(stream, ns)?;
    (0..steps).try_for_each(|_| step(stream, inner, ns))
}

#[gpu_timed]
fn step(stream: &Arc<CudaStream>, spin: &Spin, ns: u64) -> LaunchResult {
    ran!();
    spin.launch(stream, ns)
}

/// Makes passes with and without timed functions inside. The argument is the time of a kernel.
fn inner_brackets(arguments: &[String]) {
    let gpu = Gpu::new();
    let places = ["pass_alone", "pass_around", "step"];
    let [alone, own, step] = places.map(|name| gpu.spin(&format!("scopes::{name}")));
    let ns = arguments[0].parse().unwrap();
    for _ in 0..60 {
        pass_alone(&gpu.stream, &alone, KERNELS, ns).unwrap();
        gpu.synchronize();
        pass_around(&gpu.stream, [&own, &step], KERNELS, ns).unwrap();
        gpu.synchronize();
    }
    tally::print();
}

/// Held, with a bracket of the same function inside each but the innermost.
#[gpu_timed(scope = "body", sleep)]
fn descend(stream: &Arc<CudaStream>, spin: &Spin, steps: usize) -> LaunchResult {
    ran!();
    if steps > 1 {
        descend(stream, spin, steps - 1)?;
    }
    spin.launch(stream, STEP_NS)
}

/// The time of a kernel in a short pass.
const STEP_NS: u64 = 5_000;

/// Makes passes of 2 and of 21 kernels in turns, with and without timed functions inside, and recursive ones of 2 to
/// 9 kernels.
fn mixture(_: &[String]) {
    let gpu = Gpu::new();
    let places = ["pass_alone", "pass_around", "step", "descend"];
    let [alone, own, step, down] = places.map(|name| gpu.spin(&format!("scopes::{name}")));
    for turn in 0..60 {
        let steps = if turn % 2 == 0 { 1 } else { 20 };
        pass_alone(&gpu.stream, &alone, steps, STEP_NS).unwrap();
        gpu.synchronize();
        pass_around(&gpu.stream, [&own, &step], steps, STEP_NS).unwrap();
        gpu.synchronize();
        descend(&gpu.stream, &down, 2 + turn % 8).unwrap();
        gpu.synchronize();
    }
    tally::print();
}

/// The stream is inferred, and the launch is cudarc's own.
#[gpu_timed]
fn one(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    let ns = 20_000u64;
    // SAFETY: the argument matches the kernel.
    unsafe { stream.launch_builder(spin.function()).arg(&ns).launch(ONE) }?;
    Ok(())
}

#[gpu_timed]
fn three(stream: &Arc<CudaStream>, spins: &[Spin; 3]) -> LaunchResult {
    ran!();
    spins[0].launch(stream, 5_000)?;
    spins[1].launch(stream, 10_000)?;
    spins[2].launch(stream, 20_000)
}

/// To the macro, this is a single launch. It is executed `times` times.
#[gpu_timed]
fn looped(stream: &Arc<CudaStream>, spin: &Spin, times: usize) -> LaunchResult {
    ran!();
    for _ in 0..times {
        spin.launch(stream, 5_000)?;
    }
    Ok(())
}

#[gpu_timed(scope = "body")]
fn body(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 10_000)?;
    spin.launch(stream, 10_000)
}

/// Without a visible launch, the whole body is timed. It enqueues none of the scenario's kernels.
#[gpu_timed]
fn clears(stream: &Arc<CudaStream>, memory: &mut CudaSlice<u8>) -> LaunchResult {
    ran!();
    stream.memset_zeros(memory)
}

#[gpu_timed(scope = "body")]
fn nothing(stream: &Arc<CudaStream>) {
    ran!();
    let _ = stream;
}

fn shapes(_: &[String]) {
    let gpu = Gpu::new();
    let stream = &gpu.stream;
    let spins = [0, 1, 2].map(|i| gpu.spin(&format!("scopes::three#{i}")));
    let (single, span) = (gpu.spin("scopes::one"), gpu.spin("scopes::body"));
    let loop_spin = gpu.spin("scopes::looped");
    let mut memory = stream.alloc_zeros(1 << 20).unwrap();
    for i in 0..20 {
        one(stream, &single).unwrap();
        three(stream, &spins).unwrap();
        looped(stream, &loop_spin, i % 4).unwrap();
        body(stream, &span).unwrap();
        clears(stream, &mut memory).unwrap();
        nothing(stream);
        gpu.synchronize();
    }
    tally::print();
}

/// Returns before its first launch (0), between the two (1), or at the end (2).
#[gpu_timed]
fn early(stream: &Arc<CudaStream>, spins: &[Spin; 2], at: u32) -> Result<u32, DriverError> {
    ran!();
    if at == 0 {
        return Ok(0);
    }
    spins[0].launch(stream, 5_000)?;
    if at == 1 {
        return Ok(1);
    }
    spins[1].launch(stream, 10_000)?;
    Ok(2)
}

/// Leaves by `?` in one of the launch's arguments, after the start has been recorded.
#[gpu_timed]
fn leaves_in_arguments(stream: &Arc<CudaStream>, spin: &Spin, ns: Option<u64>) -> Option<()> {
    ran!();
    spin.launch(stream, ns?).ok()
}

fn early_returns(_: &[String]) {
    let gpu = Gpu::new();
    let spins = [0, 1].map(|i| gpu.spin(&format!("scopes::early#{i}")));
    let spin = gpu.spin("scopes::leaves_in_arguments");
    for i in 0..12u32 {
        assert_eq!(early(&gpu.stream, &spins, i % 3), Ok(i % 3));
        let ns = (i % 2 == 0).then_some(5_000);
        assert_eq!(leaves_in_arguments(&gpu.stream, &spin, ns).is_some(), ns.is_some());
    }
    gpu.synchronize();
    tally::print();
}

#[gpu_timed(launch = "launch_badly")]
fn fails(stream: &Arc<CudaStream>, spin: &Spin, which: u32) -> LaunchResult {
    ran!();
    spin.launch(stream, 5_000)?;
    if which == 1 {
        spin.launch_badly(stream)?;
    }
    spin.launch(stream, 5_000)
}

/// Handles the error and continues.
#[gpu_timed(launch = "launch_badly")]
fn forgives(stream: &Arc<CudaStream>, spin: &Spin) -> bool {
    ran!();
    let failed = spin.launch_badly(stream).is_err();
    spin.launch(stream, 5_000).unwrap();
    failed
}

/// The whole body is timed even if a launch in it fails.
#[gpu_timed(scope = "body")]
fn fails_in_body(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 5_000)?;
    spin.launch_badly(stream)
}

fn errors(_: &[String]) {
    let gpu = Gpu::new();
    let spin = gpu.spin("scopes::errors");
    let code = |done: LaunchResult| done.err().map(|error| error.0 as u32);
    for i in 0..10 {
        let answer = code(fails(&gpu.stream, &spin, i % 2));
        assert_eq!(answer, (i % 2 == 1).then_some(1));
        assert!(forgives(&gpu.stream, &spin));
        assert_eq!(code(fails_in_body(&gpu.stream, &spin)), Some(1));
    }
    gpu.synchronize();
    tally::print();
}

/// Panics before its launch (0), in the launch's arguments (1), after it (2), or not at all (3).
#[gpu_timed]
fn panics_somewhere(stream: &Arc<CudaStream>, spin: &Spin, at: u32) -> LaunchResult {
    ran!();
    assert_ne!(at, 0, "intentional panic");
    spin.launch(stream, if at == 1 { panic!("intentional panic") } else { 5_000 })?;
    assert_ne!(at, 2, "intentional panic");
    Ok(())
}

#[gpu_timed(scope = "body", sleep, cold)]
fn panics_in_body(stream: &Arc<CudaStream>, spin: &Spin, at: u32) {
    ran!();
    spin.launch(stream, 5_000).unwrap();
    assert_ne!(at, 0, "intentional panic");
}

/// Calls an annotated function in `drop` while a panic unwinds. The call itself succeeds.
struct LaunchesInDrop<'a>(&'a Gpu, &'a Spin);

#[gpu_timed]
fn in_drop(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 5_000)
}

impl Drop for LaunchesInDrop<'_> {
    fn drop(&mut self) {
        in_drop(&self.0.stream, self.1).unwrap();
    }
}

fn panics(_: &[String]) {
    let gpu = Gpu::new();
    let stream = &gpu.stream;
    let spin = gpu.spin("scopes::panics_somewhere");
    let (in_body, dropping) = (gpu.spin("scopes::panics_in_body"), gpu.spin("scopes::in_drop"));
    let survives = |f: &dyn Fn()| catch_unwind(AssertUnwindSafe(f)).is_ok();
    for i in 0..12 {
        let whole = survives(&|| panics_somewhere(stream, &spin, i % 4).unwrap());
        assert_eq!(whole, i % 4 == 3);
        assert_eq!(survives(&|| panics_in_body(stream, &in_body, i % 2)), i % 2 == 1);
        assert!(!survives(&|| {
            let _guard = LaunchesInDrop(&gpu, &dropping);
            panic!("intentional panic");
        }));
        gpu.synchronize();
    }
    tally::print();
}

/// Each level opens a bracket inside the previous one.
#[gpu_timed(scope = "body", cold, sleep)]
fn recurses(stream: &Arc<CudaStream>, spin: &Spin, depth: u32) -> LaunchResult {
    ran!();
    spin.launch(stream, 5_000)?;
    if depth > 1 { recurses(stream, spin, depth - 1) } else { Ok(()) }
}

fn recursion(_: &[String]) {
    let gpu = Gpu::new();
    let spin = gpu.spin("scopes::recurses");
    for _ in 0..10 {
        recurses(&gpu.stream, &spin, 4).unwrap();
        gpu.synchronize();
    }
    tally::print();
}

#[gpu_timed(stream = stream, scope = "body", cold, sleep)]
fn outer(stream: &Arc<CudaStream>, other: &Arc<CudaStream>, spins: &[Spin; 3]) -> LaunchResult {
    ran!();
    spins[0].launch(stream, 5_000)?;
    inner(stream, &spins[1])?;
    beside(other, &spins[2])
}

#[gpu_timed(cold, sleep)]
fn inner(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 5_000)
}

/// Uses a different stream than its caller.
#[gpu_timed(cold, sleep)]
fn beside(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 5_000)
}

fn nested(_: &[String]) {
    let gpu = Gpu::new();
    let other = gpu.new_stream();
    let spins = ["outer", "inner", "beside"].map(|name| gpu.spin(&format!("scopes::{name}")));
    for _ in 0..10 {
        outer(&gpu.stream, &other, &spins).unwrap();
        gpu.synchronize();
    }
    tally::print();
}

/// Returns `Pending` once.
#[derive(Default)]
struct Yield(bool);

impl Future for Yield {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) { Poll::Ready(()) } else { Poll::Pending }
    }
}

#[gpu_timed]
async fn launches_twice(stream: Arc<CudaStream>, spins: &[Spin; 2]) -> LaunchResult {
    ran!();
    spins[0].launch(&stream, 5_000)?;
    Yield::default().await;
    spins[1].launch(&stream, 10_000)
}

#[gpu_timed(scope = "body")]
async fn waits_in_body(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 5_000)?;
    Yield::default().await;
    spin.launch(stream, 5_000)
}

#[gpu_timed(scope = "body")]
fn boxed<'a>(
    stream: &'a Arc<CudaStream>,
    spin: &'a Spin,
) -> Pin<Box<dyn Future<Output = LaunchResult> + Send + 'a>> {
    Box::pin(async move {
        ran!();
        spin.launch(stream, 5_000)?;
        Yield::default().await;
        spin.launch(stream, 5_000)
    })
}

/// The handle refers to the per-thread stream of the thread that polls.
#[gpu_timed(scope = "body")]
async fn on_per_thread(stream: Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(&stream, 5_000)?;
    Yield::default().await;
    spin.launch(&stream, 5_000)
}

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = poll(future.as_mut()) {
            return output;
        }
    }
}

/// Polls once, lets another thread poll until completion, and returns the output.
fn migrate<T: Send>(future: impl Future<Output = T> + Send) -> T {
    let mut future = pin!(future);
    assert!(poll(future.as_mut()).is_pending());
    thread::scope(|scope| scope.spawn(|| block_on(future)).join().unwrap())
}

/// Polls once and drops the future.
fn cancel<T>(future: impl Future<Output = T>) {
    assert!(poll(pin!(future)).is_pending());
}

fn futures(_: &[String]) {
    let gpu = Gpu::new();
    let stream = &gpu.stream;
    let spins = [0, 1].map(|i| gpu.spin(&format!("scopes::launches_twice#{i}")));
    let (body, tail) = (gpu.spin("scopes::waits_in_body"), gpu.spin("scopes::boxed"));
    let (per_thread, elsewhere) =
        (gpu.context.per_thread_stream(), gpu.spin("scopes::on_per_thread"));
    for _ in 0..10 {
        block_on(launches_twice(stream.clone(), &spins)).unwrap();
        migrate(launches_twice(stream.clone(), &spins)).unwrap();
        cancel(launches_twice(stream.clone(), &spins));
        block_on(waits_in_body(stream, &body)).unwrap();
        migrate(waits_in_body(stream, &body)).unwrap();
        cancel(waits_in_body(stream, &body));
        block_on(boxed(stream, &tail)).unwrap();
        migrate(boxed(stream, &tail)).unwrap();
        cancel(boxed(stream, &tail));
        migrate(on_per_thread(per_thread.clone(), &elsewhere)).unwrap();
        block_on(on_per_thread(per_thread.clone(), &elsewhere)).unwrap();
        // A future that is never polled does not count as a call.
        drop(boxed(stream, &tail));
        gpu.synchronize();
    }
    tally::print();
}

/// Times blocks with visible launches, which are left early or wait, and a guard, all in closures.
fn blocks(_: &[String]) {
    let gpu = Gpu::new();
    let stream = gpu.stream.clone();
    let [left, waiting, guarded] =
        ["a block left early", "a block that waits", "a guard"].map(|name| gpu.spin(name));
    let run = |i: u32| -> LaunchResult {
        for turn in 0..2 {
            scope!("a block left early", stream = stream, {
                ran!("a block left early");
                left.launch(&stream, 20_000)?;
                if turn == 1 && i.is_multiple_of(2) {
                    break;
                }
            });
        }
        // `sleep` is for code that is not async.
        let timed = guard!("a guard", stream = stream, sleep);
        ran!("a guard");
        guarded.launch(&stream, 20_000)?;
        drop(timed);
        Ok(())
    };
    let waits = async |times: u32| -> LaunchResult {
        let launched = scope!("a block that waits", stream = stream, key = times, {
            ran!("a block that waits");
            waiting.launch(&stream, 20_000)?;
            Yield(false).await;
            times
        });
        tally::fact("launched", launched);
        Ok(())
    };
    for i in 0..10 {
        run(i).unwrap();
        let mut future = pin!(waits(3));
        assert!(poll(future.as_mut()).is_pending());
        assert!(poll(future.as_mut()).is_ready());
    }
    // The future is dropped at its await.
    assert!(poll(pin!(waits(3))).is_pending());
    gpu.synchronize();
    tally::print();
}

struct Net {
    stream: Arc<CudaStream>,
    spins: [Spin; 2],
}

#[gpu_timed(stream = self.stream, cold, warmup = 2)]
impl Net {
    fn new(gpu: &Gpu) -> Net {
        ran!();
        let spins = ["forward", "backward"].map(|name| gpu.spin(&format!("scopes::Net::{name}")));
        Net { stream: gpu.stream.clone(), spins }
    }

    fn forward(&self) -> LaunchResult {
        ran!();
        self.spins[0].launch(&self.stream, 20_000)
    }

    #[gpu_timed(warmup = 0)]
    fn backward(&self) -> LaunchResult {
        ran!();
        self.spins[1].launch(&self.stream, 20_000)
    }

    #[gpu_timed(skip)]
    fn layers(&self) -> usize {
        self.spins.len()
    }
}

fn members(_: &[String]) {
    let gpu = Gpu::new();
    let net = Net::new(&gpu);
    for _ in 0..5 * net.layers() {
        net.forward().unwrap();
        net.backward().unwrap();
    }
    gpu.synchronize();
    tally::print();
}
