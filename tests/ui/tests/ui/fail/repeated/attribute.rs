use gpu_time::gpu_timed;

#[gpu_timed(clock = "host")]
#[gpu_timed(clock = "host")]
fn twice() {}

fn main() {}
