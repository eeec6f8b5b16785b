//! The device under test, with one stream.

use std::ffi::CStr;
use std::sync::{Arc, OnceLock};

use cudarc::cublas::{self, CudaBlas};
use cudarc::driver::{CudaContext, CudaFunction, CudaStream, LaunchConfig, PushKernelArg, sys};
use cudarc::nvrtc::Ptx;
use gpu_time_kernels::workloads;

use crate::failure::Failure;

/// A launch of a single thread.
pub const ONE: LaunchConfig =
    LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 };

/// Returns `true` if there is a driver with a device. Creates no context.
pub fn is_present() -> bool {
    // SAFETY: only looks for the driver library, without which cudarc would panic.
    (unsafe { sys::is_culib_present() }) && CudaContext::device_count().is_ok_and(|n| n > 0)
}

/// The first device.
pub struct Gpu {
    /// Its primary context.
    pub context: Arc<CudaContext>,
    /// The stream on which everything runs.
    pub stream: Arc<CudaStream>,
    /// A cuBLAS handle that uses the stream, created on first use.
    blas: OnceLock<Arc<CudaBlas>>,
}

impl Gpu {
    /// Opens the first device, without cudarc's event tracking.
    ///
    /// # Errors
    /// No driver or no device is found.
    pub fn new() -> Result<Gpu, Failure> {
        let gpu = Gpu::tracked()?;
        // SAFETY: there is only one stream, so nothing needs ordering.
        unsafe { gpu.context.disable_event_tracking() };
        Ok(gpu)
    }

    /// Opens the first device, with cudarc's event tracking, which an application gets by default
    /// when it calls `new_stream`.
    ///
    /// # Errors
    /// No driver or no device is found.
    pub fn tracked() -> Result<Gpu, Failure> {
        if !is_present() {
            return Err("no GPU here".into());
        }
        let context = CudaContext::new(0)?;
        let stream = context.new_stream()?;
        Ok(Gpu { context, stream, blas: OnceLock::new() })
    }

    /// Loads a kernel from [`workloads`].
    pub fn workload(&self, name: &str) -> Result<CudaFunction, Failure> {
        let module = self.context.load_module(Ptx::from_src(workloads::PTX))?;
        Ok(module.load_function(name)?)
    }

    /// Loads a kernel from the runtime's own module.
    pub fn runtime_kernel(&self, name: &CStr) -> Result<CudaFunction, Failure> {
        let module = self.context.load_module(Ptx::from_src(gpu_time_kernels::PTX.to_str()?))?;
        Ok(module.load_function(name.to_str()?)?)
    }

    pub fn blas(&self) -> Result<Arc<CudaBlas>, Failure> {
        if let Some(blas) = self.blas.get() {
            return Ok(blas.clone());
        }
        // SAFETY: only looks for the library, without which cudarc would panic.
        if !unsafe { cublas::sys::is_culib_present() } {
            return Err("no libcublas".into());
        }
        let blas = Arc::new(CudaBlas::new(self.stream.clone())?);
        Ok(self.blas.get_or_init(|| blas).clone())
    }

    /// Keeps the GPU busy for 150 ms, so that it reaches its normal clock under load.
    ///
    /// # Errors
    /// A driver call fails.
    pub fn ramp(&self) -> Result<(), Failure> {
        const TEN_MS: u64 = 10_000_000;
        let spin = self.workload(workloads::SPIN_NS)?;
        for _ in 0..15 {
            // SAFETY: the argument matches the kernel.
            unsafe { self.stream.launch_builder(&spin).arg(&TEN_MS).launch(ONE) }?;
        }
        Ok(self.stream.synchronize()?)
    }
}
