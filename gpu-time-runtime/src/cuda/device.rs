//! What the driver says of a device.

use std::ffi::{CStr, c_char, c_int};

use cudarc::driver::sys::{self, CUdevice_attribute};

use super::check;
use crate::gpu::Fault;

/// A device as the report describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeviceInfo {
    pub ordinal: u32,
    /// Empty where the driver would not say.
    pub name: String,
    /// 0 where the driver would not say.
    pub l2_bytes: u64,
    pub multiprocessors: u32,
    pub threads_per_multiprocessor: u32,
    /// Compute capability, major and minor; (0, 0) where the driver would not say.
    pub capability: (u32, u32),
}

impl DeviceInfo {
    /// Asks the driver about the device of the current context.
    pub(super) fn of_current() -> Result<DeviceInfo, Fault> {
        let mut ordinal: c_int = 0;
        // SAFETY: writes one integer.
        check(unsafe { sys::cuCtxGetDevice(&raw mut ordinal) })?;
        let mut name = [0 as c_char; 256];
        // SAFETY: writes at most 256 characters, the last one a NUL.
        let named =
            check(unsafe { sys::cuDeviceGetName(name.as_mut_ptr(), name.len() as c_int, ordinal) });
        let name = match named {
            // SAFETY: the driver has terminated the string within the buffer.
            Ok(()) => unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned(),
            Err(_) => String::new(),
        };
        let attribute = |attribute| {
            let mut value: c_int = 0;
            // SAFETY: writes one integer.
            check(unsafe { sys::cuDeviceGetAttribute(&raw mut value, attribute, ordinal) })
                .map_or(0, |()| u32::try_from(value).unwrap_or(0))
        };
        use CUdevice_attribute as A;
        Ok(DeviceInfo {
            ordinal: u32::try_from(ordinal).unwrap_or(0),
            name,
            l2_bytes: u64::from(attribute(A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)),
            multiprocessors: attribute(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
            threads_per_multiprocessor: attribute(
                A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
            ),
            capability: (
                attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
                attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
            ),
        })
    }
}
