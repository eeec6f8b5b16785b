use gpu_time::gpu_timed;

#[gpu_timed(clock = "host", sample = 1.5)]
fn too_much() {}

#[gpu_timed(clock = "host", sample = 2)]
fn far_too_much() {}

#[gpu_timed(clock = "host", sample = -0.1)]
fn negative() {}

#[gpu_timed(clock = "host", sample = 0)]
fn nothing() {}

#[gpu_timed(clock = "host", sample = 0.0)]
fn no_share() {}

#[gpu_timed(clock = "host", every = 0)]
fn none() {}

#[gpu_timed(clock = "host", every = (-5))]
fn backwards() {}

#[gpu_timed(clock = "host", sample = "1%")]
fn text() {}

fn main() {}
