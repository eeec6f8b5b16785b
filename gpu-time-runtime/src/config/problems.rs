//! Messages about invalid values, and parsing of comma-separated lists.

use crate::config::setting::Setting;

/// Collects a message for each invalid value of one source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Problems(Vec<String>);

impl Problems {
    /// Converts the result of validating `text` for the option called `name`. An error describes
    /// the valid values.
    pub fn check<T>(
        &mut self,
        name: &str,
        text: &str,
        result: Result<T, &'static str>,
    ) -> Setting<T> {
        result.map_or_else(
            |expected| {
                self.add(name, text, &format!("expected {expected}"));
                Setting::UseDefault
            },
            Setting::Value,
        )
    }

    /// Parses a comma-separated list for the option called `name`. `parse` receives a function to
    /// call with each invalid entry and the reason.
    pub fn check_list<T>(
        &mut self,
        name: &str,
        list: &str,
        parse: impl FnOnce(&str, &mut dyn FnMut(&str, String)) -> T,
    ) -> T {
        parse(list, &mut |entry, reason| self.add(name, entry, &reason))
    }

    fn add(&mut self, name: &str, value: &str, reason: &str) {
        self.0.push(format!("invalid value `{}` for `{name}`: {reason}", value.escape_debug()));
    }

    /// Returns the messages, in the order in which the values were validated.
    pub fn into_messages(self) -> Vec<String> {
        self.0
    }
}

/// Returns the entries of a comma-separated list.
pub(crate) fn entries(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|entry| !entry.is_empty())
}
