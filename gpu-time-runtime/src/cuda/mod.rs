//! The CUDA driver: nearly all unsafe code of the project.
//!
//! Calls go through `cudarc::driver::sys`. cudarc's safe objects would take the application's errors
//! away, leave ours behind, and switch its context into multi-stream mode.

#![allow(unsafe_code)] // the C driver API is here, and nowhere else

mod blocking;
mod calibration;
mod clock;
mod context;
mod context_guard;
mod contexts;
mod cost;
mod device;
mod driver;
mod event;
mod floor;
mod flush;
mod flush_buffer;
mod graph;
mod graph_symbols;
mod hold;
mod line_probe;
mod mapped;
mod module;
mod persisting;
mod private_stream;
mod replay;
mod replay_symbols;
mod result;
mod retain;
mod stream_attribute;
mod symbols;

pub(crate) use blocking::launches_block;
pub(crate) use context::Context;
pub(crate) use contexts::{contexts, find, forget_recent, is_meeting, recent};
pub(crate) use device::DeviceInfo;
#[cfg(feature = "nvml")]
pub(crate) use device::{all as all_devices, in_use};
pub(crate) use graph::is_captured;
pub(crate) use graph_symbols::{Capture, NotKept};
pub(crate) use replay::{Refusal, Replay, is_recording};
pub(crate) use symbols::{driver_version, now_ns, start_ns, why_unusable};
