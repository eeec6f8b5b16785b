use gpu_time::gpu_timed;

struct CudaStream;

#[gpu_timed(sample = 0.01)]
fn sample(_stream: &CudaStream) {}

#[gpu_timed(every = 100)]
fn every(_stream: &CudaStream) {}

#[gpu_timed(key = n)]
fn key(_stream: &CudaStream, n: u64) {
    let _ = n;
}

fn main() {}
