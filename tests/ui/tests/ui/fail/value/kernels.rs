use gpu_time::gpu_timed;

#[gpu_timed(kernels = 1.5)]
fn too_much() {}

#[gpu_timed(kernels = 0)]
fn none() {}

#[gpu_timed(kernels = "on")]
fn text() {}

const EVERY: f64 = 16.0;

#[gpu_timed(kernels = EVERY)]
fn constant() {}

#[gpu_timed(kernels, kernels = 0.5)]
fn twice() {}

fn main() {}
