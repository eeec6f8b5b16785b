//! The calls running on a thread that were not chosen to be opened, but may contain calls that are.

use std::cell::Cell;

use crate::record::opened::depth::{CallDepth, DepthAround};
use crate::site::callsite::CallSite;

/// The maximum number of nested calls. If there are more, no call inside them is opened.
pub(super) const MAX_DEPTH: usize = 16;

/// A call that was not chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PassedOver {
    /// The id of its site.
    pub(super) site: u32,
    /// The probability of choosing it.
    pub(super) share: f64,
}

thread_local! {
    static CALLS: [Cell<PassedOver>; MAX_DEPTH] =
        const { [const { Cell::new(PassedOver { site: 0, share: 0.0 }) }; MAX_DEPTH] };
}

impl PassedOver {
    /// Describes a call of this site that was not chosen just now.
    pub fn of(site: &'static CallSite) -> PassedOver {
        PassedOver { site: site.id(), share: site.kernels_share() }
    }

    /// Notes that the call runs on this thread until [`DepthAround::leave`].
    pub fn enter(self, around: &DepthAround) {
        around.enter(|depth| {
            CALLS.with(|calls| {
                if let Some(call) = calls.get(depth.passed_over as usize) {
                    call.set(self);
                }
            });
            depth.passed_over = depth.passed_over.saturating_add(1);
        });
    }
}

/// Returns the number of calls on this thread.
pub(super) fn depth() -> usize {
    CallDepth::current().passed_over as usize
}

/// Returns `true` if the calls are nested too deeply for all of them to be known.
pub(super) fn are_too_many() -> bool {
    depth() > MAX_DEPTH
}

/// Calls `each` with the calls of this thread, from the outermost to the innermost. Leaves out those
/// nested deeper than [`MAX_DEPTH`].
pub(super) fn for_each(mut each: impl FnMut(PassedOver)) {
    CALLS.with(|calls| calls.iter().take(depth()).for_each(|call| each(call.get())));
}

/// Like [`for_each`], with the id of each call's site.
#[inline]
pub(crate) fn for_each_site(mut each: impl FnMut(u32)) {
    if depth() > 0 {
        for_each(|call| each(call.site));
    }
}
