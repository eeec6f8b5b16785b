//! Conversions between driver types and runtime types.

use cudarc::driver::DriverError;
use cudarc::driver::sys::{CUresult, CUstream};

use crate::gpu::Fault;
use crate::types::handles::Stream;

/// Converts a driver result.
pub(super) fn check(result: CUresult) -> Result<(), Fault> {
    Ok(result.result()?)
}

impl From<DriverError> for Fault {
    fn from(DriverError(result): DriverError) -> Fault {
        match result {
            CUresult::CUDA_ERROR_DEINITIALIZED | CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED => {
                Fault::ContextGone
            }
            // After these errors, every call in the context returns the same error.
            CUresult::CUDA_ERROR_ECC_UNCORRECTABLE
            | CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
            | CUresult::CUDA_ERROR_LAUNCH_TIMEOUT
            | CUresult::CUDA_ERROR_ASSERT
            | CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR
            | CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION
            | CUresult::CUDA_ERROR_MISALIGNED_ADDRESS
            | CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE
            | CUresult::CUDA_ERROR_INVALID_PC
            | CUresult::CUDA_ERROR_LAUNCH_FAILED => Fault::Sticky,
            code => Fault::Code(code as u32),
        }
    }
}

/// Returns the driver's handle for a stream.
pub(super) fn raw(stream: Stream) -> CUstream {
    stream.0 as CUstream
}
