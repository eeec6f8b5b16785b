use gpu_time::gpu_timed;

struct Tensor;

#[gpu_timed(stream = tensor)]
fn no_stream(tensor: &Tensor) {
    let _ = tensor;
}

#[gpu_timed(stream = Some(tensor))]
fn no_stream_in_option(tensor: &Tensor) {
    let _ = tensor;
}

#[gpu_timed(stream = stream)]
fn not_yet_there(context: &Tensor) {
    let stream = context;
    let _ = stream;
}

#[gpu_timed(stream = 5?)]
fn not_fallible() {}

/// The stream of another library.
struct CudaStream;

#[gpu_timed]
fn foreign_inferred(stream: &CudaStream) {
    let _ = stream;
}

#[gpu_timed(stream = stream.as_ref())]
fn foreign_in_arc(stream: std::sync::Arc<CudaStream>) {
    let _ = stream;
}

fn main() {}
