//! What a clock around a launch says, and what the GPU does: a product of two 8192 × 8192 `f32`
//! matrices by cuBLAS, timed in three ways.
//!
//! ```text
//! cargo run --release --example async_pitfall
//! ```
//!
//! A launch returns when the work has been enqueued, so a clock around it alone says nothing of the
//! work. With a synchronisation it says the work, the way there and back, and whatever the stream had
//! to do before. On a machine without an NVIDIA GPU or without cuBLAS it says so.

#![allow(unsafe_code)] // a product is unsafe in cudarc, which cannot check its shape

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

/// `c = a * b`. The macro is told that `gemm` launches; the bracket is around it alone.
#[gpu_timed(warmup = WARMUP, launch = "gemm")]
fn multiply(stream: &Arc<CudaStream>, p: &mut Product) -> Result<(), CublasError> {
    debug_assert!(Arc::ptr_eq(stream, p.c.stream()), "cuBLAS was given this stream");
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
    // SAFETY: all three matrices are as large as the product says.
    unsafe { p.blas.gemm(product, &p.a, &p.b, &mut p.c) }
}

fn main() -> Result<(), Box<dyn Error>> {
    let stream = match gpu::find() {
        Ok(stream) => stream,
        Err(why) => {
            println!("no GPU here ({why}): there is nothing to wait for");
            return Ok(());
        }
    };
    // SAFETY: looks for cuBLAS; without it cudarc would panic.
    if !unsafe { cublas::sys::is_culib_present() } {
        println!("there is no libcublas on this machine, and so no product to time");
        return Ok(());
    }
    let ones = stream.clone_htod(&vec![1.0; ROWS * ROWS])?;
    let mut product = Product {
        blas: CudaBlas::new(stream.clone())?,
        b: ones.try_clone()?,
        a: ones,
        c: stream.alloc_zeros(ROWS * ROWS)?,
    };

    let (mut launched, mut synchronised) = (Vec::new(), Vec::new());
    for call in 0..WARMUP + CALLS {
        stream.synchronize()?;
        let start = Instant::now();
        multiply(&stream, &mut product)?;
        let enqueued = start.elapsed();
        stream.synchronize()?;
        if call >= WARMUP {
            launched.push(enqueued);
            synchronised.push(start.elapsed());
        }
    }
    let c = stream.clone_dtoh(&product.c)?;
    assert!(c.iter().all(|&c| c == ROWS as f32), "the product is {:?}…, not {ROWS}", &c[..4]);

    let snapshot = gpu_time::snapshot();
    let site = snapshot.site(concat!(module_path!(), "::multiply")).ok_or("never called")?;
    let series = site.series().iter().find(|series| series.launch().is_none());
    let net = series.and_then(|series| series.net_ns()).ok_or("nothing was measured")?;
    let median = |mut times: Vec<Duration>| {
        times.sort();
        times[times.len() / 2].as_secs_f64() * 1e3
    };
    println!("{ROWS} × {ROWS} f32 matrix product, medians of {CALLS}: every result is right\n");
    println!("launch, by the host's clock            {:>9.3} ms", median(launched));
    println!("kernel, by events                      {:>9.3} ms", net.median() / 1e6);
    println!("launch to the end, by the host's clock {:>9.3} ms\n", median(synchronised));
    // The report comes by itself when the process ends.
    Ok(())
}
