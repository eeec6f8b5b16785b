//! The CUDA driver: nearly all unsafe code of the project.
//!
//! Calls go through `cudarc::driver::sys`. cudarc's safe objects would take the application's errors
//! away, leave ours behind, and switch its context into multi-stream mode.

#![allow(unsafe_code)] // the C driver API is here, and nowhere else

mod calibration;
mod clock;
mod context;
mod contexts;
mod cost;
mod current;
mod device;
mod event;
mod floor;
mod flush;
mod graph;
mod hold;
mod host_clock;
mod library;
mod line_probe;
mod mapped;
mod module;
mod persisting;
mod replay;
mod retain;
mod side;
mod zeros;

pub(crate) use context::Context;
pub(crate) use contexts::{contexts, find, has_open, is_meeting, recent};
pub(crate) use device::DeviceInfo;
#[cfg(feature = "nvml")]
pub(crate) use device::{all as all_devices, in_use};
pub(crate) use graph::{Capture, NotKept, is_captured};
pub(crate) use host_clock::now_ns as monotonic_ns;
pub(crate) use library::{driver_version, now_ns, start_ns, why_unusable};
pub(crate) use replay::{Refusal, Replay, is_recording};

use cudarc::driver::sys::{CUresult, CUstream};

use crate::gpu::{Fault, Stream};

/// Turns the driver's answer into ours.
fn check(result: CUresult) -> Result<(), Fault> {
    match result {
        CUresult::CUDA_SUCCESS => Ok(()),
        CUresult::CUDA_ERROR_DEINITIALIZED | CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED => {
            Err(Fault::ContextGone)
        }
        // After these every call in the context answers with the same error.
        CUresult::CUDA_ERROR_ECC_UNCORRECTABLE
        | CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
        | CUresult::CUDA_ERROR_LAUNCH_TIMEOUT
        | CUresult::CUDA_ERROR_ASSERT
        | CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR
        | CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION
        | CUresult::CUDA_ERROR_MISALIGNED_ADDRESS
        | CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE
        | CUresult::CUDA_ERROR_INVALID_PC
        | CUresult::CUDA_ERROR_LAUNCH_FAILED => Err(Fault::Sticky),
        code => Err(Fault::Code(code as u32)),
    }
}

/// A stream as the driver knows it.
fn raw(stream: Stream) -> CUstream {
    stream.0 as CUstream
}
