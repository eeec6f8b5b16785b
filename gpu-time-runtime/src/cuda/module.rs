//! The runtime's own kernels, loaded into a context.

use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::OnceLock;

use cudarc::driver::result::{launch_kernel, module};
use cudarc::driver::sys::CUfunction;

use crate::cuda::{device::DeviceInfo, result::raw};
use crate::gpu::Fault;
use crate::types::handles::Stream;

/// A kernel loaded into one context.
#[derive(Clone, Copy)]
pub(super) struct LoadedKernel(usize);

impl LoadedKernel {
    /// Enqueues a launch.
    ///
    /// # Safety
    ///
    /// `parameters` must be the values that the kernel declares, in order. The driver reads a
    /// parameter of less than 8 bytes from the low bytes of its value, which come first on every
    /// host with a GPU. Device pointers must be valid for the kernel, and its context must be
    /// current.
    pub unsafe fn launch<const N: usize>(
        self,
        stream: Stream,
        (blocks, threads): (u32, u32),
        mut parameters: [u64; N],
    ) -> Result<(), Fault> {
        let mut pointers = parameters.each_mut().map(|value| ptr::from_mut(value).cast::<c_void>());
        let (function, stream) = (self.0 as CUfunction, raw(stream));
        let (grid, block) = ((blocks, 1, 1), (threads, 1, 1));
        // SAFETY: guaranteed by the caller; the driver copies the parameters before the call returns.
        Ok(unsafe { launch_kernel(function, grid, block, 0, stream, &mut pointers) }?)
    }
}

/// The kernels of one context.
#[derive(Clone, Copy)]
pub(super) struct Kernels {
    pub flush_read: LoadedKernel,
    pub hold: LoadedKernel,
    pub empty: LoadedKernel,
    pub line_latencies: LoadedKernel,
}

/// The runtime's two modules in one context. Each is either not loaded yet, loaded, or rejected by the
/// driver.
pub(super) struct Module {
    kernels: OnceLock<Result<Kernels, Fault>>,
    /// `None` if the device cannot discard lines.
    discard: Option<OnceLock<Option<LoadedKernel>>>,
}

impl Module {
    /// Creates a module without loading anything.
    pub fn new(device: &DeviceInfo) -> Self {
        let can_discard = device.capability >= (8, 0);
        Module { kernels: OnceLock::new(), discard: can_discard.then(OnceLock::new) }
    }

    /// Returns the kernels, loading them on first use. The context must be current and the thread
    /// in relaxed capture mode.
    ///
    /// Loading a module may make the driver wait until no kernel is running, so the module that
    /// discards lines is loaded at the same time. If that fails, loading is tried again when the
    /// module is needed.
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

    /// Returns the kernel that discards lines, if the device supports it and the driver can load
    /// it. The context must be current and the thread in relaxed capture mode.
    pub fn discard(&self) -> Option<LoadedKernel> {
        *self.discard.as_ref()?.get_or_init(|| load_discard().ok())
    }

    pub fn warning(&self) -> Option<String> {
        let fault = self.kernels.get()?.err()?;
        Some(format!(
            "gpu-time's kernels could not be loaded ({fault}): `cold` and `sleep` were left out"
        ))
    }
}

fn load_discard() -> Result<LoadedKernel, Fault> {
    load(gpu_time_kernels::PTX_SM_80)?(gpu_time_kernels::DISCARD)
}

/// Loads a module and returns a function that looks up its kernels.
fn load(ptx: &CStr) -> Result<impl Fn(&CStr) -> Result<LoadedKernel, Fault>, Fault> {
    // SAFETY: the image is NUL-terminated PTX.
    let module = unsafe { module::load_data(ptx.as_ptr().cast()) }?;
    Ok(move |name: &CStr| {
        // SAFETY: the module was just loaded.
        let function = unsafe { module::get_function(module, name.to_owned()) }?;
        Ok(LoadedKernel(function as usize))
    })
}
