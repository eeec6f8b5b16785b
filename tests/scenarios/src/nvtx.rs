//! Functions that a tool sees as ranges, whether they are timed or not.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;

use cudarc::driver::CudaStream;
use gpu_time::{gpu_timed, guard, scope};

use crate::child;
use crate::gpu::{Gpu, LaunchResult, Spin};
use crate::later::later;
use crate::scenario::Scenario;
use crate::tally::{self, ran};

pub const SCENARIOS: &[Scenario] = &[
    ("nvtx/nested", nested),
    ("nvtx/futures", futures),
    ("nvtx/panics", panics),
    ("nvtx/fork", fork),
];

const NS: u64 = 10_000;

struct Program {
    gpu: Gpu,
    bracketed: Spin,
    recorded: Spin,
}

#[gpu_timed(clock = "host")]
fn outer(program: &Program) -> LaunchResult {
    ran!();
    by_events(&program.gpu.stream, &program.bracketed)?;
    by_kernels(program)?;
    scope!("nvtx block", clock = "host", {
        tally::count_runs("nvtx block", 1);
        by_host();
    });
    tally::count_runs("nvtx guard", 1);
    let _guard = guard!("nvtx guard", clock = "host");
    after_warmup();
    Ok(())
}

#[gpu_timed]
fn by_events(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, NS)
}

/// Recorded in a fifth of its calls, if CUPTI is available.
#[gpu_timed]
fn by_kernels(program: &Program) -> LaunchResult {
    ran!();
    program.recorded.launch(&program.gpu.stream, NS)
}

/// Timed in every tenth call.
#[gpu_timed(clock = "host", every = 10)]
fn by_host() {
    ran!();
}

#[gpu_timed(clock = "host", warmup = 1_000)]
fn after_warmup() {
    ran!();
}

/// Makes calls with each clock on two threads. Some of the calls are timed.
fn nested(arguments: &[String]) {
    let gpu = Gpu::new();
    let (bracketed, recorded) = (gpu.spin("nvtx::by_events"), gpu.spin("nvtx"));
    let program = Program { gpu, bracketed, recorded };
    let rounds: u64 = arguments[0].parse().unwrap();
    let run = || (0..rounds).for_each(|_| outer(&program).unwrap());
    run();
    thread::scope(|scope| {
        scope.spawn(run);
    });
    program.gpu.synchronize();
    tally::print();
}

#[gpu_timed(clock = "host")]
async fn waits() {
    ran!();
    by_host();
    later().await;
    by_host();
}

#[gpu_timed(clock = "host")]
async fn waits_for_other() {
    ran!();
    waits().await;
}

#[gpu_timed(clock = "host")]
async fn panics_at_last() {
    ran!();
    later().await;
    panic!("planted");
}

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Polls futures that take turns, move to another thread, are dropped early, or panic.
fn futures(_: &[String]) {
    let (mut one, mut other) = (pin!(waits()), pin!(waits_for_other()));
    assert!(poll(one.as_mut()).is_pending());
    assert!(poll(other.as_mut()).is_pending());
    assert!(poll(one.as_mut()).is_ready());
    assert!(poll(other.as_mut()).is_ready());
    let mut moved = pin!(waits());
    assert!(poll(moved.as_mut()).is_pending());
    thread::scope(|scope| {
        scope.spawn(|| assert!(poll(moved.as_mut()).is_ready()));
    });
    assert!(poll(pin!(waits())).is_pending());
    let mut panics = pin!(panics_at_last());
    assert!(poll(panics.as_mut()).is_pending());
    assert!(catch_unwind(AssertUnwindSafe(|| poll(panics))).is_err());
    by_host();
    tally::print();
}

#[gpu_timed(clock = "host")]
fn unwinds(depth: u32) {
    ran!();
    if depth == 0 {
        panic!("planted");
    }
    unwinds(depth - 1);
}

fn panics(_: &[String]) {
    assert!(catch_unwind(|| unwinds(2)).is_err());
    by_host();
    tally::print();
}

#[gpu_timed(clock = "host")]
fn forks() {
    ran!();
    by_host();
    let pid = child::fork(by_host);
    assert_eq!(child::wait(pid), 0);
}

/// Forks inside a range.
fn fork(_: &[String]) {
    forks();
    tally::print();
}
