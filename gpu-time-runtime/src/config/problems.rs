//! Messages about invalid values, and the entries of comma lists.

/// The error of an option without a valid value: the default applies, whatever the next source says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct UseDefault;

/// Collects a message for each invalid value of one source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Problems(Vec<String>);

impl Problems {
    /// Takes the result of validating `text` for the option called `name`; an error says which values
    /// are valid.
    pub fn check<T>(
        &mut self,
        name: &str,
        text: &str,
        result: Result<T, &'static str>,
    ) -> Result<T, UseDefault> {
        result.map_err(|expected| {
            self.add(name, text, &format!("expected {expected}"));
            UseDefault
        })
    }

    /// Parses a comma list for the option called `name`. `parse` gets a function that takes each
    /// invalid entry and the reason.
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

    /// The messages, in the order in which the values were validated.
    pub fn into_messages(self) -> Vec<String> {
        self.0
    }
}

/// The entries of a comma list.
pub(crate) fn entries(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|entry| !entry.is_empty())
}
