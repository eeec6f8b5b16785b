//! The runtime's own kernels, loaded into a context.

use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::OnceLock;

use cudarc::driver::sys::{self, CUfunction, CUmodule};

use crate::cuda::device::DeviceInfo;
use crate::cuda::result::{check, raw};
use crate::gpu::Fault;
use crate::types::handles::Stream;

/// A kernel that is loaded into one context.
#[derive(Clone, Copy)]
pub(super) struct Kernel(usize);

impl Kernel {
    /// Enqueues a launch.
    ///
    /// # Safety
    ///
    /// `parameters` must point to values of the types and in the order that the kernel declares,
    /// whose device pointers are valid for it, and the kernel's context must be current.
    pub unsafe fn launch(
        self,
        stream: Stream,
        (blocks, threads): (u32, u32),
        parameters: &mut [*mut c_void],
    ) -> Result<(), Fault> {
        // SAFETY: the caller's promise; the driver copies the parameters before it returns.
        check(unsafe {
            sys::cuLaunchKernel(
                self.0 as CUfunction,
                blocks,
                1,
                1,
                threads,
                1,
                1,
                0,
                raw(stream),
                parameters.as_mut_ptr(),
                ptr::null_mut(),
            )
        })
    }
}

/// The kernels of one context.
#[derive(Clone, Copy)]
pub(super) struct Kernels {
    pub flush_read: Kernel,
    pub hold: Kernel,
    pub empty: Kernel,
    pub line_latencies: Kernel,
}

/// The runtime's modules in one context, each not loaded, loaded, or rejected by the driver.
pub(super) struct Module {
    kernels: OnceLock<Result<Kernels, Fault>>,
    /// `None` if the device cannot discard lines.
    discard: Option<OnceLock<Option<Kernel>>>,
}

impl Module {
    /// Loads nothing yet.
    pub fn new(device: &DeviceInfo) -> Self {
        let can_discard = device.capability >= (8, 0);
        Module { kernels: OnceLock::new(), discard: can_discard.then(OnceLock::new) }
    }

    /// Returns the kernels, which are loaded on first use. The context must be current and the
    /// thread in relaxed capture mode.
    ///
    /// The driver may wait until no kernel runs before it loads a module, so the module that
    /// discards is loaded at the same time. If that fails, it is loaded again when it is needed.
    pub fn kernels(&self) -> Result<Kernels, Fault> {
        *self.kernels.get_or_init(|| {
            let function = load(gpu_time_kernels::PTX)?;
            let kernels = Kernels {
                flush_read: function(gpu_time_kernels::FLUSH_READ)?,
                hold: function(gpu_time_kernels::HOLD)?,
                empty: function(gpu_time_kernels::EMPTY)?,
                line_latencies: function(gpu_time_kernels::LINE_LATENCIES)?,
            };
            if let Some(slot) = &self.discard
                && let Ok(discard) = load_discard()
            {
                _ = slot.set(Some(discard));
            }
            Ok(kernels)
        })
    }

    /// Returns the kernel that discards lines, if the device can and the driver loads it. The
    /// context must be current and the thread in relaxed capture mode.
    pub fn discard(&self) -> Option<Kernel> {
        *self.discard.as_ref()?.get_or_init(|| load_discard().ok())
    }

    pub fn warning(&self) -> Option<String> {
        let fault = self.kernels.get()?.err()?;
        Some(format!(
            "gpu-time's kernels could not be loaded ({fault}): `cold` and `sleep` were left out"
        ))
    }
}

fn load_discard() -> Result<Kernel, Fault> {
    load(gpu_time_kernels::PTX_SM_80)?(gpu_time_kernels::DISCARD)
}

/// Loads a module, and returns a function that looks up its kernels.
fn load(ptx: &CStr) -> Result<impl Fn(&CStr) -> Result<Kernel, Fault>, Fault> {
    let mut module: CUmodule = ptr::null_mut();
    // SAFETY: the image is NUL-terminated PTX; writes one handle.
    check(unsafe { sys::cuModuleLoadData(&raw mut module, ptx.as_ptr().cast()) })?;
    Ok(move |name: &CStr| {
        let mut function: CUfunction = ptr::null_mut();
        // SAFETY: the module was just loaded, and the name is NUL-terminated; writes one handle.
        check(unsafe { sys::cuModuleGetFunction(&raw mut function, module, name.as_ptr()) })?;
        Ok(Kernel(function as usize))
    })
}
