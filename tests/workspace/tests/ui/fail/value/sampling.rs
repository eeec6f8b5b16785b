use gpu_time::gpu_timed;

const ALL_AND_MORE: f64 = 1.5;

#[gpu_timed(clock = "host", sample = ALL_AND_MORE)]
fn too_much() {}

#[gpu_timed(clock = "host", sample = -0.1)]
fn negative() {}

#[gpu_timed(clock = "host", sample = f64::NAN)]
fn no_number() {}

#[gpu_timed(clock = "host", every = 0)]
fn none() {}

fn main() {}
