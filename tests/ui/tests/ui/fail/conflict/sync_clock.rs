use gpu_time::gpu_timed;

struct CudaStream;

struct Kernel;

impl Kernel {
    fn launch(&self) {}
}

#[gpu_timed(clock = "sync", scope = "launches", sleep)]
fn launches(_stream: &CudaStream, kernel: &Kernel) {
    kernel.launch();
}

#[gpu_timed(launch = "gemm", clock = "sync", sleep = "50us")]
fn named(_stream: &CudaStream) {
    gemm();
}

fn gemm() {}

#[gpu_timed(clock = "sync")]
async fn awaited(_stream: &CudaStream) {}

#[gpu_timed(clock = "sync", sleep)]
fn boxed(_stream: &CudaStream) -> impl std::future::Future<Output = ()> {
    async move {}
}

#[gpu_timed(clock = "sync", graph)]
fn in_a_graph(_stream: &CudaStream) {}

fn main() {}
