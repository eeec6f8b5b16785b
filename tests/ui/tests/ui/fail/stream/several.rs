use std::sync::Arc;

use gpu_time::gpu_timed;

struct CudaStream;

impl CudaStream {
    fn launch_builder(&self, _function: &str) {}
}

#[gpu_timed]
fn parameters(copy: &Arc<CudaStream>, compute: Option<&CudaStream>) {
    let _ = (copy, compute);
}

#[gpu_timed(cold)]
fn cold_parameters(copy: &CudaStream, compute: &CudaStream) {
    let _ = (copy, compute);
}

struct Pair {
    copy: CudaStream,
    compute: CudaStream,
}

impl Pair {
    #[gpu_timed(sleep)]
    fn builders(&self) {
        self.copy.launch_builder("k");
        self.compute.launch_builder("k");
    }
}

fn main() {}
