//! A value that coerces to a pointer is not a stream handle.

use std::sync::Arc;

use cudarc::driver::CudaStream;
use gpu_time::Settle;

fn by_reference(mut stream: Arc<CudaStream>) -> Settle {
    Settle::default().graph(&mut stream, 10)
}

fn by_value(stream: Arc<CudaStream>) -> Settle {
    Settle::default().graph(stream, 10)
}

fn main() {}
