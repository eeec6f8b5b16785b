//! Messages about invalid values, and parsing of comma-separated lists.

/// The most messages about one source.
const MAX_MESSAGES: usize = 20;
/// The number of characters of a value that a message shows.
const MAX_SHOWN: usize = 300;

/// Collects a message for each invalid value of one source, and counts those beyond [`MAX_MESSAGES`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Problems {
    messages: Vec<String>,
    more: usize,
}

impl Problems {
    /// Returns the result of validating `text` for the option called `name`, or `None` after an error,
    /// which describes the valid values.
    pub fn check<T>(
        &mut self,
        name: &str,
        text: &str,
        result: Result<T, &'static str>,
    ) -> Option<T> {
        result.map_err(|expected| self.add(name, text, &format!("expected {expected}"))).ok()
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

    /// Validates a number that the program sets. `None` restores the default.
    pub fn number<N: ToString, T>(
        &mut self,
        name: &str,
        number: Option<N>,
        parse: impl FnOnce(&str) -> Result<T, &'static str>,
    ) -> Option<T> {
        let number = number?.to_string();
        self.check(name, &number, parse(&number))
    }

    /// Validates a text that the program sets. An empty one restores the default.
    pub fn text<T>(
        &mut self,
        name: &str,
        text: &str,
        parse: impl FnOnce(&str) -> Result<T, &'static str>,
    ) -> Option<T> {
        if text.is_empty() { None } else { self.check(name, text, parse(text.trim())) }
    }

    /// Does the same for a comma-separated list.
    pub fn list<T>(
        &mut self,
        name: &str,
        list: &str,
        parse: impl FnOnce(&str, &mut dyn FnMut(&str, String)) -> T,
    ) -> Option<T> {
        (!list.is_empty()).then(|| self.check_list(name, list, parse))
    }

    fn add(&mut self, name: &str, value: &str, reason: &str) {
        self.add_message(|| format!("invalid value `{}` for `{name}`: {reason}", shown(value)));
    }

    pub fn add_message(&mut self, message: impl FnOnce() -> String) {
        if self.messages.len() < MAX_MESSAGES {
            self.messages.push(message());
        } else {
            self.more += 1;
        }
    }

    /// Returns the messages, in the order in which the values were validated.
    pub fn into_messages(self) -> Vec<String> {
        let Problems { mut messages, more } = self;
        if more > 0 {
            messages.push(format!("{more} more problems of the configuration"));
        }
        messages
    }
}

/// Returns the beginning of a text, with control characters escaped.
pub(crate) fn shown(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN).and_then(|(end, _)| text.get(..end)) {
        Some(beginning) => format!("{}…", beginning.escape_debug()),
        None => text.escape_debug().to_string(),
    }
}

/// Returns the entries of a comma-separated list.
pub(crate) fn entries(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|entry| !entry.is_empty())
}

#[cfg(test)]
mod tests {
    use crate::config::options::Options;

    #[test]
    fn many_problems_are_counted() {
        let names = (0..15_000).map(|n| format!("GPU_TIME_X{n:0>60000}"));
        let vars = names.take(500).map(|name| (name.into(), "x".into()));
        let list = "jsn:x,".repeat(400);
        let list = [
            ("GPU_TIME_REPORT".into(), list.into()),
            ("GPU_TIME_COLD".into(), "y".repeat(1 << 20).into()),
        ];
        let (_, problems) = Options::from_vars(vars.chain(list));
        assert!(problems.len() <= 21, "{}", problems.len());
        assert!(problems.last().unwrap().starts_with("881 more problems "));
        let bytes: usize = problems.iter().map(String::len).sum();
        assert!(bytes < 20_000, "{bytes}");
    }
}
