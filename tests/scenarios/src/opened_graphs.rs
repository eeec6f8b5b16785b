//! Opened calls with captures that never end, and with graphs that run nothing.

use gpu_time::gpu_timed;

use crate::gpu::{Gpu, LaunchResult, Spin};
use crate::raw_graph::{Exec, begin, capture, mode};
use crate::scenario::Scenario;
use crate::tally::{self, ran};

pub const SCENARIOS: &[Scenario] = &[
    ("opened_graphs/abandoned", abandoned),
    ("opened_graphs/empty", empty),
    ("opened_graphs/alike", alike),
    ("opened_graphs/new_streams", new_streams),
];

const NS: u64 = 10_000;
/// More captures than the runtime tracks at once.
const CAPTURES: usize = 20;

struct Program {
    gpu: Gpu,
    spin: Spin,
}

impl Program {
    fn new() -> Program {
        let gpu = Gpu::new();
        let spin = gpu.spin("opened_graphs");
        Program { gpu, spin }
    }

    fn launch(&self) -> LaunchResult {
        self.spin.launch(&self.gpu.stream, NS)
    }

    fn three_kernels(&self) -> Exec {
        let launch = || (0..3).for_each(|_| self.launch().unwrap());
        Exec::new(capture(&self.gpu.stream, launch))
    }

    fn synchronize(&self) {
        self.gpu.stream.synchronize().unwrap();
    }
}

/// Destroys a stream during its capture.
#[gpu_timed]
fn abandons(program: &Program) -> LaunchResult {
    ran!();
    program.launch()?;
    let captured = program.gpu.new_stream();
    begin(&captured, mode("relaxed"));
    program.spin.launch(&captured, NS)?;
    drop(captured);
    program.launch()
}

/// Launches on a new stream, which may have the handle of one that was destroyed.
#[gpu_timed]
fn on_new_stream(program: &Program) -> LaunchResult {
    ran!();
    let stream = program.gpu.new_stream();
    program.spin.launch(&stream, NS)?;
    stream.synchronize()
}

/// Captures a graph and ends the capture.
#[gpu_timed]
fn captures(program: &Program) -> LaunchResult {
    ran!();
    drop(Exec::new(capture(&program.gpu.stream, || program.launch().unwrap())));
    program.launch()
}

/// Destroys more capturing streams than the runtime tracks, and goes on with other streams.
fn abandoned(_: &[String]) {
    let program = Program::new();
    for _ in 0..CAPTURES {
        abandons(&program).unwrap();
        on_new_stream(&program).unwrap();
        program.synchronize();
    }
    captures(&program).unwrap();
    program.synchronize();
    tally::print();
}

/// Launches nothing but a graph.
#[gpu_timed]
fn launches_graph(program: &Program, graph: &Exec) {
    ran!();
    graph.launch(&program.gpu.stream);
}

#[gpu_timed]
fn launches_kernel_too(program: &Program, graph: &Exec) -> LaunchResult {
    ran!();
    graph.launch(&program.gpu.stream);
    program.launch()
}

/// Launches a graph without nodes.
fn empty(_: &[String]) {
    let program = Program::new();
    let graph = Exec::new(capture(&program.gpu.stream, || ()));
    for _ in 0..10 {
        launches_graph(&program, &graph);
        launches_kernel_too(&program, &graph).unwrap();
    }
    program.synchronize();
    // Each snapshot collects records, and waits for more.
    (0..4).for_each(|_| drop(gpu_time::snapshot()));
    // The last call on the stream.
    launches_graph(&program, &graph);
    tally::print();
}

/// Launches the same graph of three kernels again and again.
fn alike(_: &[String]) {
    let program = Program::new();
    let graph = program.three_kernels();
    for _ in 0..20 {
        launches_graph(&program, &graph);
        program.synchronize();
    }
    tally::print();
}

/// Launches a graph on a stream of its own.
#[gpu_timed]
fn serves_request(program: &Program, graph: &Exec) {
    ran!();
    let stream = program.gpu.new_stream();
    graph.launch(&stream);
    stream.synchronize().unwrap();
}

/// Launches a graph on streams that are not used again.
fn new_streams(_: &[String]) {
    let program = Program::new();
    let graph = program.three_kernels();
    for _ in 0..100 {
        serves_request(&program, &graph);
    }
    // Each snapshot collects records.
    (0..4).for_each(|_| drop(gpu_time::snapshot()));
    let snapshot = gpu_time::snapshot();
    let site = snapshot.sites.iter().find(|site| site.name.ends_with("::serves_request"));
    let opened: u64 = site.into_iter().flat_map(|site| &site.series).map(|of| of.opened()).sum();
    tally::fact("opened", opened);
    tally::print();
}
