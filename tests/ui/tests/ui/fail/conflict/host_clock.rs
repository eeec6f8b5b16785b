use gpu_time::gpu_timed;

struct CudaStream;

#[gpu_timed(clock = "host", stream = stream, cold, sleep)]
fn host(stream: &CudaStream) {
    let _ = stream;
}

struct Kernel;

impl Kernel {
    fn launch(&self) {}
}

#[gpu_timed(clock = "host", scope = "launches")]
fn launches(kernel: &Kernel) {
    kernel.launch();
}

#[gpu_timed(launch = "gemm", clock = "host")]
fn named() {
    gemm();
}

fn gemm() {}

#[gpu_timed(helpers = false, clock = "host")]
fn alone() {}

fn main() {}
