use gpu_time::gpu_timed;

struct CudaStream;

fn gemm(_stream: &CudaStream) {}

#[gpu_timed(launch = "gemm", scope = "body")]
fn launch_in_body_scope(stream: &CudaStream) {
    gemm(stream);
}

#[gpu_timed(scope = "launches")]
fn no_launch(stream: &CudaStream) {
    gemm(stream);
}

#[gpu_timed(scope = "launches", launch = "gemm")]
fn launch_in_a_closure(stream: &CudaStream) {
    let run = || gemm(stream);
    run();
}

fn main() {}
