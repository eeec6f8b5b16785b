//! One annotation, every cudarc since 0.15.
#![deny(warnings)]

use std::rc::Rc;

use gpu_time::gpu_timed;

/// Streams in all the ways that they are handed around, and inference from a builder.
macro_rules! version {
    ($name:ident, $cudarc:ident) => {
        mod $name {
            use std::sync::Arc;

            use $cudarc::driver::{
                CudaContext, CudaFunction, CudaStream, DriverError, LaunchConfig, PushKernelArg,
                sys,
            };

            use super::*;

            const ONE: LaunchConfig =
                LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 };

            #[gpu_timed]
            fn inferred(
                stream: &Arc<CudaStream>,
                kernel: &CudaFunction,
            ) -> Result<(), DriverError> {
                unsafe { stream.launch_builder(kernel).arg(&1u64).launch(ONE) }.map(drop)
            }

            #[gpu_timed(cold, sleep, warmup = 1)]
            fn owned(stream: Arc<CudaStream>, kernel: &CudaFunction) -> Result<(), DriverError> {
                unsafe { stream.launch_builder(kernel).arg(&1u64).launch(ONE) }.map(drop)
            }

            #[gpu_timed(stream = stream, scope = "body")]
            fn maybe(stream: Option<&Arc<CudaStream>>, work: impl FnOnce()) {
                work();
            }

            #[gpu_timed(stream = Rc::clone(stream), scope = "body")]
            fn counted(stream: &Rc<Arc<CudaStream>>, work: impl FnOnce()) {
                work();
            }

            #[gpu_timed(stream = CudaContext::new(0)?.default_stream(), scope = "body")]
            fn made(work: impl FnOnce()) {
                work();
            }

            #[gpu_timed(scope = "body")]
            fn raw(stream: sys::CUstream, work: impl FnOnce()) {
                let _ = stream;
                work();
            }

            struct Holder {
                stream: Arc<CudaStream>,
            }

            impl Holder {
                #[gpu_timed]
                fn through_self(&self, kernel: &CudaFunction) -> Result<(), DriverError> {
                    unsafe { self.stream.launch_builder(kernel).arg(&1u64).launch(ONE) }.map(drop)
                }
            }

            pub fn run() -> Result<(), DriverError> {
                let context = CudaContext::new(0)?;
                let stream = context.new_stream()?;
                let ptx = $cudarc::nvrtc::Ptx::from_src(super::PTX);
                let kernel = context.load_module(ptx)?.load_function("spin_ns")?;
                for _ in 0..3 {
                    inferred(&stream, &kernel)?;
                    owned(stream.clone(), &kernel)?;
                    maybe(Some(&stream), || ());
                    counted(&Rc::new(stream.clone()), || ());
                    made(|| ());
                    raw(stream.cu_stream().cast(), || ());
                    Holder { stream: stream.clone() }.through_self(&kernel)?;
                }
                stream.synchronize()
            }
        }
    };
}
version!(cudarc_0_15, cudarc_15);
version!(cudarc_0_16, cudarc_16);
version!(cudarc_0_17, cudarc_17);
version!(cudarc_0_18, cudarc_18);
version!(cudarc_0_19, cudarc_19);

/// The module with the workload kernels.
const PTX: &str = include_str!("../../../kernels/ptx/workloads.ptx");

fn main() {
    for (version, result) in [
        ("0.15", cudarc_0_15::run().map_err(|error| format!("{error:?}"))),
        ("0.16", cudarc_0_16::run().map_err(|error| format!("{error:?}"))),
        ("0.17", cudarc_0_17::run().map_err(|error| format!("{error:?}"))),
        ("0.18", cudarc_0_18::run().map_err(|error| format!("{error:?}"))),
        ("0.19", cudarc_0_19::run().map_err(|error| format!("{error:?}"))),
    ] {
        assert_eq!(result, Ok(()), "cudarc {version}");
    }
}
