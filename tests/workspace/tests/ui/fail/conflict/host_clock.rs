use gpu_time::gpu_timed;

struct CudaStream;

#[gpu_timed(clock = "host", stream = stream, cold, sleep)]
fn host(stream: &CudaStream) {
    let _ = stream;
}

fn main() {}
