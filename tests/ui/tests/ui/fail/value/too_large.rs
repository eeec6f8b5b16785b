use gpu_time::gpu_timed;

#[gpu_timed(clock = "host", warmup = 99999999999)]
fn too_large() {}

fn main() {}
