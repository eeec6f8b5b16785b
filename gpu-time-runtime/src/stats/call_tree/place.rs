//! The place of a call in the call tree.

use std::num::NonZeroU32;

/// A number that identifies a path in the tree, from 1. It never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PathId(NonZeroU32);

impl PathId {
    pub(super) fn at(index: usize) -> PathId {
        PathId(NonZeroU32::MIN.saturating_add(index as u32))
    }

    pub(super) fn index(self) -> usize {
        self.0.get() as usize - 1
    }

    /// Returns the number of the path, from 1.
    pub fn number(self) -> u32 {
        self.0.get()
    }

    /// Returns the path with this [`PathId::number`], or `None` for 0.
    pub fn numbered(number: u32) -> Option<PathId> {
        NonZeroU32::new(number).map(PathId)
    }
}

/// The place of a call that events time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub path: PathId,
    /// The path of the call with the innermost enclosing bracket on the same stream, if any.
    pub around: Option<PathId>,
}
