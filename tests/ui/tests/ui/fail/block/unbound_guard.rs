//! Guards that would be dropped at once.

fn main() {
    let _ = gpu_time::guard!("spaced", clock = "host");
    let _
        = gpu_time::guard!("on two lines");
    let _timed = gpu_time::guard!("named", clock = "host");
    drop(gpu_time::guard!("dropped", clock = "host"));
}
