use gpu_time::gpu_timed;

const ALL_AND_MORE: f64 = 1.5;
const NONE: u32 = 0;

#[gpu_timed(clock = "host", sample = ALL_AND_MORE)]
fn too_much() {}

#[gpu_timed(clock = "host", sample = f64::NAN)]
fn no_number() {}

#[gpu_timed(clock = "host", every = NONE)]
fn none() {}

fn main() {}
