//! `tracing` spans: nested, inside and around annotated functions, polled alternately, and sampled.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::process;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::thread;

use cudarc::driver::CudaStream;
use gpu_time::{Spans, gpu_timed, spans};
use tracing::{Instrument, Span, info_span};
use tracing_subscriber::prelude::*;

use crate::child;
use crate::gpu::{Gpu, LaunchResult, Spin};
use crate::later::later;
use crate::scenario::Scenario;
use crate::tally::{self, ran};

pub const SCENARIOS: &[Scenario] = &[
    ("spans/nested", nested),
    ("spans/whole", whole),
    ("spans/functions", functions),
    ("spans/futures", futures),
    ("spans/sampled", sampled),
    ("spans/around", around),
    ("spans/kept", kept),
    ("spans/polled", polled),
    ("spans/deep", deep),
    ("spans/made_before", made_before),
    ("spans/beside", beside),
    ("spans/crossed", crossed),
    ("spans/fork", fork),
    ("spans/unwinding", unwinding),
    ("spans/threads", threads),
    ("spans/never", never),
    ("spans/keyed", keyed),
    ("spans/shared", shared),
];

/// The duration of each kernel.
const NS: u64 = 10_000;

/// Creates a span, and counts it as a run.
macro_rules! span {
    ($name:literal $($field:tt)*) => {{
        tally::count_runs(concat!("scenario::spans::", $name), 1);
        tracing::info_span!($name $($field)*)
    }};
}

struct Program {
    gpu: Gpu,
    spin: Spin,
}

impl Program {
    /// Creates a program and registers `layer`, which receives its spans.
    fn new(layer: Spans) -> Program {
        tracing_subscriber::registry().with(layer).init();
        let gpu = Gpu::new();
        let spin = gpu.spin("spans");
        Program { gpu, spin }
    }

    fn launch(&self, ns: u64) {
        self.spin.launch(&self.gpu.stream, ns).unwrap();
    }
}

/// Enqueues 6 kernels: 1 of its own, 2 in each of two layers (1 of them in the norm), and 1 in `again`.
fn request(program: &Program) {
    let _request = span!("request").entered();
    program.launch(NS);
    for _ in 0..2 {
        let _layer = span!("layer").entered();
        program.launch(NS);
        span!("norm").in_scope(|| program.launch(NS));
    }
    // The same span is on the stack twice.
    let again = span!("again");
    again.in_scope(|| {
        again.in_scope(|| ());
        program.launch(NS);
    });
}

fn nested(arguments: &[String]) {
    let share = arguments.get(1).map_or(1.0, |share| share.parse().unwrap());
    let program = Program::new(spans().sample(share));
    for _ in 0..arguments[0].parse().unwrap() {
        request(&program);
        // This kernel is outside any call.
        program.launch(NS);
        program.gpu.synchronize();
    }
    tally::print();
}

/// Makes requests in a phase, inside a span that began before it.
fn whole(_: &[String]) {
    let program = Program::new(spans());
    gpu_time::configure().record("off").apply();
    info_span!("whole").in_scope(|| {
        program.launch(NS);
        gpu_time::configure().record("on").apply();
        (0..10).for_each(|_| request(&program));
        program.gpu.synchronize();
    });
    tally::print();
}

#[gpu_timed]
fn inner(program: &Program) {
    ran!();
    program.launch(NS);
    span!("innermost").in_scope(|| program.launch(2 * NS));
}

#[gpu_timed]
fn outer(program: &Program) {
    ran!();
    program.launch(NS);
    request(program);
}

/// Makes spans around, between and inside annotated functions.
fn functions(_: &[String]) {
    let program = Program::new(spans().sample(1.0));
    for _ in 0..20 {
        span!("around").in_scope(|| inner(&program));
        outer(&program);
        program.gpu.synchronize();
    }
    tally::print();
}

async fn respond(program: &Program, ns: u64) {
    program.launch(ns);
    let inside = async {
        program.launch(2 * ns);
        later().await;
        program.launch(2 * ns);
    };
    inside.instrument(span!("inside")).await;
    program.launch(ns);
}

/// Instruments two futures that are polled alternately, with launches outside any call in between, and a
/// future that is dropped while it is pending.
fn futures(_: &[String]) {
    let program = Program::new(spans().sample(1.0));
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..10 {
        let mut one = pin!(respond(&program, NS).instrument(span!("one")));
        let mut other = pin!(respond(&program, 3 * NS).instrument(span!("other")));
        let mut are_ready = [false; 2];
        while are_ready != [true; 2] {
            let futures: [Pin<&mut dyn Future<Output = ()>>; 2] = [one.as_mut(), other.as_mut()];
            for (future, is_ready) in futures.into_iter().zip(&mut are_ready) {
                if !*is_ready {
                    *is_ready = future.poll(&mut context).is_ready();
                }
                program.launch(NS);
            }
        }
        let mut given_up = Box::pin(respond(&program, NS).instrument(span!("given_up")));
        assert!(given_up.as_mut().poll(&mut context).is_pending());
        drop(given_up);
        program.gpu.synchronize();
    }
    tally::print();
}

/// Creates spans on one thread, and enters one of them on another thread and one on both threads.
fn threads(_: &[String]) {
    let program = Program::new(spans().sample(1.0));
    for _ in 0..10 {
        let request = span!("request").entered();
        let helper = span!("helper");
        let moved = span!("moved");
        moved.in_scope(|| program.launch(NS));
        thread::scope(|scope| {
            scope.spawn(|| {
                helper.in_scope(|| {
                    program.launch(NS);
                    span!("norm").in_scope(|| program.launch(NS));
                });
                // Enters `helper` again, and `moved` on this thread for the first time.
                for span in [&helper, &moved] {
                    span.in_scope(|| program.launch(NS));
                }
                // This span is a root of its own.
                span!("alone").in_scope(|| program.launch(NS));
            });
        });
        program.launch(NS);
        drop(request);
        drop((helper, moved));
        program.gpu.synchronize();
    }
    tally::print();
}

/// Records one root in four. The roots are of two kinds, one of them twice as frequent as the other.
fn sampled(_: &[String]) {
    let program = Program::new(spans().sample(0.25));
    for turn in 0..1_500 {
        if turn % 3 == 0 {
            request(&program);
        } else {
            span!("short").in_scope(|| program.launch(NS + turn % 5 * NS));
        }
        program.gpu.synchronize();
    }
    tally::print();
}

/// Calls functions that are always opened, inside spans of which one in four is recorded.
fn around(_: &[String]) {
    let program = Program::new(spans().sample(0.25));
    for _ in 0..400 {
        span!("around").in_scope(|| inner(&program));
        program.gpu.synchronize();
    }
    tally::print();
}

/// A model like candle's, whose spans are created with the model and entered in every pass.
struct Model {
    layers: [(Span, Span); 3],
    head: Span,
}

/// Runs `passes` passes of a model, and records the given share of the span entries. Each layer launches 3
/// kernels: 1 of its own, and 1 in each of two entries of its norm. The head launches 1 kernel.
fn kept(arguments: &[String]) {
    let [passes, share] = arguments else { panic!("two arguments") };
    let program = Program::new(spans().sample(share.parse().unwrap()));
    let layers = [(); 3].map(|()| {
        let layer = info_span!("layer");
        (layer, info_span!("norm"))
    });
    let model = Model { layers, head: info_span!("head") };
    for _ in 0..passes.parse().unwrap() {
        for (layer, norm) in &model.layers {
            tally::count_runs("scenario::spans::layer", 1);
            layer.in_scope(|| {
                program.launch(NS);
                for _ in 0..2 {
                    tally::count_runs("scenario::spans::norm", 1);
                    norm.in_scope(|| program.launch(NS));
                }
            });
        }
        tally::count_runs("scenario::spans::head", 1);
        model.head.in_scope(|| program.launch(NS));
        program.gpu.synchronize();
    }
    tally::print();
}

/// Polls futures many times, each future in a span of its own.
fn polled(_: &[String]) {
    let program = Program::new(spans().sample(1.0));
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..20 {
        let polls = async {
            for _ in 0..30 {
                program.launch(NS);
                later().await;
            }
        };
        let mut future = pin!(polls.instrument(span!("request")));
        while future.as_mut().poll(&mut context).is_pending() {}
        program.gpu.synchronize();
    }
    tally::print();
}

/// Launches a kernel in each of `depth` nested spans.
fn nest(program: &Program, depth: u64) {
    if depth > 0 {
        span!("level").in_scope(|| {
            program.launch(NS);
            nest(program, depth - 1);
        });
    }
}

/// Makes requests whose spans are alternately 50 and 49 deep.
fn deep(arguments: &[String]) {
    let program = Program::new(spans().sample(1.0));
    let requests: u64 = arguments[0].parse().unwrap();
    for turn in 0..requests {
        nest(&program, 50 - turn % 2);
        program.gpu.synchronize();
    }
    tally::print();
}

/// Creates spans while no other span is entered, and then enters them inside another span.
fn made_before(_: &[String]) {
    let program = Program::new(spans().sample(0.25));
    for _ in 0..400 {
        let inner = span!("inside_later");
        span!("outside").in_scope(|| {
            program.launch(NS);
            inner.in_scope(|| program.launch(NS));
        });
        program.gpu.synchronize();
    }
    tally::print();
}

/// Makes seven spans.
#[gpu_timed(scope = "body")]
fn by_events(stream: &Arc<CudaStream>, program: &Program) {
    ran!();
    for _ in 0..7 {
        info_span!("inside").in_scope(|| program.spin.launch(stream, NS).unwrap());
    }
}

/// Makes spans inside and next to a function on a stream.
fn beside(_: &[String]) {
    let program = Program::new(spans().sample(0.25));
    for _ in 0..400 {
        by_events(&program.gpu.stream, &program);
        span!("beside").in_scope(|| program.launch(NS));
        program.gpu.synchronize();
    }
    tally::print();
}

/// Exits spans before the spans inside them.
fn crossed(_: &[String]) {
    let program = Program::new(spans().sample(1.0));
    for _ in 0..5 {
        let outer = span!("outer").entered();
        let left_first = span!("left_first").entered();
        let left_last = span!("left_last").entered();
        drop(left_first);
        program.launch(NS);
        drop(left_last);
        // This kernel belongs to the outer span.
        program.launch(NS);
        let late = span!("late").entered();
        drop(outer);
        // This kernel is outside any call.
        program.launch(NS);
        drop(late);
        program.gpu.synchronize();
    }
    tally::print();
}

/// Forks inside a recorded span. The child, which cannot use the GPU, makes spans inside and after it, and exits.
fn fork(_: &[String]) {
    let program = Program::new(spans().sample(1.0));
    let parent = process::id();
    for _ in 0..3 {
        let request = span!("request").entered();
        program.launch(NS);
        // SAFETY: no other thread in the program holds a lock that the child needs.
        let child = unsafe { libc::fork() };
        if process::id() != parent {
            info_span!("in_child").in_scope(|| ());
            drop(request);
            info_span!("in_child").in_scope(|| ());
            process::exit(3);
        }
        child::assert_exits(child, 3);
        program.launch(NS);
    }
    program.gpu.synchronize();
    tally::print();
}

/// Unwinds out of spans, both inside a span that continues and outside any other span.
fn unwinding(_: &[String]) {
    std::panic::set_hook(Box::new(|_| {}));
    let program = Program::new(spans().sample(1.0));
    let unwinds = || {
        let unwinding = AssertUnwindSafe(|| {
            let _unwinds = span!("unwinds").entered();
            program.launch(NS);
            panic!("as the test wants it");
        });
        assert!(catch_unwind(unwinding).is_err());
    };
    for _ in 0..5 {
        span!("catches").in_scope(|| {
            unwinds();
            program.launch(NS);
        });
        unwinds();
        // This kernel is outside any call.
        program.launch(NS);
        program.gpu.synchronize();
    }
    tally::print();
}

/// Makes spans that sampling never chooses.
fn never(_: &[String]) {
    let program = Program::new(spans().sample(0.0));
    (0..100).for_each(|_| request(&program));
    inner_of_nobody(&program).unwrap();
    program.gpu.synchronize();
    tally::print();
}

#[gpu_timed]
fn inner_of_nobody(program: &Program) -> LaunchResult {
    ran!();
    program.spin.launch(&program.gpu.stream, NS)
}

/// Makes spans with a key field whose values are numbers and strings.
fn keyed(_: &[String]) {
    let program = Program::new(spans().sample(1.0).key("shape"));
    for rows in [1_u64, 2, 3, 2] {
        let batch = span!("batch", shape = rows, other = 7);
        batch.in_scope(|| {
            program.launch(rows * NS);
            span!("head", shape = %format!("{rows}x2")).in_scope(|| program.launch(NS));
            span!("plain").in_scope(|| program.launch(NS));
        });
        program.gpu.synchronize();
    }
    tally::print();
}

/// Enters a span on a second thread while the first one is still inside.
fn shared(_: &[String]) {
    let program = Program::new(spans().sample(1.0));
    for _ in 0..10 {
        let request = span!("request");
        request.in_scope(|| {
            program.launch(NS);
            thread::scope(|scope| {
                scope.spawn(|| request.in_scope(|| program.launch(NS)));
            });
        });
        drop(request);
        program.gpu.synchronize();
    }
    tally::print();
}
