use gpu_time::gpu_timed;

struct CudaStream;

#[gpu_timed(warmup = 10 cold)]
fn after_value(_stream: &CudaStream) {}

#[gpu_timed("label")]
fn no_key(_stream: &CudaStream) {}

fn main() {}
