//! Device memory that a flush reads or writes to fill the L2.

use cudarc::driver::result;
use cudarc::driver::sys::{self, CUdeviceptr};
use gpu_time_kernels::{DISCARDED_LINE, FLUSH_READ_BLOCK, flush_read_grid};

use crate::cuda::result::{check, raw};
use crate::cuda::{device::DeviceInfo, module::LoadedKernel, symbols::Symbols};
use crate::gpu::Fault;
use crate::types::handles::Stream;

/// A buffer of zeros. Only [`discard`](FlushBuffer::discard) leaves its contents indeterminate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FlushBuffer {
    address: CUdeviceptr,
    bytes: u64,
    /// A word after the buffer, in the same allocation. The reading kernel would write to it only
    /// if it read a non-zero value.
    sink: CUdeviceptr,
    /// The number of blocks that fill the GPU exactly once.
    blocks: u32,
}

impl FlushBuffer {
    /// Allocates a buffer and enqueues its first write. The size must be a multiple of the line
    /// size, and the context must be current.
    pub fn allocate(
        bytes: u64,
        device: &DeviceInfo,
        symbols: &Symbols,
        own_stream: Stream,
    ) -> Result<FlushBuffer, Fault> {
        // SAFETY: the memory is written before it is read.
        let address = unsafe { result::malloc_sync(bytes as usize + 16) }?;
        let blocks =
            flush_read_grid(device.multiprocessors, device.threads_per_multiprocessor).max(1);
        let buffer = FlushBuffer { address, bytes, sink: address + bytes, blocks };
        // SAFETY: the allocation has this many words.
        let zeroed = check(unsafe {
            sys::cuMemsetD32Async(address, 0, bytes as usize / 4 + 4, raw(own_stream))
        });
        zeroed.inspect_err(|_| buffer.free(symbols, own_stream)).map(|()| buffer)
    }

    pub fn address(self) -> CUdeviceptr {
        self.address
    }

    pub fn bytes(self) -> u64 {
        self.bytes
    }

    /// Returns the first `bytes` bytes, or the whole buffer if it is shorter. An empty part is
    /// enough for a launch whose only purpose is to load the kernel.
    pub fn first(self, bytes: u64) -> FlushBuffer {
        FlushBuffer { bytes: bytes.min(self.bytes), ..self }
    }

    /// Returns the last `bytes` bytes, or the whole buffer if it is shorter.
    pub fn last(self, bytes: u64) -> FlushBuffer {
        let bytes = bytes.min(self.bytes);
        FlushBuffer { address: self.address + (self.bytes - bytes), bytes, ..self }
    }

    /// Enqueues a read of the whole buffer. The context must be current.
    pub fn read(self, reader: LoadedKernel, stream: Stream) -> Result<(), Fault> {
        let parameters = [self.address, self.bytes / 16, self.sink];
        // SAFETY: the parameters match `FLUSH_READ`; nothing is enqueued on a buffer after it has
        // been freed.
        unsafe { reader.launch(stream, (self.blocks, FLUSH_READ_BLOCK), parameters) }
    }

    /// Enqueues a write of the whole buffer. The context must be current.
    pub fn write(self, stream: Stream) -> Result<(), Fault> {
        // SAFETY: the buffer has this many words; nothing is enqueued on a buffer after it has been
        // freed.
        check(unsafe {
            sys::cuMemsetD32Async(self.address, 0, self.bytes as usize / 4, raw(stream))
        })
    }

    /// Enqueues a kernel that discards all of the buffer's lines from the L2, without writing them
    /// back. The context must be current.
    ///
    /// The contents are then indeterminate: most likely the values in device memory, which are also
    /// zeros if the lines were ever written back.
    pub fn discard(self, discarder: LoadedKernel, stream: Stream) -> Result<(), Fault> {
        let parameters = [self.address, self.bytes / DISCARDED_LINE];
        // SAFETY: the parameters match `DISCARD`; allocations are aligned to lines; nothing is
        // enqueued on a buffer after it has been freed.
        unsafe { discarder.launch(stream, (self.blocks, FLUSH_READ_BLOCK), parameters) }
    }

    /// Frees the whole allocation, ordered on `own_stream`, which must be idle. The context must be
    /// current. Does nothing if the driver could free it only by waiting for other streams.
    pub fn free(self, symbols: &Symbols, own_stream: Stream) {
        let Some(free) = symbols.free_async else { return };
        // SAFETY: this is the address of our own allocation, and no work on other streams uses it.
        let freed = check(unsafe { free(self.address, raw(own_stream)) });
        if freed.is_ok() {
            // The driver keeps memory that does not come from a pool until the stream is
            // synchronized.
            // SAFETY: the stream is our own, and idle.
            _ = unsafe { result::stream::synchronize(raw(own_stream)) };
        }
    }
}
