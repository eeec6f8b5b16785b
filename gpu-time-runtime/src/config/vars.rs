//! The variables that a configuration is read from, and what was wrong with them.

use std::ffi::OsString;

use crate::config::filter::Filter;

/// What variables say, and what was wrong with that.
pub struct Vars<F> {
    get: F,
    pub complaints: Vec<String>,
}

impl<F: Fn(&str) -> Option<OsString>> Vars<F> {
    /// Variables that `get` looks up.
    pub fn new(get: F) -> Self {
        Vars { get, complaints: Vec::new() }
    }

    /// The text of a variable that is set and not empty.
    pub fn get(&mut self, name: &str) -> Option<String> {
        let value = (self.get)(name).filter(|value| !value.is_empty())?;
        match value.into_string() {
            Ok(text) => Some(text),
            Err(bytes) => {
                self.complain(name, &bytes.to_string_lossy(), "text in UTF-8");
                None
            }
        }
    }

    /// What the variable says to `parse`. Where that is nothing, the complaint says what is accepted.
    pub fn read<T>(
        &mut self,
        name: &str,
        accepted: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.get(name)?;
        let value = parse(text.trim());
        if value.is_none() {
            self.complain(name, &text, accepted);
        }
        value
    }

    /// The functions that are timed.
    pub fn filter(&mut self) -> Filter {
        let mut filter = Filter::default();
        for entry in entries(&self.get("GPU_TIME_FILTER").unwrap_or_default()) {
            if !filter.add(entry) {
                self.complain(
                    "GPU_TIME_FILTER",
                    entry,
                    "names with `*` for any text, such as `app::*` and `!app::slow`",
                );
            }
        }
        filter
    }

    fn complain(&mut self, name: &str, value: &str, accepted: &str) {
        self.complaints.push(format!(
            "`{name}`: `{}` makes no sense; accepted are {accepted}",
            value.escape_debug()
        ));
    }
}

/// The entries of a comma list.
pub fn entries(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|entry| !entry.is_empty())
}
