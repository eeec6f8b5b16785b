//! Device memory that is read or written as a whole to fill the L2 with it.

use std::ffi::c_void;

use cudarc::driver::sys::{self, CUdeviceptr};
use gpu_time_kernels::{DISCARDED_LINE, FLUSH_READ_BLOCK, flush_read_grid};

use crate::cuda::device::DeviceInfo;
use crate::cuda::module::Kernel;
use crate::cuda::result::check;
use crate::cuda::result::raw;
use crate::cuda::symbols::Symbols;
use crate::gpu::Fault;
use crate::types::handles::Stream;

/// A buffer in which nothing but zeros is ever written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FlushBuffer {
    address: CUdeviceptr,
    bytes: u64,
    /// The word that the reading kernel never writes: behind the buffer, in the same allocation.
    sink: CUdeviceptr,
    /// Blocks that fill the GPU once.
    blocks: u32,
}

impl FlushBuffer {
    /// Allocates so many bytes, a multiple of a line, and enqueues their first writing; the context must
    /// be current.
    pub fn allocate(bytes: u64, device: &DeviceInfo, side: Stream) -> Result<FlushBuffer, Fault> {
        let mut address: CUdeviceptr = 0;
        // SAFETY: writes one address.
        check(unsafe { sys::cuMemAlloc_v2(&raw mut address, bytes as usize + 16) })?;
        // SAFETY: the allocation has so many words.
        check(unsafe { sys::cuMemsetD32Async(address, 0, bytes as usize / 4 + 4, raw(side)) })?;
        let blocks =
            flush_read_grid(device.multiprocessors, device.threads_per_multiprocessor).max(1);
        Ok(FlushBuffer { address, bytes, sink: address + bytes, blocks })
    }

    pub fn address(self) -> CUdeviceptr {
        self.address
    }

    pub fn bytes(self) -> u64 {
        self.bytes
    }

    /// So many bytes of it, or all. None are enough for the first launch of a kernel.
    pub fn first(self, bytes: u64) -> FlushBuffer {
        FlushBuffer { bytes: bytes.min(self.bytes), ..self }
    }

    /// So many bytes at its end, or all.
    pub fn last(self, bytes: u64) -> FlushBuffer {
        let bytes = bytes.min(self.bytes);
        FlushBuffer { address: self.address + (self.bytes - bytes), bytes, ..self }
    }

    /// Enqueues a reading of all of it; the context must be current.
    pub fn read(self, reader: Kernel, stream: Stream) -> Result<(), Fault> {
        let (mut address, mut n16, mut sink) = (self.address, self.bytes / 16, self.sink);
        let mut parameters: [*mut c_void; 3] =
            [(&raw mut address).cast(), (&raw mut n16).cast(), (&raw mut sink).cast()];
        // SAFETY: the parameters of `FLUSH_READ` in their order; who frees the buffer enqueues nothing
        // on it after that.
        unsafe { reader.launch(stream, (self.blocks, FLUSH_READ_BLOCK), &mut parameters) }
    }

    /// Enqueues a writing of all of it; the context must be current.
    pub fn write(self, stream: Stream) -> Result<(), Fault> {
        // SAFETY: the buffer has so many words; who frees it enqueues nothing on it after that.
        check(unsafe {
            sys::cuMemsetD32Async(self.address, 0, self.bytes as usize / 4, raw(stream))
        })
    }

    /// Enqueues that all of it leaves the L2 and is not written back; the context must be current.
    ///
    /// What it holds is indeterminate then: most likely what memory holds, which is zeros too if they were
    /// ever written back.
    pub fn discard(self, discarder: Kernel, stream: Stream) -> Result<(), Fault> {
        let (mut address, mut lines) = (self.address, self.bytes / DISCARDED_LINE);
        let mut parameters: [*mut c_void; 2] = [(&raw mut address).cast(), (&raw mut lines).cast()];
        // SAFETY: the parameters of `DISCARD` in their order; what is allocated is aligned to lines; who
        // frees the buffer enqueues nothing on it after that.
        unsafe { discarder.launch(stream, (self.blocks, FLUSH_READ_BLOCK), &mut parameters) }
    }

    /// Gives the whole allocation back behind what `side` has to do, all of which has been done; the
    /// context must be current. Where that takes a wait for other streams it stays: nobody waits for those.
    pub fn free(self, symbols: &Symbols, side: Stream) {
        let Some(free) = symbols.free_async else { return };
        // SAFETY: the address is that of an allocation of ours, which nothing enqueued elsewhere uses.
        let freed = check(unsafe { free(self.address, raw(side)) });
        if freed.is_ok() {
            // The driver keeps what it did not take from a pool until somebody looks at the stream.
            // SAFETY: the stream is ours, and idle.
            _ = check(unsafe { sys::cuStreamSynchronize(raw(side)) });
        }
    }
}
