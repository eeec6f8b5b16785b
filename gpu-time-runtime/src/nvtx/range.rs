//! The range of one call.

use crate::base::{fork, inside, switches};
use crate::nvtx::table;
use crate::site::callsite::CallSite;

/// A call that a tool sees as a range, on the thread that runs it. Belongs to the default domain, which
/// needs no name in the filters of tools.
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

    /// Puts the range on the calling thread's stack of ranges. Does nothing in a forked child, where
    /// another thread may have held a lock of the tool.
    #[cold]
    pub fn push(&self) {
        // The allocator or a signal handler may call annotated functions while the tool works.
        let _inside = inside::enter();
        if let Some(push) = table::push().filter(|_| !fork::is_forked()) {
            // SAFETY: reads a string, which lives as long as the process.
            unsafe { push(self.0.c_name().as_ptr()) };
        }
    }

    /// Takes the innermost range from the calling thread's stack, which is this one unless calls overlap.
    #[cold]
    pub fn pop(&self) {
        let _inside = inside::enter();
        if let Some(pop) = table::pop().filter(|_| !fork::is_forked()) {
            // SAFETY: has no arguments. Without a range on the stack it does nothing.
            unsafe { pop() };
        }
    }
}
