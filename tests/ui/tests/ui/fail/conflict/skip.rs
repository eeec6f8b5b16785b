use gpu_time::gpu_timed;

struct Net;

#[gpu_timed(warmup = 1)]
impl Net {
    #[gpu_timed(skip, cold)]
    fn one(&self) {}

    #[gpu_timed(skip = true)]
    fn two(&self) {}
}

fn main() {
    Net.one();
    Net.two();
}
