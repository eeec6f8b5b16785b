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

/// A stream that does not name its context.
struct Queue;

impl Queue {
    fn cu_stream(&self) -> *mut () {
        std::ptr::null_mut()
    }
}

#[gpu_timed(stream = stream)]
fn without_context(stream: &Queue) {
    let _ = stream.cu_stream();
}

#[gpu_timed(stream = stream.cu_stream())]
fn raw_handle(stream: &Queue) {
    let _ = stream;
}

fn main() {}
