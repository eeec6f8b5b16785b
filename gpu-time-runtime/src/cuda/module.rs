//! Our kernels, loaded into a context.

use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::OnceLock;

use cudarc::driver::sys::{self, CUfunction, CUmodule};

use super::check;
use super::context::raw;
use super::device::DeviceInfo;
use crate::gpu::{Fault, Stream};

/// A kernel of ours in one context.
#[derive(Clone, Copy)]
pub(super) struct Kernel(usize);

impl Kernel {
    /// Enqueues a launch.
    ///
    /// # Safety
    ///
    /// `parameters` point to values of the types and the order that the kernel declares, whose device
    /// pointers are valid for it, and the kernel's context is current.
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

/// Our modules in one context, each not loaded, loaded, or refused by the driver.
#[derive(Default)]
pub(super) struct Module {
    kernels: OnceLock<Result<Kernels, Fault>>,
    discard: OnceLock<Option<Kernel>>,
}

impl Module {
    /// The kernels, loaded on first use. The context must be current and the thread in relaxed mode.
    pub fn kernels(&self) -> Result<Kernels, Fault> {
        *self.kernels.get_or_init(|| {
            let function = load(gpu_time_kernels::PTX)?;
            Ok(Kernels {
                flush_read: function(gpu_time_kernels::FLUSH_READ)?,
                hold: function(gpu_time_kernels::HOLD)?,
                empty: function(gpu_time_kernels::EMPTY)?,
                line_latencies: function(gpu_time_kernels::LINE_LATENCIES)?,
            })
        })
    }

    /// The kernel that discards lines, loaded on first use, where the device can and the driver lets it.
    /// The context must be current and the thread in relaxed mode.
    pub fn discard(&self, device: &DeviceInfo) -> Option<Kernel> {
        *self.discard.get_or_init(|| {
            let is_able = device.capability >= (8, 0);
            let function = is_able.then(|| load(gpu_time_kernels::PTX_SM_80))?.ok()?;
            function(gpu_time_kernels::DISCARD).ok()
        })
    }

    pub fn warning(&self) -> Option<String> {
        let fault = self.kernels.get()?.err()?;
        Some(format!("our kernels could not be loaded ({fault}): `cold` and `sleep` were left out"))
    }
}

/// Loads a module, and answers what finds the kernels in it.
fn load(ptx: &CStr) -> Result<impl Fn(&CStr) -> Result<Kernel, Fault>, Fault> {
    let mut module: CUmodule = ptr::null_mut();
    // SAFETY: the image is terminated PTX; writes one handle.
    check(unsafe { sys::cuModuleLoadData(&raw mut module, ptx.as_ptr().cast()) })?;
    Ok(move |name: &CStr| {
        let mut function: CUfunction = ptr::null_mut();
        // SAFETY: the module was just loaded, and the name is terminated; writes one handle.
        check(unsafe { sys::cuModuleGetFunction(&raw mut function, module, name.as_ptr()) })?;
        Ok(Kernel(function as usize))
    })
}
