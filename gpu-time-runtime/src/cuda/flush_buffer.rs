//! The device memory that a flush reads or writes to fill the L2 with it.

use cudarc::driver::result;
use cudarc::driver::sys::{self, CUdeviceptr};
use gpu_time_kernels::{DISCARDED_LINE, FLUSH_READ_BLOCK, flush_read_grid};

use crate::cuda::result::{check, raw};
use crate::cuda::{device::DeviceInfo, module::Kernel, symbols::Symbols};
use crate::gpu::Fault;
use crate::types::handles::Stream;

/// A buffer to which only zeros are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FlushBuffer {
    address: CUdeviceptr,
    bytes: u64,
    /// A word behind the buffer, in the same allocation. The reading kernel would write to it only
    /// if it read anything but zeros.
    sink: CUdeviceptr,
    /// Blocks that fill the GPU once.
    blocks: u32,
}

impl FlushBuffer {
    /// Allocates a buffer, whose size is a multiple of a line, and enqueues its first write; the
    /// context must be current.
    pub fn allocate(
        bytes: u64,
        device: &DeviceInfo,
        own_stream: Stream,
    ) -> Result<FlushBuffer, Fault> {
        // SAFETY: the memory is written before it is read.
        let address = unsafe { result::malloc_sync(bytes as usize + 16) }?;
        // SAFETY: the allocation has this many words.
        check(unsafe {
            sys::cuMemsetD32Async(address, 0, bytes as usize / 4 + 4, raw(own_stream))
        })?;
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

    /// Returns its first `bytes` bytes, or all. 0 bytes do for the first launch of a kernel.
    pub fn first(self, bytes: u64) -> FlushBuffer {
        FlushBuffer { bytes: bytes.min(self.bytes), ..self }
    }

    /// Returns its last `bytes` bytes, or all.
    pub fn last(self, bytes: u64) -> FlushBuffer {
        let bytes = bytes.min(self.bytes);
        FlushBuffer { address: self.address + (self.bytes - bytes), bytes, ..self }
    }

    /// Enqueues a read of the whole buffer; the context must be current.
    pub fn read(self, reader: Kernel, stream: Stream) -> Result<(), Fault> {
        let parameters = [self.address, self.bytes / 16, self.sink];
        // SAFETY: the parameters of `FLUSH_READ` in their order; nothing is enqueued on a buffer
        // after it was freed.
        unsafe { reader.launch(stream, (self.blocks, FLUSH_READ_BLOCK), parameters) }
    }

    /// Enqueues a write of the whole buffer; the context must be current.
    pub fn write(self, stream: Stream) -> Result<(), Fault> {
        // SAFETY: the buffer has this many words; nothing is enqueued on a buffer after it was
        // freed.
        check(unsafe {
            sys::cuMemsetD32Async(self.address, 0, self.bytes as usize / 4, raw(stream))
        })
    }

    /// Enqueues a kernel that discards the lines of the whole buffer from the L2, without writing
    /// them back; the context must be current.
    ///
    /// After that the contents are indeterminate: most likely what is in memory, which is zeros too
    /// if they were ever written back.
    pub fn discard(self, discarder: Kernel, stream: Stream) -> Result<(), Fault> {
        let parameters = [self.address, self.bytes / DISCARDED_LINE];
        // SAFETY: the parameters of `DISCARD` in their order; allocations are aligned to lines;
        // nothing is enqueued on a buffer after it was freed.
        unsafe { discarder.launch(stream, (self.blocks, FLUSH_READ_BLOCK), parameters) }
    }

    /// Frees the whole allocation in the order of `own_stream`, which is idle; the context must be
    /// current. Does nothing if the driver could free it only by waiting for other streams.
    pub fn free(self, symbols: &Symbols, own_stream: Stream) {
        let Some(free) = symbols.free_async else { return };
        // SAFETY: the address is that of our own allocation, and nothing enqueued on other streams
        // uses it.
        let freed = check(unsafe { free(self.address, raw(own_stream)) });
        if freed.is_ok() {
            // The driver keeps memory that is not from a pool until the stream is synchronized.
            // SAFETY: the stream is our own, and idle.
            _ = unsafe { result::stream::synchronize(raw(own_stream)) };
        }
    }
}
