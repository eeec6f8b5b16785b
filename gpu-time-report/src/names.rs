//! What functions are called where several have one name.

use std::collections::HashMap;

/// Which names of functions are those of several.
#[doc(hidden)]
pub struct Names<'a>(HashMap<&'a str, usize>);

impl<'a> FromIterator<&'a str> for Names<'a> {
    /// The names of all functions that there are.
    fn from_iter<I: IntoIterator<Item = &'a str>>(names: I) -> Self {
        let mut counts = HashMap::new();
        names.into_iter().for_each(|name| *counts.entry(name).or_default() += 1);
        Names(counts)
    }
}

impl Names<'_> {
    /// What tells a function from all others: its name, and where several have that, its place as well.
    pub fn label(&self, name: &str, file: &str, line: u32) -> String {
        if self.is_shared(name) { format!("{name} ({file}:{line})") } else { name.to_owned() }
    }

    /// Whether any name is that of several.
    pub(crate) fn are_shared(&self) -> bool {
        self.0.values().any(|count| *count > 1)
    }

    fn is_shared(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|count| *count > 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_several_has_its_place() {
        let names: Names = ["f", "g", "f"].into_iter().collect();
        assert!(names.are_shared());
        assert_eq!(names.label("f", "src/a.rs", 7), "f (src/a.rs:7)");
        assert_eq!(names.label("g", "src/a.rs", 8), "g");
        assert!(!["f", "g"].into_iter().collect::<Names>().are_shared());
    }
}
