//! A simulated CUDA driver in virtual time, for the tests of gpu-time.
//!
#![doc = include_str!("../README.md")]
#![allow(unsafe_code)] // it stands behind a C interface

mod api;
mod built;
mod capture;
mod code;
mod constants;
mod context;
mod elf;
mod event;
mod faults;
pub mod formula;
mod graph;
mod handle;
mod harness;
mod kernels;
mod l2;
mod memory;
mod model;
mod module;
mod process;
mod queue;
mod stream;
pub mod trace;
mod work;

pub use harness::SimDriver;
