//! A stand-in for NVIDIA's management library, for the tests of gpu-time.
//!
#![doc = include_str!("../README.md")]
#![allow(unsafe_code)] // it stands behind a C interface

mod api;
#[path = "../../sim-driver/src/built.rs"]
mod built;
mod device;
mod harness;
mod script;

pub use harness::SimNvml;
pub use script::{Process, Script, ScriptedDevice, Values};
