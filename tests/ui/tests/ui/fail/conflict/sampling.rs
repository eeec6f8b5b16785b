use gpu_time::gpu_timed;

struct CudaStream;

#[gpu_timed(every = 100, sample = 0.01)]
fn both(_stream: &CudaStream) {}

fn main() {}
