//! The amount of detail in the table.

use crate::kinds::named;

named! {
    /// The amount of detail in the table.
    #[derive(Default)]
    pub enum Detail {
        /// As much as fits on a screen: all functions, details of the largest, and the notes that ask
        /// for something to be done.
        #[default]
        Brief = "brief",
        /// All notes, with the meaning of each word, and all details.
        All = "all",
    }
}

impl Detail {
    /// The valid values, in a form that completes a sentence ending in "expected".
    pub const EXPECTED: &str = "`brief` or `all`";

    /// Parses the value of `GPU_TIME_NOTES`.
    pub fn parse(text: &str) -> Option<Detail> {
        Detail::ALL.into_iter().find(|detail| detail.name() == text)
    }
}
