use gpu_time::gpu_timed;

struct CudaStream;

#[gpu_timed(warmpu = 10)]
fn misspelt(_stream: &CudaStream) {}

#[gpu_timed(iterations = 10, cold)]
fn from_elsewhere(_stream: &CudaStream) {}

#[gpu_timed(skop)]
fn nearer_to_another(_stream: &CudaStream) {}

#[gpu_timed(by = 3)]
fn too_short(_stream: &CudaStream) {}

#[gpu_timed("label")]
fn no_key(_stream: &CudaStream) {}

fn main() {}
