//! Every context that was seen, and how a call finds its own.

use std::cell::Cell;
use std::time::Instant;

use crate::base::lock::{Mutex, Rank, locked, locked_by};
use crate::cuda::context::Context;
use crate::cuda::driver::{context_of, id_of};
use crate::gpu::Fault;
use crate::types::handles::Stream;

/// Never locked during a driver call: who makes a report must not wait for one.
static CONTEXTS: Mutex<Vec<&'static Context>> = Mutex::new(Rank::Contexts, Vec::new());
/// Locked by who makes a new one.
static MEETING: Mutex<()> = Mutex::new(Rank::NewContext, ());

thread_local! {
    static RECENT: Cell<Option<&'static Context>> = const { Cell::new(None) };
}

/// Every context that was seen.
pub(crate) fn contexts() -> Vec<&'static Context> {
    locked(&CONTEXTS).clone()
}

/// The context of this handle, if it is the one that the calling thread asked for last.
#[inline]
pub(crate) fn recent(handle: usize) -> Option<&'static Context> {
    let recent = RECENT.get()?;
    (recent.handle() == handle && recent.is_still_the_same()).then_some(recent)
}

/// The calling thread's next call finds its context anew.
pub(crate) fn forget_recent() {
    RECENT.set(None);
}

/// The context of a stream. `handle` is 0 where the caller had only the stream.
pub(crate) fn find(stream: Stream, handle: usize) -> Result<&'static Context, Fault> {
    let handle = if handle == 0 { context_of(stream)? } else { handle };
    let id = id_of(handle)?;
    let context = match known(handle, id) {
        Some(context) => context,
        None => meet(handle, id)?,
    };
    // One that was not calibrated yet, because of a capture say, is to be met again.
    RECENT.set(Some(context).filter(|context| context.is_calibrated()));
    Ok(context)
}

/// Without ids a dead context cannot be told from another at its address, so it counts as gone.
fn known(handle: usize, id: Option<u64>) -> Option<&'static Context> {
    let is_it = |c: &&'static Context| c.is(handle, id) && (id.is_some() || !c.is_dead());
    locked(&CONTEXTS).iter().copied().find(is_it)
}

fn meet(handle: usize, id: Option<u64>) -> Result<&'static Context, Fault> {
    let meeting = locked(&MEETING);
    if let Some(context) = known(handle, id) {
        return Ok(context);
    }
    let same = |c: &&Context| c.handle() == handle;
    contexts().into_iter().filter(same).for_each(|c| c.give_up());
    let context: &'static Context = Box::leak(Box::new(Context::new(handle, id)?));
    locked(&CONTEXTS).push(context);
    drop(meeting);
    Ok(context)
}

/// Whether a thread is at a context that nobody knew, and does not come out of that before the deadline.
pub(crate) fn is_meeting(deadline: Instant) -> bool {
    locked_by(&MEETING, deadline).is_none()
}
