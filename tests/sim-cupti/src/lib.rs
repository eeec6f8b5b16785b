//! A stand-in for CUPTI (NVIDIA's profiling library) on the simulated driver, for testing gpu-time.
//!
#![doc = include_str!("../README.md")]
#![allow(unsafe_code)] // implements a C interface

mod abi;
mod api;
mod cbid;
mod delivery;
mod driver;
#[path = "../../sim-driver/src/elf.rs"]
mod elf;
mod fragile;
mod harness;
mod hooks;
#[path = "../../sim-driver/src/library_file.rs"]
mod library_file;
#[path = "../../sim-driver/src/observed.rs"]
mod observed;
mod process;
mod record;
mod script;
mod state;
mod version;

pub use harness::{SimCupti, Version};

/// The value of `cuptiGetTimestamp` at the virtual time 0: CUPTI's clock is the host's realtime
/// clock, and this value is in January 2027.
pub const EPOCH_NS: u64 = 1_800_000_000_000_000_000;

/// CUPTI's id of a stream minus the driver's id of that stream.
pub const STREAM_IDS: u32 = 6;
