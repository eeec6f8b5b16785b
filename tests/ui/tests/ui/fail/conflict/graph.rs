use gpu_time::gpu_timed;

struct CudaStream;

fn gemm(_stream: &CudaStream) {}

#[gpu_timed(clock = "host", graph)]
fn on_the_host() {}

#[gpu_timed(scope = "body", graph)]
fn in_body_scope(stream: &CudaStream) {
    gemm(stream);
}

#[gpu_timed(graph)]
fn without_a_launch(stream: &CudaStream) {
    gemm(stream);
}

#[gpu_timed(graph, launch = "gemm")]
fn with_a_hidden_launch(stream: &CudaStream) {
    let run = || gemm(stream);
    run();
    gemm(stream);
}

#[gpu_timed(graph = true, launch = "gemm")]
fn with_a_value(stream: &CudaStream) {
    gemm(stream);
}

fn main() {}
