//! All calls to the CUDA driver, and the unsafe code that they need.
//!
//! Calls go through `cudarc::driver::sys`. cudarc's safe types would consume errors meant for the
//! application, leave the runtime's errors for the application to find, and switch the
//! application's context into multi-stream mode.

#![allow(unsafe_code)] // calls the C driver API

mod calibration;
mod clock;
mod context;
mod context_guard;
mod contexts;
mod cost;
mod device;
mod driver;
mod floor;
mod flush;
mod flush_buffer;
mod graph;
mod hold;
mod line_probe;
mod mapped;
mod module;
mod no_result;
mod objects;
mod persisting;
mod replay;
mod result;
mod symbols;

pub(crate) use context::Context;
#[cfg(all(feature = "kernels", feature = "nvml"))]
pub(crate) use contexts::primary;
pub(crate) use contexts::{
    contexts, find, find_existing, forget_recent, is_registering, only_device, recent,
    recent_current, release_holds,
};
pub(crate) use device::DeviceInfo;
#[cfg(feature = "kernels")]
pub(crate) use device::active as active_devices;
#[cfg(feature = "nvml")]
pub(crate) use device::{all as all_devices, in_use};
pub(crate) use graph::{Capture, KeepError, is_captured};
pub(crate) use replay::{Replay, is_recording};
pub(crate) use symbols::{driver_version, is_loaded, now_ns, start_ns, why_unusable};
