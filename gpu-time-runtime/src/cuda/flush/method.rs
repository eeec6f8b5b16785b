//! The ways to evict the L2: what each one enqueues, and which are tried for each kind of flush.

use crate::cuda::flush_buffer::FlushBuffer;
use crate::cuda::module::{Kernel, Module};
use crate::gpu::Fault;
use crate::types::{attribute::Cold, handles::Stream};

/// The size of the largest flush, in multiples of the reported L2 size.
const LARGEST: u32 = 4;
/// The size of the largest flush that writes and discards. If it does not empty the L2, reading
/// may, with no more memory traffic.
const LARGEST_DISCARD: u32 = 2;

/// A way to evict lines.
#[derive(Clone, Copy)]
pub(super) enum Method {
    /// Leaves clean lines.
    Read(Kernel),
    /// Leaves dirty lines.
    Write,
    /// Leaves no lines. Writing evicts dirty lines as easily as clean ones, and reading does not.
    WriteDiscard(Kernel),
}

impl Method {
    /// Returns the methods for this kind of flush in the order in which to try them, each with the
    /// multiple of the L2 size to read or write.
    pub fn candidates(cold: Cold, module: &Module) -> Result<Vec<(Method, u32)>, Fault> {
        let up_to = |most, method: Method| (1..=most).map(move |multiple| (method, multiple));
        Ok(match cold {
            Cold::Dirty => up_to(LARGEST, Method::Write).collect(),
            Cold::Clean => {
                let read = Method::Read(module.kernels()?.flush_read);
                let discard = module.discard().map(Method::WriteDiscard);
                let discards =
                    discard.into_iter().flat_map(|method| up_to(LARGEST_DISCARD, method));
                discards.chain(up_to(LARGEST, read)).collect()
            }
        })
    }

    /// Returns the method's name for the report.
    pub fn name(self) -> &'static str {
        match self {
            Method::Read(_) => "read",
            Method::Write => "write",
            Method::WriteDiscard(_) => "write-discard",
        }
    }

    /// Launches the kernel once on our own stream. The first launch may load the kernel, which must
    /// not happen on the user's stream. Failure is ignored, because the eviction itself will fail
    /// too.
    pub fn make_ready(self, buffer: FlushBuffer, own_stream: Stream) {
        _ = match self {
            // An earlier candidate may have discarded the zeros.
            Method::Read(reader) => {
                let zeroed = buffer.write(own_stream);
                zeroed.and_then(|()| buffer.first(0).read(reader, own_stream))
            }
            Method::Write => Ok(()),
            Method::WriteDiscard(discarder) => buffer.first(0).discard(discarder, own_stream),
        };
    }

    pub fn evict(self, buffer: FlushBuffer, stream: Stream) -> Result<(), Fault> {
        match self {
            Method::Read(reader) => buffer.read(reader, stream),
            Method::Write => buffer.write(stream),
            Method::WriteDiscard(discarder) => {
                buffer.write(stream)?;
                buffer.discard(discarder, stream)
            }
        }
    }

    /// Returns the memory that the flush should have removed from the L2 again. A line that is not
    /// in the L2 is not dirty.
    pub fn discarded(self, buffer: FlushBuffer) -> Option<FlushBuffer> {
        matches!(self, Method::WriteDiscard(_)).then_some(buffer)
    }
}
