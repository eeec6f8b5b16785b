use gpu_time::gpu_timed;

#[gpu_timed(clock = "host")]
#[gpu_timed(clock = "host")]
fn twice() {}

#[gpu_timed(clock = "host", warmpu = 1)]
#[gpu_timed(clock = "host", warmup)]
fn twice_with_errors() {}

fn main() {}
