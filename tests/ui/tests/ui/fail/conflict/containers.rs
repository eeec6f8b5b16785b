use cudarc::driver::CudaStream;
use gpu_time::gpu_timed;

struct Net;

// One error each, however many functions there are.
#[gpu_timed(clock = "host", cold)]
mod layers {
    pub fn one() {}
    pub fn two() {}
}

#[gpu_timed(bytes = count().await)]
trait Layer {
    fn one(&self) {}
    fn two(&self) {}
}

#[gpu_timed(warmup = 3)]
impl Net {
    fn two_streams(_one: &CudaStream, _two: &CudaStream) {}

    #[gpu_timed(cold)]
    fn without_stream(&self) {}
}

fn main() {
    layers::one();
    layers::two();
}
