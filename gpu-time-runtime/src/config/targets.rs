//! Report targets: renderings, and their destinations.

use std::fs;
use std::path::Path;

use crate::base::standard::Standard;
use crate::config::path_pattern::{PathPattern, quoted};
use crate::config::problems::{Problems, entries};

/// One rendering of the report, and its destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub format: Format,
    pub sink: Sink,
}

/// A rendering of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Table,
    Json,
    /// A line for each series.
    Csv,
    /// The call tree as stacks for flame graphs.
    Folded,
    #[cfg(feature = "html")]
    Html,
    /// The last calls and brackets on a time axis, as Chrome trace events.
    Trace,
}

/// A destination for a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sink {
    Standard(Standard),
    File(PathPattern),
}

impl Target {
    /// The default: the table on stderr.
    pub const TABLE: Target =
        Target { format: Format::Table, sink: Sink::Standard(Standard::Stderr) };
}

/// The valid entries, for error messages.
const ENTRIES: &str = "`table`, `table:PATH`, `json:PATH`, `csv:PATH`, `folded:PATH`, `html:PATH` (with gpu-time's \
                       feature `html`), `trace:PATH` or `none`, with `,,` for a comma in a path";

/// Parses a comma-separated list of targets. Passes each invalid entry to `invalid` with the
/// reason, and replaces it with the default target. No two of the targets have the same sink.
pub(crate) fn targets(list: &str, invalid: &mut dyn FnMut(&str, String)) -> Vec<Target> {
    let mut targets: Vec<Target> = Vec::new();
    let (mut is_none, mut is_valid) = (false, true);
    let mut reject = |entry: &str, reason: String| {
        is_valid = false;
        invalid(entry, reason);
    };
    // Paths cannot contain NUL, so it can stand for an escaped comma.
    for entry in entries(&list.replace(",,", "\0")) {
        let entry = entry.replace('\0', ",");
        if entry == "none" {
            is_none = true;
            continue;
        }
        match target(&entry) {
            Ok(target) if targets.iter().any(|other| other.sink == target.sink) => {
                reject(
                    &entry,
                    "an earlier entry goes to the same place; choose another path".to_owned(),
                );
            }
            Ok(target) => targets.push(target),
            Err(reason) => reject(&entry, reason),
        }
    }
    if is_none && !targets.is_empty() {
        reject("none", "expected no other entries beside it".to_owned());
    }
    let is_empty = targets.is_empty() && !is_none;
    if (is_empty || !is_valid) && !targets.iter().any(|target| target.sink == Target::TABLE.sink) {
        targets.push(Target::TABLE);
    }
    targets
}

/// Returns a message for each file that cannot be written because of its path, and for each unset variable in a path.
/// Does not create any directory, because the program may still do so.
pub(crate) fn doubts(targets: &[Target]) -> Vec<String> {
    let mut doubts = Problems::default();
    for target in targets {
        let Sink::File(pattern) = &target.sink else { continue };
        let path = pattern.path();
        let shown = quoted(&path);
        for name in pattern.unset_variables() {
            let name = name.escape_debug();
            doubts.add_message(|| {
                format!("`%q{{{name}}}` is empty in the path of the report, {shown}: `{name}` is not set")
            });
        }
        if let Some(why) = obstacle(&path) {
            doubts.add_message(|| format!("cannot write the report to {shown}{why}"));
        }
    }
    doubts.into_messages()
}

/// Returns the reason why a file cannot be written, if its path shows one.
fn obstacle(path: &Path) -> Option<String> {
    if path.is_dir() {
        return Some(": it is a directory".to_owned());
    }
    // Of a directory, this is the directory itself.
    let directory = path.parent()?;
    let error = fs::metadata(directory.join(".")).err()?;
    Some(format!(" yet: {}: {error}", quoted(directory)))
}

/// Parses one entry of the list.
fn target(entry: &str) -> Result<Target, String> {
    let (kind, path) =
        entry.split_once(':').map_or((entry, None), |(kind, path)| (kind, Some(path.trim_start())));
    let format = match kind {
        "table" => Format::Table,
        "json" => Format::Json,
        "csv" => Format::Csv,
        "folded" => Format::Folded,
        "trace" => Format::Trace,
        #[cfg(feature = "html")]
        "html" => Format::Html,
        _ => return Err(format!("expected {ENTRIES}")),
    };
    let sink = match path {
        Some("-" | "/dev/stdout") => Sink::Standard(Standard::Stdout),
        Some("/dev/stderr") => Sink::Standard(Standard::Stderr),
        Some(path) if !path.is_empty() => Sink::File(PathPattern::parse(path)?),
        None if format == Format::Table => Sink::Standard(Standard::Stderr),
        _ => return Err(format!("expected `{kind}:PATH`, or `{kind}:-` for stdout")),
    };
    Ok(Target { format, sink })
}
