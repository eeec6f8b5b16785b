//! Literals, which no raw handle can be.

use gpu_time::gpu_timed;

#[gpu_timed(stream = 5)]
fn number() {}

#[gpu_timed(stream = "s")]
fn text() {}

fn main() {}
