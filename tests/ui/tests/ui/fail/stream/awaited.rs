use gpu_time::gpu_timed;

struct Device;
struct CudaStream;

impl Device {
    async fn stream(&self) -> &CudaStream {
        &CudaStream
    }
}

#[gpu_timed(stream = device.stream().await)]
async fn awaited(device: &Device) {
    let _ = device;
}

fn main() {}
