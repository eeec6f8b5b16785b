use gpu_time::gpu_timed;

#[gpu_timed(warmpu = 10, cold = 3, scope = "launches", sleep = "soon")]
const fn everything_wrong() {}

fn main() {}
