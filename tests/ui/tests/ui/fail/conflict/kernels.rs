use gpu_time::gpu_timed;

struct CudaStream;

#[gpu_timed(clock = "kernels", stream = stream, cold, sleep, graph)]
fn kernels(stream: &CudaStream) {
    let _ = stream;
}

struct Kernel;

impl Kernel {
    fn launch(&self) {}
}

#[gpu_timed(clock = "kernels", scope = "launches")]
fn launches(kernel: &Kernel) {
    kernel.launch();
}

#[gpu_timed(launch = "gemm", clock = "kernels")]
fn named() {
    gemm();
}

fn gemm() {}

#[gpu_timed]
fn returns_before_its_work_is_done() -> impl Future<Output = ()> {
    std::future::ready(())
}

fn main() {}
