//! NVIDIA's cuda-core and cuda-async: a stream that the attribute finds by itself, and futures that choose
//! their own.
//!
//! ```text
//! CUDA_HOME=/usr/local/cuda cargo run --release    # cuda-bindings needs CUDA 13 and libclang
//! ```
//!
//! Timed by events: each launch of `add`, on the parameter of type `CudaStream`. Timed by CUPTI: the
//! kernels of `add_twice`, on the streams that cuda-async takes from its pool while the future is
//! polled. Without CUPTI, the host clock times `add_twice`.
//!
//! A function that returns a cuda-async operation has enqueued nothing yet. Annotate the function that
//! awaits the operation.

use std::error::Error;
use std::sync::Arc;

use cuda_async::error::DeviceError;
use cuda_async::futures::executor::block_on;
use cuda_async::launch::AsyncKernelLaunchBuilder;
use cuda_core::{
    CudaContext, CudaFunction, CudaStream, DeviceBuffer, DriverError, LaunchConfig,
    launch_kernel_on_stream,
};
use gpu_time::gpu_timed;

const LEN: usize = 1 << 20;
const STEPS: usize = 100;
const PTX: &str = include_str!("../../../../kernels/ptx/workloads.ptx");

struct Vectors {
    saxpy: Arc<CudaFunction>,
    x: DeviceBuffer<f32>,
    y: DeviceBuffer<f32>,
}

#[gpu_timed(warmup = 2)]
fn add(stream: &CudaStream, a: f32, v: &mut Vectors) -> Result<(), DriverError> {
    let LaunchConfig { grid_dim, block_dim, .. } = LaunchConfig::for_num_elems(LEN as u32);
    let (len, x, y) = (LEN as u32, v.x.cu_deviceptr(), v.y.cu_deviceptr());
    let mut arguments = [
        (&raw const len).cast_mut().cast(),
        (&raw const a).cast_mut().cast(),
        (&raw const x).cast_mut().cast(),
        (&raw const y).cast_mut().cast(),
    ];
    // SAFETY: the arguments match the kernel, and both vectors have `len` elements.
    unsafe { launch_kernel_on_stream(&v.saxpy, grid_dim, block_dim, 0, stream, &mut arguments) }
}

#[gpu_timed(warmup = 2)]
async fn add_twice(a: f32, v: &mut Vectors) -> Result<(), DeviceError> {
    for _ in 0..2 {
        let mut launch = AsyncKernelLaunchBuilder::new(v.saxpy.clone());
        launch.push_scalar_arg(LEN as u32).push_scalar_arg(a);
        // SAFETY: the arguments match the kernel, both vectors have `LEN` elements, and each launch ends
        // before the next one begins.
        let launch = unsafe {
            launch.push_device_ptr(v.x.cu_deviceptr()).push_device_ptr(v.y.cu_deviceptr());
            launch.finalize_unchecked(LaunchConfig::for_num_elems(LEN as u32))
        };
        launch.await?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let context = CudaContext::new(0)?;
    let stream = context.new_stream()?;
    let module = context.load_module_from_ptx_src(PTX)?;
    let mut vectors = Vectors {
        saxpy: Arc::new(module.load_function("saxpy")?),
        x: DeviceBuffer::from_host(&stream, &vec![2.0; LEN])?,
        y: DeviceBuffer::zeroed(&stream, LEN)?,
    };
    for _ in 0..STEPS {
        add(&stream, 1.0, &mut vectors)?;
        stream.synchronize()?;
        block_on(add_twice(0.5, &mut vectors))?;
    }
    let y = vectors.y.to_host_vec(&stream)?;
    let expected = 4.0 * STEPS as f32;
    assert!(y.iter().all(|&y| y == expected), "computed {:?}…, not {expected}", &y[..4]);
    println!("{STEPS} steps: every element is {expected}");
    Ok(())
}
