//! Questions to the driver about contexts.

use std::ptr;

use cudarc::driver::sys::{self, CUcontext};

use crate::cuda::result::{check, raw};
use crate::cuda::symbols::symbols;
use crate::gpu::Fault;
use crate::types::handles::Stream;

pub(super) fn context_of(stream: Stream) -> Result<usize, Fault> {
    let mut context: CUcontext = ptr::null_mut();
    check(if stream.is_implicit() {
        // SAFETY: writes one pointer.
        unsafe { sys::cuCtxGetCurrent(&raw mut context) }
    } else {
        // SAFETY: the caller vouches for a raw stream; writes one pointer.
        unsafe { sys::cuStreamGetCtx(raw(stream), &raw mut context) }
    })?;
    if context.is_null() { Err(Fault::ContextGone) } else { Ok(context as usize) }
}

pub(super) fn id_of(handle: usize) -> Result<Option<u64>, Fault> {
    let symbols = symbols().map_err(|_| Fault::ContextGone)?;
    let Some(context_id) = symbols.context_id else { return Ok(None) };
    let mut id = 0;
    // SAFETY: the caller's stream belongs to this context; writes one integer.
    check(unsafe { context_id(handle as CUcontext, &raw mut id) })?;
    Ok(Some(id))
}
