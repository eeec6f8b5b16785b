//! The calls on a thread that were not chosen to be opened, but may contain calls that are.

use std::cell::Cell;

use crate::site::callsite::CallSite;

/// The most of them, one inside the other. No call inside further ones is opened.
const MOST: usize = 16;

/// A call that was not chosen.
#[derive(Clone, Copy)]
pub(super) struct PassedOver {
    /// The id of its site.
    pub site: u32,
    /// The probability of choosing it.
    pub share: f64,
}

thread_local! {
    static CALLS: [Cell<PassedOver>; MOST] =
        const { [const { Cell::new(PassedOver { site: 0, share: 0.0 }) }; MOST] };
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Notes that a call begins which was not chosen to be opened.
pub(crate) fn begin(site: &'static CallSite) {
    let depth = DEPTH.get();
    CALLS.with(|calls| {
        if let Some(call) = calls.get(depth) {
            call.set(PassedOver { site: site.id(), share: site.kernels_share() });
        }
    });
    DEPTH.set(depth.saturating_add(1));
}

/// Notes that the innermost of them has ended.
pub(crate) fn end() {
    DEPTH.set(DEPTH.get().saturating_sub(1));
}

/// Returns the number of such calls that have not ended.
pub(super) fn depth() -> u32 {
    DEPTH.get() as u32
}

/// Returns `true` if there are too many to know them all.
pub(super) fn are_too_many() -> bool {
    DEPTH.get() > MOST
}

/// Passes on each of them, from the outermost to the innermost.
pub(super) fn for_each(mut each: impl FnMut(PassedOver)) {
    CALLS.with(|calls| calls.iter().take(DEPTH.get()).for_each(|call| each(call.get())));
}

/// Passes on the site of each of them, from the outermost to the innermost.
#[inline]
pub(crate) fn for_each_site(mut each: impl FnMut(u32)) {
    if DEPTH.get() > 0 {
        for_each(|call| each(call.site));
    }
}
