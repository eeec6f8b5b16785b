//! Host memory of ours that the GPU reads and writes.

use std::ffi::c_void;
use std::ptr;

use cudarc::driver::sys::{
    self, CU_MEMHOSTREGISTER_DEVICEMAP, CU_MEMHOSTREGISTER_PORTABLE, CUdeviceptr,
};

use crate::cuda::result::check;
use crate::gpu::Fault;

/// Maps words that are touched through atomics only, and answers where the GPU finds them; the context
/// must be current.
///
/// The memory is ours and not the driver's, because the driver takes its own away when the context
/// goes, and we may look at it after that. The driver locks whole pages, so `T` should fill its own.
pub(super) fn map<T: Sync>(words: &'static T) -> Result<CUdeviceptr, Fault> {
    let host = ptr::from_ref(words).cast_mut().cast::<c_void>();
    let flags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
    // SAFETY: the memory has so many bytes, is never freed, and is touched through atomics only.
    check(unsafe { sys::cuMemHostRegister_v2(host, size_of::<T>(), flags) })?;
    let mut address: CUdeviceptr = 0;
    // SAFETY: `host` was registered as mapped memory; writes one address.
    check(unsafe { sys::cuMemHostGetDevicePointer_v2(&raw mut address, host, 0) })?;
    Ok(address)
}
