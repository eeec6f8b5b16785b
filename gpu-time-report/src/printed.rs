//! The marks that a report has printed.

use std::cell::RefCell;
use std::collections::BTreeSet;

use crate::marks::{ESTIMATE, SHARE, UNCERTAIN, UPPER_BOUND};
use crate::own_times::Share;

/// The marks that a report has printed, which are those that its legend explains.
#[derive(Default)]
pub struct Printed(RefCell<BTreeSet<&'static str>>);

impl Printed {
    /// Returns the mark, which the caller prints.
    pub fn print(&self, mark: &'static str) -> &'static str {
        self.0.borrow_mut().insert(mark);
        mark
    }

    /// Returns the mark for a figure that has it, and nothing for others.
    pub fn mark(&self, has: bool, mark: &'static str) -> &'static str {
        if has { self.print(mark) } else { "" }
    }

    /// Returns the mark of a figure that is only an upper bound, or nothing.
    pub fn bound(&self, is_bound: bool) -> &'static str {
        self.mark(is_bound, UPPER_BOUND)
    }

    /// Returns a share of all GPU time with its mark.
    pub fn share(&self, share: Share) -> String {
        self.print(SHARE);
        self.mark(share.is_uncertain, UNCERTAIN);
        self.mark(share.is_estimate, ESTIMATE);
        share.to_string()
    }

    /// Returns `true` if the mark was printed.
    pub fn has(&self, mark: &str) -> bool {
        self.0.borrow().contains(mark)
    }
}
