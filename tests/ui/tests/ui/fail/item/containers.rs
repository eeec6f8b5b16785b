use gpu_time::gpu_timed;

struct Net;

// One error each, however many functions there are.
#[gpu_timed(name = "net", warmpu = 3)]
impl Net {
    fn forward(&self) {}
    fn backward(&self) {}
}

#[gpu_timed(name = "layers")]
mod layers {
    pub fn forward() {}
}

#[gpu_timed(warmup = 3)]
impl Net {
    #[gpu_timed]
    const fn constant() {}

    #[gpu_timed(skip = true)]
    fn skipped(&self) {}
}

fn main() {
    Net.forward();
    Net.backward();
    Net.skipped();
    layers::forward();
}
