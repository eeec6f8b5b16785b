//! The function to look at first.

use std::fmt;

/// The function to look at first, and why. Displayed as a sentence.
pub struct First<'a> {
    pub name: &'a str,
    pub why: String,
    /// The time that the reason is about: waits, host time or GPU time.
    pub ns: f64,
    /// Only the first of the functions.
    pub follows_outside: bool,
}

impl<'a> First<'a> {
    pub fn new(name: &'a str, why: String, ns: f64) -> First<'a> {
        First { name, why, ns, follows_outside: false }
    }

    /// Returns what precedes the name, and what follows it.
    pub fn around_name(&self) -> [String; 2] {
        let before = if self.follows_outside { "Of the functions, look at " } else { "Look at " };
        [before.to_owned(), format!(" first: {}.", self.why)]
    }
}

impl fmt::Display for First<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [before, after] = self.around_name();
        write!(f, "{before}{}{after}", self.name)
    }
}
