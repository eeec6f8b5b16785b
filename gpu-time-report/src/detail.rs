//! The amount of detail in the table.

/// The amount of detail in the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// As much as fits on a screen: all functions, details of the largest, and the notes that ask
    /// for something to be done.
    #[default]
    Brief,
    /// All notes, with the meaning of each word, and all details.
    All,
}

impl Detail {
    /// The valid values, in a form that completes a sentence ending in "expected".
    pub const EXPECTED: &str = "`brief` or `all`";

    /// Parses the value of `GPU_TIME_NOTES`.
    pub fn parse(text: &str) -> Option<Detail> {
        match text {
            "brief" => Some(Detail::Brief),
            "all" => Some(Detail::All),
            _ => None,
        }
    }
}
