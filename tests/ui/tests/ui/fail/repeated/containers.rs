use gpu_time::gpu_timed;

struct Net;

#[gpu_timed(warmup = 1)]
#[gpu_timed(warmup = 2)]
impl Net {
    fn forward(&self) {}
}

#[gpu_timed]
mod layers {
    use super::gpu_timed;

    #[gpu_timed]
    #[gpu_timed(warmup = 2)]
    pub fn forward() {}
}

fn main() {
    Net.forward();
    layers::forward();
}
