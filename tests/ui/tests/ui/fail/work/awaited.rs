use gpu_time::gpu_timed;

struct CudaStream;

async fn size() -> u64 {
    4
}

#[gpu_timed(bytes = 2 * size().await, flops = { size().await })]
async fn awaited(_stream: &CudaStream) {}

fn main() {}
