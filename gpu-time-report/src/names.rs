//! Labels for functions that share a name.

use std::collections::HashMap;

/// The number of functions with each name.
#[doc(hidden)]
pub struct Names<'a>(HashMap<&'a str, usize>);

impl<'a> FromIterator<&'a str> for Names<'a> {
    /// Counts the names of all functions.
    fn from_iter<I: IntoIterator<Item = &'a str>>(names: I) -> Self {
        let mut counts = HashMap::new();
        names.into_iter().for_each(|name| *counts.entry(name).or_default() += 1);
        Names(counts)
    }
}

impl Names<'_> {
    /// Returns a unique label: the name, followed by the source location if several functions share
    /// it.
    pub fn label(&self, name: &str, file: &str, line: u32) -> String {
        let is_shared = self.0.get(name).is_some_and(|count| *count > 1);
        if is_shared { format!("{name} ({file}:{line})") } else { name.to_owned() }
    }

    /// Returns `true` if any two functions share a name.
    pub(crate) fn are_shared(&self) -> bool {
        self.0.values().any(|count| *count > 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_of_a_shared_name_has_the_place() {
        let names: Names = ["f", "g", "f"].into_iter().collect();
        assert!(names.are_shared());
        assert_eq!(names.label("f", "src/a.rs", 7), "f (src/a.rs:7)");
        assert_eq!(names.label("g", "src/a.rs", 8), "g");
        assert!(!["f", "g"].into_iter().collect::<Names>().are_shared());
    }
}
