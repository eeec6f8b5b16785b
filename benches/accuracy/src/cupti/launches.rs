//! A callback at the beginning and the end of every launch.

use std::ffi::c_void;
use std::ptr::null_mut;

use libloading::Library;

use super::status::Status;
use crate::failure::Failure;

/// `CUPTI_CB_DOMAIN_DRIVER_API`.
const DRIVER_API: u32 = 1;
/// `CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel`.
const LAUNCH_KERNEL: u32 = 307;

type Subscriber = *mut c_void;
type Callback = unsafe extern "C" fn(*mut c_void, u32, u32, *const c_void);
type Subscribe = unsafe extern "C" fn(*mut Subscriber, Callback, *mut c_void) -> Status;
type EnableCallback = unsafe extern "C" fn(u32, Subscriber, u32, u32) -> Status;

/// CUPTI's functions for callbacks.
pub(super) struct CallbackFunctions {
    subscribe: Subscribe,
    enable_callback: EnableCallback,
}

impl CallbackFunctions {
    /// Finds the functions in the library.
    ///
    /// # Errors
    /// The library lacks one.
    pub fn of(library: &'static Library) -> Result<CallbackFunctions, Failure> {
        // SAFETY: the functions have these types in every CUPTI since 9.
        unsafe {
            Ok(CallbackFunctions {
                subscribe: *library.get(b"cuptiSubscribe")?,
                enable_callback: *library.get(b"cuptiEnableCallback")?,
            })
        }
    }

    /// Subscribes with a callback for `cuLaunchKernel`, and switches it on for good. `check` turns a status into a
    /// result.
    ///
    /// # Errors
    /// CUPTI refuses, as it does for a second subscriber.
    pub fn call_back(&self, check: impl Fn(Status) -> Result<(), Failure>) -> Result<(), Failure> {
        let mut subscriber = null_mut();
        // SAFETY: the callback lives as long as the process, and ignores the user pointer.
        check(unsafe { (self.subscribe)(&raw mut subscriber, on_call, null_mut()) })?;
        // SAFETY: the subscriber is valid.
        check(unsafe { (self.enable_callback)(1, subscriber, DRIVER_API, LAUNCH_KERNEL) })
    }
}

/// Does nothing.
unsafe extern "C" fn on_call(_: *mut c_void, _: u32, _: u32, _: *const c_void) {}
