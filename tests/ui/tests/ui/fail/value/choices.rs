use gpu_time::gpu_timed;

struct CudaStream;

#[gpu_timed(cold = "filthy")]
fn cold(_stream: &CudaStream) {}

#[gpu_timed(cold = true)]
fn cold_flag(_stream: &CudaStream) {}

#[gpu_timed(sleep = "50")]
fn sleep_without_unit(_stream: &CudaStream) {}

#[gpu_timed(sleep = "soon")]
fn sleep_without_number(_stream: &CudaStream) {}

#[gpu_timed(sleep = "0us")]
fn sleep_for_nothing(_stream: &CudaStream) {}

#[gpu_timed(sleep = 50)]
fn sleep_number(_stream: &CudaStream) {}

#[gpu_timed(scope = "function")]
fn scope(_stream: &CudaStream) {}

#[gpu_timed(clock = "wall")]
fn clock(_stream: &CudaStream) {}

#[gpu_timed(launch = [])]
fn no_launches(_stream: &CudaStream) {}

#[gpu_timed(launch = gemm)]
fn launch_path(_stream: &CudaStream) {}

#[gpu_timed(launch = ["blas::gemm", "conv"])]
fn launch_with_path(_stream: &CudaStream) {}

#[gpu_timed(launch = "gemm")]
fn launch_elsewhere(_stream: &CudaStream) {}

#[gpu_timed(name = " ")]
fn no_name(_stream: &CudaStream) {}

#[gpu_timed(crate = "gpu_time")]
fn krate(_stream: &CudaStream) {}

#[gpu_timed(helpers = "no")]
fn helpers_text() {}

#[gpu_timed(helpers)]
fn helpers_flag() {}

fn main() {}
