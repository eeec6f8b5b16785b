//! A simulated NVML (NVIDIA's management library) with scripted results, for testing gpu-time.
//!
#![doc = include_str!("../README.md")]
#![allow(unsafe_code)] // implements a C interface

mod api;
mod device;
mod harness;
#[path = "../../sim-driver/src/library_file.rs"]
mod library_file;
mod script;

pub use harness::SimNvml;
pub use script::{Process, Script, ScriptedDevice, Values};
