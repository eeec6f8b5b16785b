use gpu_time::gpu_timed;

struct CudaStream;

#[gpu_timed]
const fn constant(_stream: &CudaStream) {}

trait Layer {
    #[gpu_timed]
    fn forward(&self, stream: &CudaStream);
}

fn main() {}
