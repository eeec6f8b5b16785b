use gpu_time::gpu_timed;

struct CudaStream;

#[gpu_timed(stream)]
fn stream(_stream: &CudaStream) {}

#[gpu_timed(stream =)]
fn stream_equals(_stream: &CudaStream) {}

#[gpu_timed(name, warmup =, scope, launch, clock, crate)]
fn others(_stream: &CudaStream) {}

#[gpu_timed(warmup(10))]
fn parentheses(_stream: &CudaStream) {}

#[gpu_timed(cold: "dirty", warmup: 10)]
fn colons(_stream: &CudaStream) {}

#[gpu_timed(cold warmup = 10)]
fn comma(_stream: &CudaStream) {}

#[gpu_timed(clock = "host", bytes)]
fn no_value() {}

#[gpu_timed(clock = "host", flops = )]
fn no_expression() {}

fn main() {}
