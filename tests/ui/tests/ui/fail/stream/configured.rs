use cudarc::driver::CudaStream;
use gpu_time::gpu_timed;

#[gpu_timed]
fn out(#[cfg(any())] stream: &CudaStream) {}

#[gpu_timed]
fn both(#[cfg(not(any()))] one: &CudaStream, #[cfg(not(any()))] two: &CudaStream) {
    let _ = (one, two);
}

#[gpu_timed(sleep)]
fn held_out(#[cfg(any())] stream: &CudaStream) {}

#[gpu_timed(sleep)]
fn held(#[cfg(not(any()))] one: &CudaStream, #[cfg(not(any()))] two: &CudaStream) {
    let _ = (one, two);
}

fn main() {}
