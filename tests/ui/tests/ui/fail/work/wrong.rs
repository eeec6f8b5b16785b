use gpu_time::gpu_timed;

#[gpu_timed(clock = "host", bytes = "4 KiB")]
fn text() {}

#[gpu_timed(clock = "host", flops = shape)]
fn tuple(shape: (u32, u32)) {
    let _ = shape;
}

#[gpu_timed(clock = "host", bytes = Some(work()))]
fn nothing() {}

#[gpu_timed(clock = "host", bytes = unknown)]
fn unknown_name() {}

fn work() {}

fn main() {}
