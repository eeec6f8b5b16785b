//! A stand-in for a tool that listens to NVTX ranges, for testing gpu-time.
//!
#![doc = include_str!("../README.md")]
#![allow(unsafe_code)] // implements a C interface

mod api;
mod harness;
#[path = "../../sim-driver/src/library_file.rs"]
mod library_file;

pub use harness::{Event, SimNvtx};

/// Environment variable with the path of the file for the ranges.
const VARIABLE: &str = "GPU_TIME_TEST_SIM_NVTX";
