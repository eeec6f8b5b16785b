//! Method lookup in steps: how generated code tells apart types that it cannot name.

use std::ops::Deref;

/// One step of a method lookup, around the next one.
///
/// The compiler looks a method up in a type before it looks in the type that it dereferences to. So
/// the methods of `Step<Step<&V>>` are for special `V`, and those of `Step<&V>` are for any other.
pub struct Step<T>(pub(super) T);

impl<T> Deref for Step<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
