//! Questions about the driver: the context of a stream, and the id of a context.

use std::ptr;

use cudarc::driver::result::ctx;
use cudarc::driver::sys::{self, CUcontext};

use crate::cuda::result::{check, raw};
use crate::cuda::symbols::symbols;
use crate::gpu::Fault;
use crate::types::handles::Stream;

/// Returns the handle of the context that a stream belongs to.
pub(super) fn context_of(stream: Stream) -> Result<usize, Fault> {
    if stream.is_implicit() {
        let current = ctx::get_current()?.ok_or(Fault::ContextGone)?;
        return Ok(current as usize);
    }
    let mut context: CUcontext = ptr::null_mut();
    // SAFETY: the caller vouches for a raw stream; writes one pointer.
    check(unsafe { sys::cuStreamGetCtx(raw(stream), &raw mut context) })?;
    if context.is_null() { Err(Fault::ContextGone) } else { Ok(context as usize) }
}

/// Returns the id of a context, which the driver never uses again. `None` from drivers that have no
/// ids.
pub(super) fn id_of(handle: usize) -> Result<Option<u64>, Fault> {
    let symbols = symbols().map_err(|_| Fault::ContextGone)?;
    let Some(context_id) = symbols.context_id else { return Ok(None) };
    let mut id = 0;
    // SAFETY: the caller's stream belongs to this context, or did; the driver answers for a handle
    // whose context is gone with an error; writes one integer.
    check(unsafe { context_id(handle as CUcontext, &raw mut id) })?;
    Ok(Some(id))
}
