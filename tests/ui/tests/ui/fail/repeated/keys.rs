use gpu_time::gpu_timed;

struct CudaStream;

#[gpu_timed(warmup = 10, warmup = 20)]
fn value(_stream: &CudaStream) {}

#[gpu_timed(cold, name = "flag", cold = "dirty")]
fn flag(_stream: &CudaStream) {}

fn main() {}
