//! Ranges around calls for tools such as Nsight Compute and Nsight Systems, by version 3 of the NVTX
//! protocol.
//!
//! The tool names its library in an environment variable. It is loaded once and asked to attach: it gets
//! the [tables](table) of the functions that a program may call, and stores its own in them. No library is
//! linked, and without a tool none is loaded.

#![allow(unsafe_code)] // calls the C API of the tool

mod range;
mod table;
mod tool;

pub(crate) use range::Range;
pub(crate) use tool::attach;
