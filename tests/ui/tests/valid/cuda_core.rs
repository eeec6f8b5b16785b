//! Streams and launches from NVIDIA's cuda-core, whose `CudaStream` is not cudarc's.
#![deny(warnings)]
#![allow(unsafe_code)]

use cuda_core::CudaStream;
use gpu_time::gpu_timed;

/// The parts of cuda-core that these functions use.
mod cuda_core {
    use std::ffi::c_void;
    use std::sync::Arc;

    pub struct CudaContext;

    impl CudaContext {
        pub fn cu_ctx(&self) -> *mut c_void {
            std::ptr::null_mut()
        }
    }

    pub struct CudaStream(Arc<CudaContext>);

    impl CudaStream {
        pub fn cu_stream(&self) -> *mut c_void {
            std::ptr::null_mut()
        }

        pub fn context(&self) -> &Arc<CudaContext> {
            &self.0
        }
    }

    macro_rules! launches {
        ($($name:ident)*) => {
            $(pub unsafe fn $name(_function: &str) -> Result<(), String> {
                Ok(())
            })*
        };
    }

    launches! {
        launch_kernel
        launch_kernel_on_stream
        launch_kernel_ex
        launch_kernel_ex_on_stream
        launch_kernel_cooperative
        launch_kernel_cooperative_on_stream
        launch_kernel_ex_cooperative
        launch_kernel_ex_cooperative_on_stream
    }

    macro_rules! cuda_launch {
        (kernel: $kernel:ident) => {
            crate::cuda_core::cuda_core::launch_kernel(stringify!($kernel))
        };
    }

    pub(crate) use cuda_launch;
}

#[gpu_timed(name = "cuda-core")]
fn all(stream: Option<&CudaStream>) -> Result<(), String> {
    use cuda_core::launch_kernel_on_stream;
    unsafe { launch_kernel_on_stream("a") }?;
    unsafe {
        cuda_core::launch_kernel("b")?;
        cuda_core::launch_kernel_ex("c")?;
        cuda_core::launch_kernel_ex_on_stream("d")?;
        cuda_core::launch_kernel_cooperative("e")?;
        cuda_core::launch_kernel_cooperative_on_stream("f")?;
        cuda_core::launch_kernel_ex_cooperative("g")?;
        cuda_core::launch_kernel_ex_cooperative_on_stream("h")?;
        cuda_core::cuda_launch! { kernel: i }?;
    }
    assert!(stream.is_none());
    Ok(())
}

#[test]
fn runs() {
    all(None).unwrap();
    let snapshot = gpu_time::snapshot();
    let site = snapshot.site("cuda-core").expect("the function is in the report");
    assert_eq!((site.scope.name(), site.launches_seen), ("launches", 9));
}
