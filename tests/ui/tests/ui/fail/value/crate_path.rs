use gpu_time::gpu_timed;

mod reexports {
    pub mod timing {}
}

struct CudaStream;

#[gpu_timed(crate = nowhere::timing)]
fn leads_nowhere(stream: &CudaStream) {
    let _ = stream;
}

#[gpu_timed(cold, crate = reexports::timing, warmup = 3)]
async fn leads_elsewhere(stream: &CudaStream) {
    std::future::ready(stream).await;
}

fn main() {}
