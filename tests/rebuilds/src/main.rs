//! An application with one annotated function, and with dependencies besides gpu-time.

use std::error::Error;
use std::sync::Arc;

use cudarc::driver::CudaStream;
use gpu_time::gpu_timed;

#[derive(serde::Serialize)]
struct Answer {
    blocks: u32,
}

#[gpu_timed]
fn wait(stream: &Arc<CudaStream>) -> Result<(), Box<dyn Error>> {
    Ok(stream.synchronize()?)
}

fn main() -> Result<(), Box<dyn Error>> {
    wait(&kernels::stream()?)?;
    println!("{}", serde_json::to_string(&Answer { blocks: kernels::BLOCKS })?);
    Ok(())
}
