//! The runtime's L2 flushes, launched directly.

use std::ffi::c_void;
use std::fmt;
use std::str::FromStr;

use cudarc::driver::sys::{self, CUdevice_attribute_enum as Attribute};
use cudarc::driver::{CudaFunction, CudaSlice, DevicePtr, result};
use cudarc::nvrtc::Ptx;
use gpu_time_kernels::{
    DISCARD, DISCARDED_LINE, FLUSH_READ, FLUSH_READ_BLOCK, PTX_SM_80, flush_read_grid,
};

use crate::failure::Failure;
use crate::gpu::Gpu;

/// A flush method, with its name in the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Read,
    Write,
    WriteDiscard,
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Method::Read => "read",
            Method::Write => "write",
            Method::WriteDiscard => "write-discard",
        })
    }
}

impl FromStr for Method {
    type Err = Failure;

    fn from_str(name: &str) -> Result<Method, Failure> {
        let all = [Method::Read, Method::Write, Method::WriteDiscard];
        let known = all.into_iter().find(|method| method.to_string() == name);
        known.ok_or_else(|| format!("unknown flush method `{name}`").into())
    }
}

impl Method {
    /// Returns the number of commands that a flush enqueues.
    pub fn commands(self) -> usize {
        match self {
            Method::Read | Method::Write => 1,
            Method::WriteDiscard => 2,
        }
    }
}

/// A flush with the same commands, geometry and length as the runtime's, and nothing else.
pub struct Flush {
    method: Method,
    reader: CudaFunction,
    /// The kernel that discards lines, for [`Method::WriteDiscard`].
    discarder: Option<CudaFunction>,
    blocks: u32,
    bytes: u64,
    /// Whole lines, followed by one word that stays 0.
    buffer: CudaSlice<u64>,
}

impl Flush {
    /// Prepares a flush of `bytes` bytes, rounded down to whole lines.
    ///
    /// # Errors
    /// A driver call fails, or the device does not support the method.
    pub fn new(gpu: &Gpu, method: Method, bytes: u64) -> Result<Flush, Failure> {
        let attribute = |attribute| -> Result<u32, Failure> {
            Ok(gpu.context.attribute(attribute)?.try_into()?)
        };
        let multiprocessors = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        let threads = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?;
        let discarder = match method {
            Method::WriteDiscard if gpu.context.compute_capability()? < (8, 0) => {
                return Err("discarding requires compute capability 8.0".into());
            }
            Method::WriteDiscard => {
                let module = gpu.context.load_module(Ptx::from_src(PTX_SM_80.to_str()?))?;
                Some(module.load_function(DISCARD.to_str()?)?)
            }
            Method::Read | Method::Write => None,
        };
        let bytes = bytes / DISCARDED_LINE * DISCARDED_LINE;
        Ok(Flush {
            method,
            reader: gpu.runtime_kernel(FLUSH_READ)?,
            discarder,
            blocks: flush_read_grid(multiprocessors, threads),
            bytes,
            buffer: gpu.stream.alloc_zeros(usize::try_from(bytes)? / 8 + 1)?,
        })
    }

    pub fn method(&self) -> Method {
        self.method
    }

    /// Returns the address of the buffer.
    pub fn address(&self, gpu: &Gpu) -> u64 {
        self.buffer.device_ptr(&gpu.stream).0
    }

    /// Returns the length of the buffer.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the address of a word that is always 0.
    pub fn zero(&self, gpu: &Gpu) -> u64 {
        self.address(gpu) + self.bytes
    }

    /// Enqueues the flush.
    pub fn launch(&self, gpu: &Gpu) -> Result<(), Failure> {
        let (mut address, mut sink) = (self.address(gpu), self.zero(gpu));
        if self.method == Method::Read {
            let mut n16 = self.bytes / 16;
            let mut parameters: [*mut c_void; 3] =
                [(&raw mut address).cast(), (&raw mut n16).cast(), (&raw mut sink).cast()];
            // SAFETY: the parameters match `FLUSH_READ`, which reads `n16` units and writes
            // nothing, because all of them are 0.
            return unsafe { self.kernel(gpu, &self.reader, &mut parameters) };
        }
        let words = usize::try_from(self.bytes)? / 4;
        // SAFETY: the buffer has at least `words` words.
        unsafe { sys::cuMemsetD32Async(address, 0, words, gpu.stream.cu_stream()) }.result()?;
        let Some(discarder) = &self.discarder else { return Ok(()) };
        let mut lines = self.bytes / DISCARDED_LINE;
        let mut parameters: [*mut c_void; 2] = [(&raw mut address).cast(), (&raw mut lines).cast()];
        // SAFETY: the parameters match `DISCARD`, and the buffer has `lines` lines.
        unsafe { self.kernel(gpu, discarder, &mut parameters) }
    }

    /// Launches one of the flush's kernels.
    ///
    /// # Safety
    ///
    /// The parameters must match the kernel.
    unsafe fn kernel(
        &self,
        gpu: &Gpu,
        kernel: &CudaFunction,
        parameters: &mut [*mut c_void],
    ) -> Result<(), Failure> {
        let (grid, block) = ((self.blocks, 1, 1), (FLUSH_READ_BLOCK, 1, 1));
        let (kernel, stream) = (kernel.cu_function(), gpu.stream.cu_stream());
        // SAFETY: the caller guarantees that the parameters match.
        Ok(unsafe { result::launch_kernel(kernel, grid, block, 0, stream, parameters) }?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn method_names_round_trip() {
        for method in [Method::Read, Method::Write, Method::WriteDiscard] {
            assert_eq!(method.to_string().parse::<Method>().unwrap(), method);
        }
        let why = "readd".parse::<Method>().unwrap_err().to_string();
        assert!(why.ends_with(" method `readd`"), "{why}");
    }
}
