//! The `nvtx` module of builds without the `nvtx` feature. There are no ranges.

use crate::site::callsite::CallSite;

pub(crate) fn attach(_: bool) {}

pub(crate) enum Range {}

impl Range {
    #[inline(always)]
    pub fn begin(_: &'static CallSite) -> Option<Range> {
        None
    }

    pub fn push(&self) {
        match *self {}
    }

    pub fn pop(&self) {
        match *self {}
    }
}
