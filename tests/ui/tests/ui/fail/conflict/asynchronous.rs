use std::future::Future;
use std::pin::Pin;

use gpu_time::gpu_timed;

struct CudaStream;

#[gpu_timed(sleep)]
async fn sleep(_stream: &CudaStream) {}

#[gpu_timed(sleep = "50us")]
fn sleep_in_future(_stream: &CudaStream) -> impl Future<Output = ()> {
    async move {}
}

#[gpu_timed]
fn future(_stream: &CudaStream) -> impl Future<Output = ()> {
    std::future::ready(())
}

#[gpu_timed]
fn boxed<'a>(_stream: &'a CudaStream) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
    Box::pin(std::future::ready(()))
}

#[gpu_timed]
fn iterator(_stream: &CudaStream) -> impl Iterator<Item = u32> {
    0..3
}

#[gpu_timed]
fn fallible(_stream: &CudaStream) -> Result<Box<dyn Iterator<Item = u32>>, ()> {
    Ok(Box::new(0..3))
}

fn main() {}
