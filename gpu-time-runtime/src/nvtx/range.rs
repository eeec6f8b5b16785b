//! The NVTX range of one call.

use crate::base::{fork, inside, switches};
use crate::nvtx::table;
use crate::site::callsite::CallSite;

/// A call that a tool sees as a range on the thread that runs it. The range belongs to the default
/// domain, so filters of tools need not name a domain.
pub(crate) struct Range(&'static CallSite);

impl Range {
    /// Begins the range of a call, if a tool listens.
    #[inline(always)]
    pub fn begin(site: &'static CallSite) -> Option<Range> {
        switches::is_listening().then(|| {
            let range = Range(site);
            range.push();
            range
        })
    }

    /// Pushes the range onto the calling thread's stack of ranges. Does nothing in a forked child, where
    /// a lock of the tool may be held forever.
    #[cold]
    pub fn push(&self) {
        // The allocator or a signal handler may call annotated functions while the tool works.
        let _inside = inside::enter();
        if let Some(push) = table::push().filter(|_| !fork::is_forked()) {
            // SAFETY: reads a string, which lives as long as the process.
            unsafe { push(self.0.c_name().as_ptr()) };
        }
    }

    /// Pops the innermost range from the calling thread's stack. It is this one, unless calls overlap.
    #[cold]
    pub fn pop(&self) {
        let _inside = inside::enter();
        if let Some(pop) = table::pop().filter(|_| !fork::is_forked()) {
            // SAFETY: takes no arguments, and does nothing if the stack is empty.
            unsafe { pop() };
        }
    }
}
