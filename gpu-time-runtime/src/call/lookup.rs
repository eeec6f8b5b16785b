//! Stepwise method lookup, with which generated code distinguishes types that it cannot name.

use std::ops::Deref;

/// One step of a method lookup, wrapped around the next one.
///
/// The compiler looks for a method on a type before it looks at the type's `Deref` target.
/// Therefore the methods of `Step<Step<&V>>` apply to special `V`, and those of `Step<&V>` to any
/// other.
pub struct Step<T>(pub(super) T);

impl<T> Deref for Step<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
