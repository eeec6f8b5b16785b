//! Opened calls with captures that never end.

use gpu_time::gpu_timed;

use crate::gpu::{Gpu, LaunchResult, Spin};
use crate::raw_graph::{Exec, begin, capture, mode};
use crate::scenario::Scenario;
use crate::tally::{self, ran};

pub const SCENARIOS: &[Scenario] = &[("opened_graphs/abandoned", abandoned)];

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

/// Ends its capture.
#[gpu_timed]
fn captures(program: &Program) -> LaunchResult {
    ran!();
    drop(Exec::new(capture(&program.gpu.stream, || program.launch().unwrap())));
    program.launch()
}

/// Destroys more streams during their captures than the runtime tracks, and goes on with others.
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
