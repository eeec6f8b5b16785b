//! Autoderef specialisation: generated code uses method lookup to distinguish types that it cannot name.

use std::ops::Deref;

/// One step of a method lookup, wrapped around the next one.
///
/// The compiler looks for a method on a type before it looks at the type's `Deref` target.
/// Therefore methods that `Step<Step<&V>>` has for certain `V` take precedence over those that
/// `Step<&V>` has for every `V`.
pub struct Step<T>(pub(super) T);

impl<T> Deref for Step<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
