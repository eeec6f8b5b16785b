//! Functions that do, while their stream is held, what waits for it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::Arc;
use std::thread;

use cudarc::cublas::sys::cublasOperation_t::CUBLAS_OP_N;
use cudarc::cublas::{self, CudaBlas, Gemm, GemmConfig};
use cudarc::driver::{CudaStream, DriverError, sys};
use gpu_time::gpu_timed;

use crate::Scenario;
use crate::gpu::{Gpu, Spin};
use crate::tally::{self, ran};
use crate::time::{is_simulated, now_ns, pass};

pub const SCENARIOS: &[Scenario] = &[
    ("hold/waits", waits),
    ("hold/depends", depends),
    ("hold/allocates", allocates),
    ("hold/loads", loads),
    ("hold/fills", fills),
    ("hold/cublas", first_product),
    ("hold/threads", threads),
    ("hold/panics", panics),
    ("hold/exits", exits),
];

/// Calls before and after those that wait: they are fed, but for the first, which is not held.
const CALM: u32 = 4;
/// Fewer than would switch holds off.
const TRYING: u32 = 3;

#[gpu_timed(scope = "body", sleep)]
fn held(stream: &Arc<CudaStream>, spin: &Spin, then: impl FnOnce()) -> Result<(), DriverError> {
    ran!();
    spin.launch(stream, 5_000)?;
    then();
    Ok(())
}

/// The same of another thread's.
#[gpu_timed(scope = "body", sleep)]
fn beside(stream: &Arc<CudaStream>, spin: &Spin, then: impl FnOnce()) -> Result<(), DriverError> {
    ran!();
    spin.launch(stream, 5_000)?;
    then();
    Ok(())
}

struct Program {
    gpu: Gpu,
    spin: Spin,
}

impl Program {
    fn new() -> Program {
        let gpu = Gpu::new();
        let program = Program { spin: gpu.spin("hold::held"), gpu };
        program.calm();
        program
    }

    fn held(&self, then: impl FnOnce()) {
        held(&self.gpu.stream, &self.spin, then).unwrap();
    }

    /// Calls that enqueue for so long that the deadline is the longest that there is, 5 ms.
    fn calm(&self) {
        for _ in 0..CALM {
            self.held(|| pass(1_000_000));
            self.gpu.synchronize();
        }
    }

    /// The same beside a few that try the hold, the longest of which is noted.
    fn try_hold(&self, mut then: impl FnMut()) {
        let mut longest_ns = 0;
        for _ in 0..TRYING {
            let began_ns = now_ns();
            self.held(&mut then);
            self.gpu.synchronize();
            longest_ns = longest_ns.max(now_ns() - began_ns);
        }
        tally::fact("longest_us", longest_ns / 1_000);
        self.calm();
    }
}

/// For the stream itself.
fn waits(_: &[String]) {
    let program = Program::new();
    program.try_hold(|| program.gpu.stream.synchronize().unwrap());
    tally::print();
}

/// For another stream, which waits for this one.
fn depends(_: &[String]) {
    let program = Program::new();
    let (other, spin) = (program.gpu.new_stream(), program.gpu.spin("hold::other"));
    program.try_hold(|| {
        other.join(&program.gpu.stream).unwrap();
        spin.launch(&other, 5_000).unwrap();
        other.synchronize().unwrap();
    });
    tally::print();
}

/// The driver waits for the whole device before it gives memory back.
fn allocates(_: &[String]) {
    let program = Program::new();
    program.try_hold(|| {
        let mut address = 0;
        // SAFETY: writes one address, of memory that nobody uses and that is given back at once.
        unsafe {
            sys::cuMemAlloc_v2(&raw mut address, 64 << 20).result().unwrap();
            sys::cuMemFree_v2(address).result().unwrap();
        }
    });
    tally::print();
}

/// A module, and the first launch of a kernel of it.
fn loads(_: &[String]) {
    let program = Program::new();
    let mut spins = Vec::new();
    program.try_hold(|| {
        let spin = program.gpu.spin("hold::loaded");
        spin.launch(&program.gpu.stream, 5_000).unwrap();
        // It runs after this.
        spins.push(spin);
    });
    tally::print();
}

/// More launches than a queue takes that does not move.
fn fills(_: &[String]) {
    let program = Program::new();
    let spin = program.gpu.spin("hold::filling");
    program.try_hold(|| {
        for _ in 0..1_100 {
            spin.launch(&program.gpu.stream, 100).unwrap();
        }
    });
    tally::print();
}

/// A library's handle, and the first product, which loads and allocates what it needs.
fn first_product(_: &[String]) {
    const ROWS: i32 = 64;
    let program = Program::new();
    // SAFETY: looks for the library; without it cudarc would panic.
    let is_left_out = is_simulated() || !unsafe { cublas::sys::is_culib_present() };
    tally::fact("left_out", is_left_out);
    if is_left_out {
        program.try_hold(|| ());
        return tally::print();
    }
    let stream = &program.gpu.stream;
    let matrix = || stream.alloc_zeros::<f32>((ROWS * ROWS) as usize).unwrap();
    let (a, b, mut c) = (matrix(), matrix(), matrix());
    let product = GemmConfig {
        transa: CUBLAS_OP_N,
        transb: CUBLAS_OP_N,
        m: ROWS,
        n: ROWS,
        k: ROWS,
        alpha: 1.0,
        lda: ROWS,
        ldb: ROWS,
        beta: 0.0,
        ldc: ROWS,
    };
    program.try_hold(|| {
        let blas = CudaBlas::new(stream.clone()).unwrap();
        // SAFETY: the matrices are as large as the product says.
        unsafe { blas.gemm(product, &a, &b, &mut c) }.unwrap();
    });
    tally::print();
}

/// Two threads whose streams are held, and which both wait for the whole device.
fn threads(_: &[String]) {
    let program = Program::new();
    let (other, spin) = (program.gpu.new_stream(), program.gpu.spin("hold::beside"));
    let device = || program.gpu.synchronize();
    thread::scope(|scope| {
        // One more, as a first call is not held.
        scope.spawn(|| (0..=TRYING).for_each(|_| beside(&other, &spin, device).unwrap()));
        program.try_hold(device);
    });
    tally::print();
}

/// What unwinds lets the stream go.
fn panics(_: &[String]) {
    let program = Program::new();
    let mut longest_ns = 0;
    for _ in 0..TRYING {
        let began_ns = now_ns();
        let unwound = catch_unwind(AssertUnwindSafe(|| {
            program.held(|| std::panic::resume_unwind(Box::new("as the scenario wants it")));
        }));
        assert!(unwound.is_err());
        program.gpu.synchronize();
        longest_ns = longest_ns.max(now_ns() - began_ns);
    }
    tally::fact("longest_us", longest_ns / 1_000);
    program.calm();
    tally::print();
}

/// The process ends while the stream is held.
fn exits(_: &[String]) {
    let program = Program::new();
    program.held(|| {
        tally::print();
        process::exit(7);
    });
}
