use gpu_time::gpu_timed;

struct Tensor;

#[gpu_timed]
fn nothing() {}

#[gpu_timed(cold)]
fn tensors(_a: &Tensor, _b: &mut Tensor) {}

fn main() {}
