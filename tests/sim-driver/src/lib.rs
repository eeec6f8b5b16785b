//! A simulated CUDA driver in virtual time, for testing gpu-time.
//!
#![doc = include_str!("../README.md")]
#![allow(unsafe_code)] // implements a C interface

mod api;
mod code;
mod constants;
mod elf;
mod faults;
pub mod formula;
mod handle;
mod harness;
mod kernels;
mod l2;
mod library_file;
mod memory;
mod model;
mod object;
mod observed;
mod observer;
mod process;
pub mod trace;

pub use harness::SimDriver;
