use gpu_time::gpu_timed;

struct CudaStream;

#[gpu_timed(graph = true)]
fn graph(_stream: &CudaStream) {}

#[gpu_timed(skip = true)]
fn skip() {}

#[gpu_timed(graph =, skip =)]
fn nothing(_stream: &CudaStream) {}

#[gpu_timed(cold =)]
fn optional(_stream: &CudaStream) {}

fn main() {}
