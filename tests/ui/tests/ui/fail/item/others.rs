use gpu_time::gpu_timed;

#[gpu_timed]
struct Net;

#[gpu_timed]
static STREAM: u32 = 0;

#[gpu_timed]
const WARMUP: u32 = 0;

#[gpu_timed]
pub(crate) enum Kind {}

#[gpu_timed]
unsafe extern "C" {
    fn forward();
}

fn main() {}
