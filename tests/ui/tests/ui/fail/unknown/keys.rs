use gpu_time::gpu_timed;

struct CudaStream;

#[gpu_timed(warmpu = 10)]
fn misspelt(_stream: &CudaStream) {}

#[gpu_timed(cold, skop)]
fn without_value(_stream: &CudaStream) {}

fn main() {}
