//! The methods of evicting the L2: the work that each one enqueues, and the candidates for each
//! kind of flush.

use crate::cuda::flush_buffer::FlushBuffer;
use crate::cuda::module::{LoadedKernel, Module};
use crate::gpu::Fault;
use crate::types::{attribute::Cold, handles::Stream};

/// The size of the largest flush, in multiples of the reported L2 size.
const LARGEST: u32 = 4;
/// The size of the largest flush that writes and discards. If it does not empty the L2, a larger
/// one that only reads may, without more memory traffic.
const LARGEST_DISCARD: u32 = 2;

/// A method of evicting all lines from the L2.
#[derive(Clone, Copy)]
pub(super) enum Method {
    /// Reads the buffer. Leaves clean lines.
    Read(LoadedKernel),
    /// Writes the buffer. Leaves dirty lines.
    Write,
    /// Writes the buffer, then discards its lines. Leaves hardly any lines. Writing evicts dirty
    /// lines as easily as clean ones; reading does not.
    WriteDiscard(LoadedKernel),
}

impl Method {
    /// Returns the methods for this kind of flush, in the order in which to try them. Each comes
    /// with its buffer size, as a multiple of the L2 size.
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

    /// Launches the method's kernel once on the runtime's own stream. The first launch may load the
    /// kernel, which must not happen on the user's stream. Failure is ignored, because the eviction
    /// itself will fail too.
    pub fn make_ready(self, buffer: FlushBuffer, own_stream: Stream) {
        _ = match self {
            // The reading kernel needs zeros, which an earlier candidate may have discarded.
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

    /// Returns the memory whose lines the flush writes and then discards, if it does so. If these
    /// lines are no longer in the L2, the flush has left no dirty lines.
    pub fn discarded(self, buffer: FlushBuffer) -> Option<FlushBuffer> {
        matches!(self, Method::WriteDiscard(_)).then_some(buffer)
    }
}
