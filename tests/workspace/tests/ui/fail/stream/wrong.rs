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

fn main() {}
