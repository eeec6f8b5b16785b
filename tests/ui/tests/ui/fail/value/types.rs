use gpu_time::gpu_timed;

#[gpu_timed(clock = "host", warmup = -1)]
fn negative() {}

#[gpu_timed(clock = "host", warmup = "ten")]
fn text() {}

#[gpu_timed(clock = "host", name = 3)]
fn name() {}

#[gpu_timed(clock = "host", warmup = n)]
fn at_run_time(n: u32) -> u32 {
    n
}

fn main() {}
