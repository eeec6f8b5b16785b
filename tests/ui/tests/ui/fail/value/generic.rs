use gpu_time::gpu_timed;

#[gpu_timed(clock = "host", warmup = N)]
fn parameter<const N: u32>() {}

struct Net;

impl Net {
    const WARMUP: u32 = 3;

    #[gpu_timed(clock = "host", warmup = Self::WARMUP)]
    fn self_type() {}
}

fn main() {}
