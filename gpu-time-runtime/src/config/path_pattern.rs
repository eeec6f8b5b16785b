//! The paths of report files, with placeholders.

use std::ffi::OsString;
use std::path::{self, Path, PathBuf};

use crate::base::environment;

/// The path of a report file, as it was given. Its placeholders are filled in for each report, because a process that
/// was forked has another id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathPattern {
    /// The directory for relative paths, because the program may change its own before it writes the report.
    directory: PathBuf,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    /// `%p`
    Process,
    /// `%h`
    Host,
    /// `%q{NAME}`
    Variable(String),
}

/// The placeholders, for error messages.
const PLACEHOLDERS: &str = "`%p` for the process id, `%h` for the host, `%q{NAME}` for an environment variable or \
                            `%%` for a percent sign";

impl PathPattern {
    /// Parses a path, which is relative to this directory.
    ///
    /// # Errors
    ///
    /// A message that names an unknown placeholder.
    pub fn parse(path: &str, directory: &Path) -> Result<PathPattern, String> {
        let mut parts = Vec::new();
        let mut rest = path;
        while let Some((text, placeholder)) = rest.split_once('%') {
            let unknown = || {
                let name: String =
                    placeholder.chars().take(1).flat_map(char::escape_debug).collect();
                format!("unknown `%{name}`: expected {PLACEHOLDERS}")
            };
            let (part, after) = Part::first(placeholder).ok_or_else(unknown)?;
            parts.extend([Part::Text(text.to_owned()), part]);
            rest = after;
        }
        parts.push(Part::Text(rest.to_owned()));
        Ok(PathPattern { directory: directory.to_owned(), parts })
    }

    /// Returns the path for a report of this process.
    pub fn path(&self) -> PathBuf {
        let path: OsString = self.parts.iter().map(Part::value).collect();
        let path = self.directory.join(path);
        path::absolute(&path).unwrap_or(path)
    }

    /// Returns `true` if every process has a path of its own, at least on its host.
    pub fn names_process(&self) -> bool {
        self.parts.contains(&Part::Process)
    }

    /// Returns the environment variables that are not set.
    pub fn unset_variables(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Variable(name) if environment::var(name).is_none() => Some(&**name),
            _ => None,
        })
    }
}

impl Part {
    /// Parses the placeholder whose `%` precedes this text. Also returns the text after it.
    fn first(text: &str) -> Option<(Part, &str)> {
        let simple = [("p", Part::Process), ("h", Part::Host), ("%", Part::Text("%".to_owned()))];
        for (name, part) in simple {
            if let Some(after) = text.strip_prefix(name) {
                return Some((part, after));
            }
        }
        let (name, after) = text.strip_prefix("q{")?.split_once('}')?;
        Some((Part::Variable(name.to_owned()), after))
    }

    fn value(&self) -> OsString {
        match self {
            Part::Text(text) => text.into(),
            Part::Process => std::process::id().to_string().into(),
            Part::Host => environment::host().unwrap_or_default().into(),
            Part::Variable(name) => environment::var(name).unwrap_or_default(),
        }
    }
}

/// Returns a path for messages.
pub(crate) fn quoted(path: &Path) -> String {
    format!("`{}`", path.to_string_lossy().escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled_in() {
        let path = |text: &str| PathPattern::parse(text, Path::new("/")).unwrap().path();
        let (id, host) = (std::process::id(), environment::host().unwrap());
        assert_eq!(path("/a/%p/r-%p"), PathBuf::from(format!("/a/{id}/r-{id}")));
        assert_eq!(path("/a/%h-%%p%%"), PathBuf::from(format!("/a/{host}-%p%")));
        let package = env!("CARGO_PKG_NAME");
        assert_eq!(path("/r-%q{CARGO_PKG_NAME}.json"), PathBuf::from(format!("/r-{package}.json")));
        assert_eq!(path("/r-%q{GPU_TIME_TEST_UNSET}.json"), PathBuf::from("/r-.json"));
    }

    #[test]
    fn only_text_is_searched_for_placeholders() {
        let relative = |path: &str| PathPattern::parse(path, Path::new("/100%p")).unwrap();
        assert_eq!(relative("r-%p").path().parent(), Some(Path::new("/100%p")));
        assert!(relative("r-%p").names_process() && !relative("%%p").names_process());
    }
}
