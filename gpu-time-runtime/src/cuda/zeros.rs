//! Device memory that is all zero, and is read or written as a whole to fill the L2 with it.

use std::ffi::c_void;

use cudarc::driver::sys::{self, CUdeviceptr};
use gpu_time_kernels::{FLUSH_READ_BLOCK, flush_read_grid};

use super::check;
use super::context::raw;
use super::device::DeviceInfo;
use super::module::Kernel;
use crate::gpu::{Fault, Stream};

/// A buffer of zeros, kept for as long as its context.
#[derive(Clone, Copy)]
pub(super) struct Zeros {
    address: CUdeviceptr,
    bytes: u64,
    /// The word that the reading kernel never writes: behind the buffer, in the same allocation.
    sink: CUdeviceptr,
    /// Blocks that fill the GPU once.
    blocks: u32,
}

impl Zeros {
    /// Allocates so many bytes, a multiple of 16, and enqueues their first writing; the context must
    /// be current.
    pub fn allocate(bytes: u64, device: &DeviceInfo, side: Stream) -> Result<Zeros, Fault> {
        let mut address: CUdeviceptr = 0;
        // SAFETY: writes one address.
        check(unsafe { sys::cuMemAlloc_v2(&raw mut address, bytes as usize + 16) })?;
        // SAFETY: the allocation has so many words.
        check(unsafe { sys::cuMemsetD32Async(address, 0, bytes as usize / 4 + 4, raw(side)) })?;
        let blocks =
            flush_read_grid(device.multiprocessors, device.threads_per_multiprocessor).max(1);
        Ok(Zeros { address, bytes, sink: address + bytes, blocks })
    }

    pub fn address(self) -> CUdeviceptr {
        self.address
    }

    /// So many bytes of it, or all. None are enough for the first launch of a kernel.
    pub fn first(self, bytes: u64) -> Zeros {
        Zeros { bytes: bytes.min(self.bytes), ..self }
    }

    /// Enqueues a reading of all of it; the context must be current.
    pub fn read(self, reader: Kernel, stream: Stream) -> Result<(), Fault> {
        let (mut address, mut n16, mut sink) = (self.address, self.bytes / 16, self.sink);
        let mut parameters: [*mut c_void; 3] =
            [(&raw mut address).cast(), (&raw mut n16).cast(), (&raw mut sink).cast()];
        // SAFETY: the parameters of `FLUSH_READ` in their order; buffer and sink are never freed.
        unsafe { reader.launch(stream, (self.blocks, FLUSH_READ_BLOCK), &mut parameters) }
    }

    /// Enqueues a writing of all of it; the context must be current.
    pub fn write(self, stream: Stream) -> Result<(), Fault> {
        // SAFETY: the buffer has so many words and lives as long as its context.
        check(unsafe {
            sys::cuMemsetD32Async(self.address, 0, self.bytes as usize / 4, raw(stream))
        })
    }
}
