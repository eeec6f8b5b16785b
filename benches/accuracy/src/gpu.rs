//! A device and a stream of our own, brought to its working clock.

use std::cell::OnceCell;
use std::ffi::CStr;
use std::sync::Arc;

use cudarc::cublas::{self, CudaBlas};
use cudarc::driver::{CudaContext, CudaFunction, CudaStream, LaunchConfig, PushKernelArg, sys};
use cudarc::nvrtc::Ptx;
use gpu_time_kernels::workloads;

use crate::Failure;

/// One thread.
pub const ONE: LaunchConfig =
    LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 };

/// Whether there is a driver with a device. Makes no context.
pub fn is_there() -> bool {
    // SAFETY: looks for the driver's library; without it cudarc would panic.
    (unsafe { sys::is_culib_present() }) && CudaContext::device_count().is_ok_and(|n| n > 0)
}

/// The first device.
pub struct Gpu {
    /// Its primary context.
    pub context: Arc<CudaContext>,
    /// The stream that everything runs on.
    pub stream: Arc<CudaStream>,
    /// The library of matrix products, with a handle on the stream.
    blas: OnceCell<Arc<CudaBlas>>,
}

impl Gpu {
    /// The device, without cudarc's event tracking.
    ///
    /// # Errors
    /// There is no driver or no device.
    pub fn new() -> Result<Gpu, Failure> {
        let gpu = Gpu::tracked()?;
        // SAFETY: there is one stream, so nothing is to be ordered.
        unsafe { gpu.context.disable_event_tracking() };
        Ok(gpu)
    }

    /// The device, with cudarc's event tracking, as an application has it that calls `new_stream`.
    ///
    /// # Errors
    /// There is no driver or no device.
    pub fn tracked() -> Result<Gpu, Failure> {
        if !is_there() {
            return Err("no GPU here".into());
        }
        let context = CudaContext::new(0)?;
        let stream = context.new_stream()?;
        Ok(Gpu { context, stream, blas: OnceCell::new() })
    }

    /// A kernel of [`workloads`].
    pub fn workload(&self, name: &str) -> Result<CudaFunction, Failure> {
        let module = self.context.load_module(Ptx::from_src(workloads::PTX))?;
        Ok(module.load_function(name)?)
    }

    /// A kernel of the runtime's own module.
    pub fn runtime_kernel(&self, name: &CStr) -> Result<CudaFunction, Failure> {
        let module = self.context.load_module(Ptx::from_src(gpu_time_kernels::PTX.to_str()?))?;
        Ok(module.load_function(name.to_str()?)?)
    }

    pub fn blas(&self) -> Result<Arc<CudaBlas>, Failure> {
        if let Some(blas) = self.blas.get() {
            return Ok(blas.clone());
        }
        // SAFETY: looks for the library; without it cudarc would panic.
        if !unsafe { cublas::sys::is_culib_present() } {
            return Err("no libcublas".into());
        }
        let blas = Arc::new(CudaBlas::new(self.stream.clone())?);
        Ok(self.blas.get_or_init(|| blas).clone())
    }

    /// Lets it work for a while, so that what follows meets the clock that work has.
    ///
    /// # Errors
    /// The driver's.
    pub fn ramp(&self) -> Result<(), Failure> {
        const TEN_MS: u64 = 10_000_000;
        let spin = self.workload(workloads::SPIN_NS)?;
        for _ in 0..15 {
            // SAFETY: the argument is the kernel's.
            unsafe { self.stream.launch_builder(&spin).arg(&TEN_MS).launch(ONE) }?;
        }
        Ok(self.stream.synchronize()?)
    }
}
