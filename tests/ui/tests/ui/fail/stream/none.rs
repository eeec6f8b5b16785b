//! A key that needs a stream asks for one.

use gpu_time::gpu_timed;

struct Tensor;

#[gpu_timed(clock = "events")]
fn nothing() {}

#[gpu_timed(cold)]
fn tensors(_a: &Tensor, _b: &mut Tensor) {}

fn main() {}
