//! Functions that hand work to a thread of a library.

use std::pin::pin;
use std::sync::{Arc, Barrier};
use std::task::{Context, Waker};
use std::thread;
use std::time::{Duration, Instant};

use cudarc::driver::CudaStream;
use gpu_time::gpu_timed;
use rayon::prelude::*;
use tracing_subscriber::prelude::*;

use crate::gpu::{Gpu, LaunchResult, Spin};
use crate::later::later;
use crate::scenario::Scenario;
use crate::tally::{self, ran};
use crate::windows::has_busy_window;
use crate::worker::Worker;

pub const SCENARIOS: &[Scenario] = &[
    ("helpers/one_caller", one_caller),
    ("helpers/two_callers", two_callers),
    ("helpers/before_phase", before_phase),
    ("helpers/after_call", after_call),
    ("helpers/excluded", excluded),
    ("helpers/in_phases", in_phases),
    ("helpers/inside", inside),
    ("helpers/long", long),
    ("helpers/of_span", of_span),
    ("helpers/beside_span", beside_span),
    ("helpers/rust_threads", rust_threads),
    ("helpers/starts_threads", starts_threads),
];

/// The duration of each kernel of a function. Those of the worker take twice as long.
const NS: u64 = 10_000;
const CALLS: u32 = 20;
/// The longest wait for a phase with work.
const PATIENCE: Duration = Duration::from_secs(12);

struct Program {
    gpu: Gpu,
    stream: Arc<CudaStream>,
    spin: Spin,
    worker: Worker,
}

impl Program {
    fn new() -> Program {
        let gpu = Gpu::new();
        let (stream, spin, worker) = (gpu.stream.clone(), gpu.spin("helpers"), Worker::new(&gpu));
        Program { gpu, stream, spin, worker }
    }

    fn launch(&self) -> LaunchResult {
        self.spin.launch(&self.stream, NS)
    }

    fn submit(&self, launches: u32) {
        self.worker.submit(&self.spin, &self.stream, 2 * NS, launches);
    }

    /// Lets the worker launch, and waits for it.
    fn hand_over(&self, launches: u32) {
        self.submit(launches);
        self.worker.wait();
    }
}

#[gpu_timed]
fn hands_over(program: &Program) -> LaunchResult {
    ran!();
    program.launch()?;
    program.hand_over(3);
    // As libraries do to find a configuration.
    program.worker.submit_bad(&program.spin, &program.stream);
    program.worker.wait();
    program.launch()
}

/// Lets the worker launch for one caller.
fn one_caller(_: &[String]) {
    let program = Program::new();
    for _ in 0..CALLS {
        hands_over(&program).unwrap();
        program.gpu.synchronize();
    }
    tally::print();
}

#[gpu_timed]
fn shares(program: &Program, both: &Barrier, is_first: bool) -> LaunchResult {
    ran!();
    program.launch()?;
    both.wait();
    if is_first {
        program.hand_over(3);
    }
    both.wait();
    Ok(())
}

/// Lets the worker launch while two threads are inside of a function.
fn two_callers(_: &[String]) {
    let (program, both) = (Program::new(), Barrier::new(2));
    thread::scope(|scope| {
        for is_first in [true, false] {
            let (program, both) = (&program, &both);
            scope.spawn(move || {
                for _ in 0..CALLS {
                    shares(program, both, is_first).unwrap();
                    both.wait();
                }
            });
        }
    });
    program.gpu.synchronize();
    tally::print();
}

#[gpu_timed]
fn begins_before_phase(program: &Program, in_phase: impl FnOnce()) -> LaunchResult {
    ran!();
    in_phase();
    program.launch()
}

/// Lets the worker launch in a phase that begins during the call of its caller, until the phase has some of the work.
fn before_phase(_: &[String]) {
    let program = Program::new();
    // Phases may begin, but hardly any does.
    gpu_time::configure().record("1ms/3600s").apply();
    // The first call is recorded in any case.
    begins_before_phase(&program, || ()).unwrap();
    begins_before_phase(&program, || {
        gpu_time::configure().record("on").apply();
        let began = Instant::now();
        while !has_busy_window() && began.elapsed() < PATIENCE {
            program.hand_over(1);
            program.gpu.synchronize();
            thread::sleep(Duration::from_millis(5));
        }
    })
    .unwrap();
    program.gpu.synchronize();
    tally::print();
}

#[gpu_timed]
fn returns_early(program: &Program) -> LaunchResult {
    ran!();
    program.submit(3);
    program.launch()
}

#[gpu_timed]
async fn is_suspended(program: &Program) -> LaunchResult {
    ran!();
    program.launch()?;
    later().await;
    program.launch()
}

/// Lets the worker launch after the call that handed over the work, and while an async function is suspended.
fn after_call(_: &[String]) {
    let program = Program::new();
    for _ in 0..CALLS {
        program.worker.pause(true);
        returns_early(&program).unwrap();
        program.worker.pause(false);
        program.worker.wait();
        let mut suspended = pin!(is_suspended(&program));
        let mut context = Context::from_waker(Waker::noop());
        assert!(suspended.as_mut().poll(&mut context).is_pending());
        program.hand_over(2);
        assert!(suspended.as_mut().poll(&mut context).is_ready());
        program.gpu.synchronize();
    }
    tally::print();
}

#[gpu_timed(helpers = false)]
fn excludes(program: &Program) -> LaunchResult {
    ran!();
    program.hand_over(3);
    is_inside(program)
}

#[gpu_timed]
fn is_inside(program: &Program) -> LaunchResult {
    ran!();
    program.hand_over(1);
    program.launch()
}

/// Lets the worker launch for a function with `helpers = false`, and for one inside of it.
fn excluded(_: &[String]) {
    let program = Program::new();
    for _ in 0..CALLS {
        excludes(&program).unwrap();
        program.gpu.synchronize();
    }
    tally::print();
}

#[gpu_timed(scope = "body")]
fn on_stream(stream: &Arc<CudaStream>, program: &Program) -> LaunchResult {
    ran!();
    program.spin.launch(stream, NS)?;
    program.hand_over(3);
    program.spin.launch(stream, NS)
}

/// Lets the worker launch for a function that events time between phases.
fn in_phases(_: &[String]) {
    let program = Program::new();
    for _ in 0..1_500 {
        on_stream(&program.stream, &program).unwrap();
        program.gpu.synchronize();
        thread::sleep(Duration::from_micros(200));
    }
    tally::print();
}

#[gpu_timed]
fn outer(program: &Program) -> LaunchResult {
    ran!();
    program.hand_over(1);
    inner(program)?;
    program.hand_over(2);
    program.launch()
}

#[gpu_timed]
fn inner(program: &Program) -> LaunchResult {
    ran!();
    program.hand_over(4);
    program.launch()
}

/// Lets the worker launch inside of a function that another one calls.
fn inside(_: &[String]) {
    let program = Program::new();
    for _ in 0..CALLS {
        outer(&program).unwrap();
        program.gpu.synchronize();
    }
    tally::print();
}

#[gpu_timed]
fn calls_often(program: &Program) -> LaunchResult {
    ran!();
    for _ in 0..6_000 {
        hands_over_one(program)?;
        program.stream.synchronize()?;
    }
    program.hand_over(5);
    Ok(())
}

#[gpu_timed]
fn hands_over_one(program: &Program) -> LaunchResult {
    ran!();
    program.worker.submit(&program.spin, &program.stream, 1_000, 1);
    program.worker.wait();
    Ok(())
}

/// Makes one call that is handed over in parts.
fn long(_: &[String]) {
    let program = Program::new();
    calls_often(&program).unwrap();
    program.gpu.synchronize();
    tally::print();
}

/// Lets the worker launch for a span.
fn of_span(_: &[String]) {
    tracing_subscriber::registry().with(gpu_time::spans()).init();
    let program = Program::new();
    for _ in 0..CALLS {
        tracing::info_span!("request").in_scope(|| {
            program.launch().unwrap();
            program.hand_over(3);
        });
        program.gpu.synchronize();
    }
    tally::print();
}

/// Lets the worker launch for a function while another thread is inside of a span that is not recorded.
fn beside_span(_: &[String]) {
    tracing_subscriber::registry().with(gpu_time::spans().sample(0.0)).init();
    let (program, both) = (Program::new(), Barrier::new(2));
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..CALLS {
                tracing::info_span!("beside").in_scope(|| {
                    both.wait();
                    both.wait();
                });
            }
        });
        for _ in 0..CALLS {
            shares(&program, &both, true).unwrap();
        }
    });
    program.gpu.synchronize();
    tally::print();
}

#[gpu_timed]
fn in_pool(program: &Program, pool: &rayon::ThreadPool) -> LaunchResult {
    ran!();
    program.launch()?;
    pool.install(|| {
        (0..4).into_par_iter().try_for_each(|_| program.spin.launch(&program.stream, 2 * NS))
    })?;
    thread::scope(|scope| {
        let launch = || program.spin.launch(&program.stream, 2 * NS);
        scope.spawn(launch).join().unwrap()
    })
}

/// Launches on the threads of a pool, and on one that lives only for the call.
fn rust_threads(_: &[String]) {
    let program = Program::new();
    let context = program.gpu.context.clone();
    let bind = move |_| context.bind_to_thread().unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).start_handler(bind).build().unwrap();
    for _ in 0..CALLS {
        in_pool(&program, &pool).unwrap();
        program.gpu.synchronize();
    }
    drop(pool);
    tally::print();
}

#[gpu_timed]
fn on_thread(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, NS)
}

#[gpu_timed]
fn waits_for_threads(gpu: &Gpu, spin: &Spin) {
    ran!();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                (0..CALLS).for_each(|_| on_thread(&gpu.stream, spin).unwrap());
            });
        }
    });
}

/// Calls a function that only starts threads, as a `main` may do.
fn starts_threads(_: &[String]) {
    let gpu = Gpu::new();
    let spin = gpu.spin("helpers::on_thread");
    waits_for_threads(&gpu, &spin);
    gpu.synchronize();
    tally::print();
}
