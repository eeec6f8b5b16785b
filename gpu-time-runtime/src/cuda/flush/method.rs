//! The ways to evict the L2: what each enqueues, and which are tried for which kind of flush.

use crate::cuda::flush_buffer::FlushBuffer;
use crate::cuda::module::{Kernel, Module};
use crate::gpu::Fault;
use crate::types::attribute::Cold;
use crate::types::handles::Stream;

/// So many times the reported L2 a flush is at most.
const LARGEST: u32 = 4;
/// The same of one that writes and discards. What that does not empty, reading may: it needs no more
/// memory traffic then.
const LARGEST_DISCARD: u32 = 2;

/// How lines are evicted.
#[derive(Clone, Copy)]
pub(super) enum Method {
    /// Leaves clean lines.
    Read(Kernel),
    /// Leaves dirty ones.
    Write,
    /// Leaves none. By writing, dirty lines are evicted as easily as clean ones; by reading they are not.
    WriteDiscard(Kernel),
}

impl Method {
    /// Those of this kind of flush, each with how many times the L2 it reads or writes, in the order in
    /// which they are tried.
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

    /// As the report calls it.
    pub fn name(self) -> &'static str {
        match self {
            Method::Read(_) => "read",
            Method::Write => "write",
            Method::WriteDiscard(_) => "write-discard",
        }
    }

    /// The first launch of a kernel may load it: here, and not in a user's stream. What fails here fails
    /// again where it counts.
    pub fn make_ready(self, zeros: FlushBuffer, side: Stream) {
        _ = match self {
            // An earlier trial may have discarded them.
            Method::Read(reader) => {
                zeros.write(side).and_then(|()| zeros.first(0).read(reader, side))
            }
            Method::Write => Ok(()),
            Method::WriteDiscard(discarder) => zeros.first(0).discard(discarder, side),
        };
    }

    pub fn evict(self, zeros: FlushBuffer, stream: Stream) -> Result<(), Fault> {
        match self {
            Method::Read(reader) => zeros.read(reader, stream),
            Method::Write => zeros.write(stream),
            Method::WriteDiscard(discarder) => {
                zeros.write(stream)?;
                zeros.discard(discarder, stream)
            }
        }
    }

    /// What it should have taken out again: a line that the L2 does not hold is not dirty.
    pub fn discarded(self, zeros: FlushBuffer) -> Option<FlushBuffer> {
        matches!(self, Method::WriteDiscard(_)).then_some(zeros)
    }
}
