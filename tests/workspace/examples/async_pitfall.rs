//! Shows why timing a launch on the host is misleading. Computes a product of two 8192 × 8192 `f32`
//! matrices with cuBLAS and times it in three ways.
//!
//! ```text
//! cargo run --release --features cublas --example async_pitfall
//! ```
//!
//! A launch returns once the work has been enqueued, so its host time says nothing about the work.
//! With synchronization, the host measures the work, the latency of launch and wake-up, and all
//! earlier work in the stream. Needs an NVIDIA GPU and cuBLAS.

#![allow(unsafe_code)] // cudarc's `gemm` is unsafe because it cannot check the matrix shapes

#[path = "../../../examples/gpu/mod.rs"]
mod gpu;

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cudarc::cublas::sys::cublasOperation_t::CUBLAS_OP_N;
use cudarc::cublas::{self, CudaBlas, Gemm, GemmConfig, result::CublasError};
use cudarc::driver::{CudaSlice, CudaStream};
use gpu_time::gpu_timed;

const ROWS: usize = 8192;
const WARMUP: u32 = 3;
const CALLS: u32 = 20;

struct Product {
    blas: CudaBlas,
    a: CudaSlice<f32>,
    b: CudaSlice<f32>,
    c: CudaSlice<f32>,
}

/// Computes `c = a * b`. `launch = "gemm"` declares `gemm` to be a launch; only that call is
/// bracketed.
#[gpu_timed(warmup = WARMUP, launch = "gemm")]
fn multiply(stream: &Arc<CudaStream>, p: &mut Product) -> Result<(), CublasError> {
    debug_assert!(Arc::ptr_eq(stream, p.c.stream()), "cuBLAS uses another stream");
    let rows = ROWS as i32;
    let product = GemmConfig {
        transa: CUBLAS_OP_N,
        transb: CUBLAS_OP_N,
        m: rows,
        n: rows,
        k: rows,
        alpha: 1.0,
        lda: rows,
        ldb: rows,
        beta: 0.0,
        ldc: rows,
    };
    // SAFETY: all three matrices have `ROWS * ROWS` elements, as the configuration requires.
    unsafe { p.blas.gemm(product, &p.a, &p.b, &mut p.c) }
}

fn main() -> Result<(), Box<dyn Error>> {
    let Some(stream) = gpu::find_or_explain() else { return Ok(()) };
    // SAFETY: only checks whether the library can be loaded; cudarc would panic without it.
    if !unsafe { cublas::sys::is_culib_present() } {
        println!("there is no libcublas on this machine: this example needs it");
        return Ok(());
    }
    let ones = stream.clone_htod(&vec![1.0; ROWS * ROWS])?;
    let mut product = Product {
        blas: CudaBlas::new(stream.clone())?,
        b: ones.try_clone()?,
        a: ones,
        c: stream.alloc_zeros(ROWS * ROWS)?,
    };

    let (mut launch_times, mut total_times) = (Vec::new(), Vec::new());
    for call in 0..WARMUP + CALLS {
        stream.synchronize()?;
        let start = Instant::now();
        multiply(&stream, &mut product)?;
        let launch_time = start.elapsed();
        stream.synchronize()?;
        if call >= WARMUP {
            launch_times.push(launch_time);
            total_times.push(start.elapsed());
        }
    }
    let c = stream.clone_dtoh(&product.c)?;
    assert!(c.iter().all(|&c| c == ROWS as f32), "the product is {:?}…, not {ROWS}", &c[..4]);

    let snapshot = gpu_time::snapshot();
    let site = snapshot.site(concat!(module_path!(), "::multiply")).ok_or("never called")?;
    let series = site.series.iter().find(|series| series.launch.is_none());
    let net = series.and_then(|series| series.net_ns.as_ref()).ok_or("nothing was measured")?;
    let median = |mut times: Vec<Duration>| {
        times.sort();
        times[times.len() / 2].as_secs_f64() * 1e3
    };
    println!(
        "{ROWS} × {ROWS} f32 matrix product, medians of {CALLS} calls, all results are correct\n"
    );
    println!("launch, host clock                      {:>9.3} ms", median(launch_times));
    println!("kernel, CUDA events                     {:>9.3} ms", net.median / 1e6);
    println!("launch and synchronization, host clock  {:>9.3} ms\n", median(total_times));
    // The report is printed when the process exits.
    Ok(())
}
