//! Rules for combining the values of two reports.

/// Keeps a value only if both reports agree on it.
pub fn agree<T: PartialEq>(ours: &mut Option<T>, theirs: &Option<T>) {
    if ours != theirs {
        *ours = None;
    }
}

/// Adds a value with `add` if both reports have one, and otherwise takes the only one.
pub fn join<T>(ours: &mut Option<T>, theirs: Option<T>, add: impl FnOnce(&mut T, T)) {
    match (ours, theirs) {
        (Some(ours), Some(theirs)) => add(ours, theirs),
        (none @ None, theirs) => *none = theirs,
        (Some(_), None) => {}
    }
}
