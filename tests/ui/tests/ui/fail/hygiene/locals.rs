use gpu_time::gpu_timed;

#[gpu_timed(clock = "host")]
fn scope() {
    drop(__gpu_time_scope);
}

#[gpu_timed(clock = "host")]
fn site() {
    let _ = &__GPU_TIME_SITE;
    __gpu_time_marker();
}

fn main() {}
