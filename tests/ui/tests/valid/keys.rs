//! Every key with every kind of value.
#![deny(warnings)]
#![forbid(unsafe_code)]

use cudarc::driver::CudaStream;
use gpu_time::gpu_timed;

const WARMUP: u32 = 5;
const NAME: &str = "by a constant";

fn gemm(_stream: Option<&CudaStream>) -> Result<(), ()> {
    Ok(())
}

fn r#loop() {}

#[gpu_timed(warmup = WARMUP * 2, cold, sleep, name = "by a literal")]
fn defaults(stream: Option<&CudaStream>) {
    let _ = stream;
}

#[gpu_timed(cold = "dirty", sleep = "1.5 ms", name = NAME, scope = "body", clock = "events",)]
fn values(stream: Option<&CudaStream>) {
    let _ = stream;
}

#[gpu_timed(sleep = "50µs", name = concat!("by ", "a macro"), launch = "gemm", scope = "launches")]
fn one_name(stream: Option<&CudaStream>) -> Result<(), ()> {
    gemm(stream)?;
    gemm(stream)
}

#[gpu_timed(launch = ["gemm", "loop"], r#warmup = u32::MAX, graph)]
fn several_names(stream: Option<&CudaStream>) -> Result<(), ()> {
    r#loop();
    crate::keys::gemm(stream)
}

#[gpu_timed(clock = "host", warmup = { const N: u32 = 3; N })]
fn host() {}

#[gpu_timed(clock = "sync", cold, bytes = 4 * n, flops = 2.0 * n as f64)]
fn barriers(stream: Option<&CudaStream>, n: usize) {
    let _ = (stream, n);
}

/// Numbers of every type, owned, borrowed and optional.
#[gpu_timed(clock = "host", flops = sizes.first(), bytes = sizes.iter().copied().max()? * 4)]
fn sizes(sizes: &[u16]) {
    let _ = sizes;
}

#[gpu_timed(bytes = &&mut n.clone(), flops = { const PER: i8 = 2; n.checked_mul(PER.into()).ok_or("too much") })]
fn fallible(stream: Option<&CudaStream>, n: i128) {
    let _ = (stream, n);
}

const RARELY: f64 = 1e-3;

#[gpu_timed(clock = "host", sample = RARELY / 2.0)]
fn sampled() {}

#[gpu_timed(clock = "host", every = WARMUP + 1, key = names.first()?.trim())]
fn counted(names: &[String]) {
    let _ = names;
}

/// The expressions do not move out of places, and their panics propagate.
#[gpu_timed(key = format_args!("{}x{}", shape[0], shape[1]), sample = 1.0, bytes = shape[0])]
fn split(stream: Option<&CudaStream>, shape: [usize; 2]) -> [usize; 2] {
    let _ = stream;
    shape
}

#[gpu_timed(key = dtype)]
fn owned(stream: Option<&CudaStream>, dtype: String) -> String {
    let _ = stream;
    dtype
}

#[gpu_timed(helpers = false, scope = "body")]
fn alone(stream: Option<&CudaStream>) {
    let _ = stream;
}

#[gpu_timed(helpers = true)]
fn helped() {}

#[gpu_timed()]
fn no_keys(stream: Option<&CudaStream>) {
    let _ = stream;
}

#[test]
fn runs() {
    defaults(None);
    values(None);
    one_name(None).unwrap();
    several_names(None).unwrap();
    host();
    barriers(None, 1);
    sizes(&[]);
    sizes(&[1, 2]);
    fallible(None, i128::MAX);
    sampled();
    counted(&[]);
    split(None, [1, 2]);
    owned(None, "f32".to_owned());
    alone(None);
    helped();
    no_keys(None);
}
