//! Colours of functions, which the bars of device time and the call tree share.

use std::collections::HashMap;

use crate::own_times::OwnTime;
use crate::{Node, Source};

/// The number of functions with a colour of their own.
pub const MAX_FUNCTIONS: usize = 7;

/// The stylesheet class of every other function.
pub const OTHERS: &str = "c7";

/// The stylesheet class of the work of helper threads.
pub const HELPERS: &str = "helper-threads";

/// The stylesheet classes of the work that only phases found.
pub const NOT_ANNOTATED: &str = "not-annotated";
pub const NOT_TIMED: &str = "not-timed";

/// The functions with the most GPU time, in order, each with its stylesheet class.
pub struct Colours<'a>(HashMap<&'a str, String>);

impl<'a> Colours<'a> {
    /// Gives colours to the functions with these own times, longest first.
    pub fn of(longest: &[OwnTime<'a>]) -> Colours<'a> {
        let functions = longest.iter().filter(|time| !time.is_of_helpers);
        let classes = functions.take(MAX_FUNCTIONS).enumerate();
        Colours(classes.map(|(at, &OwnTime { name, .. })| (name, format!("c{at}"))).collect())
    }

    /// Returns the stylesheet class of a function.
    pub fn class(&self, name: &str) -> &str {
        self.0.get(name).map_or(OTHERS, String::as_str)
    }

    /// Returns the stylesheet class of a path.
    pub fn of_path(&self, node: &Node) -> &str {
        match node.source {
            Source::Windows if node.is_not_timed() => NOT_TIMED,
            Source::Windows => NOT_ANNOTATED,
            _ if node.is_of_helpers() => HELPERS,
            _ => self.class(&node.name),
        }
    }
}
