//! Applies `#[gpu_timed]` to functions that use each cudarc version since 0.15, and checks the
//! report.
#![deny(warnings)]

use std::rc::Rc;

use gpu_time::{Snapshot, gpu_timed};

/// Defines functions that receive the stream in every supported way, for one version of cudarc.
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
            fn optional(stream: Option<&Arc<CudaStream>>, work: impl FnOnce()) {
                work();
            }

            #[gpu_timed(stream = Rc::clone(stream), scope = "body")]
            fn rc(stream: &Rc<Arc<CudaStream>>, work: impl FnOnce()) {
                work();
            }

            #[gpu_timed(stream = CudaContext::new(0)?.default_stream(), scope = "body")]
            fn temporary(work: impl FnOnce()) {
                work();
            }

            // SAFETY: the caller keeps the stream alive.
            #[gpu_timed(stream = unsafe { gpu_time::raw_stream(stream) }, scope = "body")]
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
                    optional(Some(&stream), || ());
                    rc(&Rc::new(stream.clone()), || ());
                    temporary(|| ());
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

/// PTX of the workload kernels.
const PTX: &str = include_str!("../../../kernels/ptx/workloads.ptx");

/// Runs the functions with every version of cudarc, or with the versions given as arguments.
fn main() {
    type Run = fn() -> Result<(), String>;
    let versions: [(&str, Run); 5] = [
        ("0.15", || cudarc_0_15::run().map_err(|error| format!("{error:?}"))),
        ("0.16", || cudarc_0_16::run().map_err(|error| format!("{error:?}"))),
        ("0.17", || cudarc_0_17::run().map_err(|error| format!("{error:?}"))),
        ("0.18", || cudarc_0_18::run().map_err(|error| format!("{error:?}"))),
        ("0.19", || cudarc_0_19::run().map_err(|error| format!("{error:?}"))),
    ];
    let selected: Vec<String> = std::env::args().skip(1).collect();
    let is_selected =
        |version: &str| selected.is_empty() || selected.iter().any(|name| name == version);
    for (version, run) in versions.into_iter().filter(|(version, _)| is_selected(version)) {
        assert_eq!(run(), Ok(()), "cudarc {version}");
        check(&gpu_time::snapshot(), version);
    }
}

/// Panics unless every function was timed with this version of cudarc without losing a sample.
fn check(snapshot: &Snapshot, version: &str) {
    const FUNCTIONS: [(&str, u64); 7] = [
        ("inferred", 3),
        ("owned", 2), // plus one warm-up call
        ("optional", 3),
        ("rc", 3),
        ("temporary", 3),
        ("raw", 3),
        ("Holder::through_self", 3),
    ];
    for (function, timed) in FUNCTIONS {
        let name = format!("cudarc_versions::cudarc_{}::{function}", version.replace('.', "_"));
        let site = snapshot.sites.iter().find(|site| site.name == name);
        let site = site.unwrap_or_else(|| panic!("`{name}` is not in the report"));
        assert_eq!(site.calls, 3, "`{name}`");
        assert!(!site.series.is_empty(), "`{name}`");
        for series in &site.series {
            assert_eq!(series.device, "cuda:0", "`{name}`");
            let lost: Vec<_> = series.lost.iter().filter(|(_, count)| *count > 0).collect();
            let counts = (series.timed, series.measured);
            assert_eq!((counts, lost), ((timed, timed), vec![]), "`{name}`");
        }
    }
}
