use gpu_time::gpu_timed;

#[gpu_timed(clock = "host", sample = 1)]
fn integer() {}

#[gpu_timed(clock = "host", every = 2.5)]
fn fraction() {}

struct NoText;

#[gpu_timed(clock = "host", key = NoText)]
fn no_text() {}

fn main() {}
