//! NVTX ranges around calls, for tools such as Nsight Compute and Nsight Systems. Implements version 3 of
//! the NVTX protocol.
//!
//! The tool names its library in an environment variable. The runtime loads this library once and asks it
//! to attach: the library gets [tables](table) of the functions that a program may call, and stores
//! pointers to its own functions in them. No library is linked, and without a tool none is loaded.

#![allow(unsafe_code)] // calls the C API of the tool

mod range;
mod table;
mod tool;

pub(crate) use range::Range;
pub(crate) use tool::attach;
