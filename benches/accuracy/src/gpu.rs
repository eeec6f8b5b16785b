//! A device and a stream of our own, brought to its working clock.

use std::cell::OnceCell;
use std::ffi::{CStr, c_void};
use std::sync::Arc;

use cudarc::cublas::{self, CudaBlas};
use cudarc::driver::sys::{self, CUdevice_attribute_enum as Attribute};
use cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, DevicePtr, LaunchConfig, PushKernelArg,
    result,
};
use cudarc::nvrtc::Ptx;
use gpu_time_kernels::{FLUSH_READ, FLUSH_READ_BLOCK, flush_read_grid, workloads};

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

/// The clean flush of the runtime: the same kernel, geometry and length, launched with nothing around
/// it.
pub struct Flush {
    kernel: CudaFunction,
    blocks: u32,
    /// So many units of 16 bytes, and a word after them that stays 0.
    n16: u64,
    buffer: CudaSlice<u64>,
}

impl Flush {
    /// One that reads so many bytes.
    pub fn new(gpu: &Gpu, bytes: u64) -> Result<Flush, Failure> {
        let attribute = |attribute| -> Result<u32, Failure> {
            Ok(gpu.context.attribute(attribute)?.try_into()?)
        };
        let multiprocessors = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        let threads = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?;
        let n16 = bytes / 16;
        Ok(Flush {
            kernel: gpu.runtime_kernel(FLUSH_READ)?,
            blocks: flush_read_grid(multiprocessors, threads),
            n16,
            buffer: gpu.stream.alloc_zeros(usize::try_from(n16)? * 2 + 1)?,
        })
    }

    /// The address of a word that is always 0.
    pub fn zero(&self, gpu: &Gpu) -> u64 {
        self.buffer.device_ptr(&gpu.stream).0 + self.n16 * 16
    }

    /// Enqueues it.
    pub fn launch(&self, gpu: &Gpu) -> Result<(), Failure> {
        let mut sink = self.zero(gpu);
        let (mut address, mut n16) = (sink - self.n16 * 16, self.n16);
        let mut parameters: [*mut c_void; 3] =
            [(&raw mut address).cast(), (&raw mut n16).cast(), (&raw mut sink).cast()];
        let (grid, block) = ((self.blocks, 1, 1), (FLUSH_READ_BLOCK, 1, 1));
        let (kernel, stream) = (self.kernel.cu_function(), gpu.stream.cu_stream());
        // SAFETY: the parameters of `FLUSH_READ`, which reads `n16` units and, as they are 0, writes
        // nothing.
        Ok(unsafe { result::launch_kernel(kernel, grid, block, 0, stream, &mut parameters) }?)
    }
}
