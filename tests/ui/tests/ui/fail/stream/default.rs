use std::rc::Rc;
use std::sync::Arc;

use gpu_time::{set_default_stream, set_thread_default_stream};

/// Like the stream of another version of cudarc.
struct CudaStream;

fn main() {
    set_default_stream(Arc::new(CudaStream));
    set_thread_default_stream(Some(Rc::new(gpu_time::NULL_STREAM)));
}
