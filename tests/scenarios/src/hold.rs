//! Functions that wait for their stream while it is held.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::Arc;
use std::thread;

use cudarc::cublas::sys::cublasOperation_t::CUBLAS_OP_N;
use cudarc::cublas::{self, CudaBlas, Gemm, GemmConfig};
use cudarc::driver::{CudaStream, sys};
use gpu_time::gpu_timed;

use crate::gpu::{Gpu, LaunchResult, Spin};
use crate::scenario::Scenario;
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

/// The number of plain calls before the blocking calls, and again after them. All plain calls are
/// fed except the first, which is not held.
const PLAIN: u32 = 4;
/// The number of blocking calls, too few to switch holds off.
const BLOCKING: u32 = 3;

#[gpu_timed(scope = "body", sleep)]
fn held(stream: &Arc<CudaStream>, spin: &Spin, then: impl FnOnce()) -> LaunchResult {
    ran!();
    spin.launch(stream, 5_000)?;
    then();
    Ok(())
}

/// The same as `held`, for another thread.
#[gpu_timed(scope = "body", sleep)]
fn beside(stream: &Arc<CudaStream>, spin: &Spin, then: impl FnOnce()) -> LaunchResult {
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
        program.call_plain();
        program
    }

    fn held(&self, then: impl FnOnce()) {
        held(&self.gpu.stream, &self.spin, then).unwrap();
    }

    /// Makes calls that take so long to enqueue that the hold's deadline is the maximum of 5 ms.
    fn call_plain(&self) {
        for _ in 0..PLAIN {
            self.held(|| pass(1_000_000));
            self.gpu.synchronize();
        }
    }

    /// Makes blocking calls, records the longest, and then makes plain calls.
    fn call_blocking(&self, mut then: impl FnMut()) {
        let mut longest_ns = 0;
        for _ in 0..BLOCKING {
            let began_ns = now_ns();
            self.held(&mut then);
            self.gpu.synchronize();
            longest_ns = longest_ns.max(now_ns() - began_ns);
        }
        tally::fact("longest_us", longest_ns / 1_000);
        self.call_plain();
    }
}

/// Waits for the held stream itself.
fn waits(_: &[String]) {
    let program = Program::new();
    program.call_blocking(|| program.gpu.stream.synchronize().unwrap());
    tally::print();
}

/// Waits for another stream, which in turn waits for the held one.
fn depends(_: &[String]) {
    let program = Program::new();
    let (other, spin) = (program.gpu.new_stream(), program.gpu.spin("hold::other"));
    program.call_blocking(|| {
        other.join(&program.gpu.stream).unwrap();
        spin.launch(&other, 5_000).unwrap();
        other.synchronize().unwrap();
    });
    tally::print();
}

/// Frees memory. The driver first waits for the whole device.
fn allocates(_: &[String]) {
    let program = Program::new();
    program.call_blocking(|| {
        let mut address = 0;
        // SAFETY: writes one address; the memory is not used and is freed at once.
        unsafe {
            sys::cuMemAlloc_v2(&raw mut address, 64 << 20).result().unwrap();
            sys::cuMemFree_v2(address).result().unwrap();
        }
    });
    tally::print();
}

/// Loads a module and launches one of its kernels for the first time.
fn loads(_: &[String]) {
    let program = Program::new();
    let mut spins = Vec::new();
    program.call_blocking(|| {
        let spin = program.gpu.spin("hold::loaded");
        spin.launch(&program.gpu.stream, 5_000).unwrap();
        // The kernel runs only after this closure returns.
        spins.push(spin);
    });
    tally::print();
}

/// Makes more launches than a stalled queue accepts.
fn fills(_: &[String]) {
    let program = Program::new();
    let spin = program.gpu.spin("hold::filling");
    program.call_blocking(|| {
        for _ in 0..1_100 {
            spin.launch(&program.gpu.stream, 100).unwrap();
        }
    });
    tally::print();
}

/// Creates a cuBLAS handle and computes a first product, for which cuBLAS loads kernels and allocates memory.
fn first_product(_: &[String]) {
    const ROWS: i32 = 64;
    let program = Program::new();
    // SAFETY: only checks whether the library can be loaded; cudarc would panic without it.
    let is_left_out = is_simulated() || !unsafe { cublas::sys::is_culib_present() };
    tally::fact("left_out", is_left_out);
    if is_left_out {
        program.call_blocking(|| ());
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
    program.call_blocking(|| {
        let blas = CudaBlas::new(stream.clone()).unwrap();
        // SAFETY: the matrices have the dimensions given in the configuration.
        unsafe { blas.gemm(product, &a, &b, &mut c) }.unwrap();
    });
    tally::print();
}

/// Makes two threads, both with held streams, wait for the whole device.
fn threads(_: &[String]) {
    let program = Program::new();
    let (other, spin) = (program.gpu.new_stream(), program.gpu.spin("hold::beside"));
    let device = || program.gpu.synchronize();
    thread::scope(|scope| {
        // One more call, because a first call is not held.
        scope.spawn(|| (0..=BLOCKING).for_each(|_| beside(&other, &spin, device).unwrap()));
        program.call_blocking(device);
    });
    tally::print();
}

/// Checks that unwinding releases the stream.
fn panics(_: &[String]) {
    let program = Program::new();
    let mut longest_ns = 0;
    for _ in 0..BLOCKING {
        let began_ns = now_ns();
        let unwound = catch_unwind(AssertUnwindSafe(|| {
            program.held(|| std::panic::resume_unwind(Box::new("intentional panic")));
        }));
        assert!(unwound.is_err());
        program.gpu.synchronize();
        longest_ns = longest_ns.max(now_ns() - began_ns);
    }
    tally::fact("longest_us", longest_ns / 1_000);
    program.call_plain();
    tally::print();
}

/// Ends the process while the stream is held.
fn exits(_: &[String]) {
    let program = Program::new();
    program.held(|| {
        tally::print();
        process::exit(7);
    });
}
