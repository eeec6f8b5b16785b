//! The buffer that evicts the L2.

use std::ffi::c_void;
use std::sync::OnceLock;

use cudarc::driver::sys::{self, CUdeviceptr};
use gpu_time_kernels::{FLUSH_READ_BLOCK, flush_read_grid};

use super::check;
use super::context::raw;
use super::device::DeviceInfo;
use super::module::{Kernel, Module};
use crate::gpu::{Fault, Stream};
use crate::site::Cold;

/// As much memory as the L2 holds, all zero, and the word that the flush kernel never writes.
#[derive(Default)]
pub(super) struct FlushBuffer {
    buffer: OnceLock<Result<Buffer, Fault>>,
    reader: OnceLock<Result<Kernel, Fault>>,
}

#[derive(Clone, Copy)]
struct Buffer {
    address: CUdeviceptr,
    bytes: u64,
    sink: CUdeviceptr,
    blocks: u32,
}

impl FlushBuffer {
    pub fn is_ready_for(&self, cold: Cold) -> bool {
        matches!(self.buffer.get(), Some(Ok(_)))
            && (cold == Cold::Dirty || matches!(self.reader.get(), Some(Ok(_))))
    }

    /// Allocates the buffer and loads the kernel, once; the context must be current.
    pub fn prepare(
        &self,
        cold: Cold,
        device: &DeviceInfo,
        module: &Module,
        side: Stream,
    ) -> Result<(), Fault> {
        let buffer = (*self.buffer.get_or_init(|| allocate(device, side)))?;
        if cold == Cold::Clean {
            let reader = (*self.reader.get_or_init(|| module.kernels().map(|k| k.flush_read)))?;
            // The first launch of a kernel may load it: here, and not in a user's stream.
            read(reader, Buffer { bytes: 0, ..buffer }, side)?;
        }
        Ok(())
    }

    /// Enqueues the eviction; the context must be current.
    pub fn enqueue(&self, stream: Stream, cold: Cold) -> Result<(), Fault> {
        let Some(Ok(buffer)) = self.buffer.get() else { return Err(Fault::Exhausted) };
        match cold {
            // SAFETY: the buffer has so many words and lives as long as its context.
            Cold::Dirty => check(unsafe {
                sys::cuMemsetD32Async(buffer.address, 0, buffer.bytes as usize / 4, raw(stream))
            }),
            Cold::Clean => match self.reader.get() {
                Some(Ok(reader)) => read(*reader, *buffer, stream),
                _ => Err(Fault::Exhausted),
            },
        }
    }

    pub fn bytes(&self) -> Option<u64> {
        self.buffer.get()?.as_ref().ok().map(|buffer| buffer.bytes)
    }

    pub fn warning(&self) -> Option<String> {
        let fault = self.buffer.get()?.as_ref().err()?;
        Some(format!(
            "no flush buffer could be allocated ({fault}): `cold` calls were timed as found"
        ))
    }
}

fn allocate(device: &DeviceInfo, side: Stream) -> Result<Buffer, Fault> {
    let bytes = device.l2_bytes / 16 * 16;
    if bytes == 0 {
        return Err(Fault::Exhausted);
    }
    let mut address: CUdeviceptr = 0;
    // The sink follows the buffer in the same allocation.
    // SAFETY: writes one address.
    check(unsafe { sys::cuMemAlloc_v2(&raw mut address, bytes as usize + 16) })?;
    // SAFETY: the allocation has so many words.
    check(unsafe { sys::cuMemsetD32Async(address, 0, bytes as usize / 4 + 4, raw(side)) })?;
    let blocks = flush_read_grid(device.multiprocessors, device.threads_per_multiprocessor).max(1);
    Ok(Buffer { address, bytes, sink: address + bytes, blocks })
}

fn read(reader: Kernel, buffer: Buffer, stream: Stream) -> Result<(), Fault> {
    let (mut address, mut n16, mut sink) = (buffer.address, buffer.bytes / 16, buffer.sink);
    let mut parameters: [*mut c_void; 3] =
        [(&raw mut address).cast(), (&raw mut n16).cast(), (&raw mut sink).cast()];
    // SAFETY: the parameters of `FLUSH_READ` in their order; buffer and sink live for ever.
    unsafe { reader.launch(stream, (buffer.blocks, FLUSH_READ_BLOCK), &mut parameters) }
}
