//! The calls running on a thread that were not chosen to be opened, but may contain calls that are.

use std::cell::Cell;

use crate::record::opened::permission::{self, Permission};
use crate::site::callsite::CallSite;

/// The maximum number of nested calls. If there are more, no call inside them is opened.
const MAX_DEPTH: usize = 16;

/// A call that was not chosen.
#[derive(Clone, Copy)]
pub(super) struct PassedOver {
    /// The id of its site.
    pub site: u32,
    /// The probability of choosing it: 0 while the budget does not permit that.
    pub share: f64,
}

thread_local! {
    static CALLS: [Cell<PassedOver>; MAX_DEPTH] =
        const { [const { Cell::new(PassedOver { site: 0, share: 0.0 }) }; MAX_DEPTH] };
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Notes the beginning of a call that was not chosen to be opened.
pub(crate) fn begin(site: &'static CallSite) {
    let depth = DEPTH.get();
    CALLS.with(|calls| {
        if let Some(call) = calls.get(depth) {
            let may_open = permission::decided() == Permission::Granted;
            let share = if may_open { site.kernels_share() } else { 0.0 };
            call.set(PassedOver { site: site.id(), share });
        }
    });
    DEPTH.set(depth.saturating_add(1));
}

/// Notes the end of the innermost call that was not chosen.
pub(crate) fn end() {
    DEPTH.set(DEPTH.get().saturating_sub(1));
}

/// Returns the number of calls that were not chosen and have not ended.
pub(super) fn depth() -> u32 {
    DEPTH.get() as u32
}

/// Returns `true` if the calls are nested too deeply for all of them to be known.
pub(super) fn are_too_many() -> bool {
    DEPTH.get() > MAX_DEPTH
}

/// Calls `each` with the calls of this thread, from the outermost to the innermost. Leaves out those
/// nested deeper than [`MAX_DEPTH`].
pub(super) fn for_each(mut each: impl FnMut(PassedOver)) {
    CALLS.with(|calls| calls.iter().take(DEPTH.get()).for_each(|call| each(call.get())));
}

/// Like [`for_each`], with the id of each call's site.
#[inline]
pub(crate) fn for_each_site(mut each: impl FnMut(u32)) {
    if DEPTH.get() > 0 {
        for_each(|call| each(call.site));
    }
}
