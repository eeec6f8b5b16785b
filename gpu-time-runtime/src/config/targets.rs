//! Report targets: renderings, and their destinations.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::config::path_pattern::{PathPattern, quoted};
use crate::config::problems::entries;

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
    Stderr,
    Stdout,
    File(PathPattern),
}

impl Target {
    /// The default: the table on stderr.
    pub const TABLE: Target = Target { format: Format::Table, sink: Sink::Stderr };
}

/// The valid entries, for error messages.
const ENTRIES: &str = if cfg!(feature = "html") {
    "`table`, `table:PATH`, `json:PATH`, `csv:PATH`, `folded:PATH`, `html:PATH`, `trace:PATH` or `none`"
} else {
    "`table`, `table:PATH`, `json:PATH`, `csv:PATH`, `folded:PATH`, `trace:PATH` or `none`"
};

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
            Ok(target) if targets.iter().any(|other| is_same(&other.sink, &target.sink)) => {
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
    if (is_empty || !is_valid) && !targets.iter().any(|target| target.sink == Sink::Stderr) {
        targets.push(Target::TABLE);
    }
    targets
}

/// Returns a message for each file that cannot be written because its directory is missing, or because
/// the path leads through a file or to a directory, and for each unset variable in a path. Does not create any
/// directory, because the program may still do so.
pub(crate) fn doubts(targets: &[Target]) -> Vec<String> {
    let mut doubts = Vec::new();
    for target in targets {
        let Sink::File(pattern) = &target.sink else { continue };
        let path = pattern.path();
        doubts.extend(pattern.unset_variables().map(|name| {
            let (name, path) = (name.escape_debug(), quoted(&path));
            format!(
                "`%q{{{name}}}` is empty in the path of the report, {path}: `{name}` is not set"
            )
        }));
        doubts.extend(
            obstacle(&path).map(|(yet, why)| {
                format!("cannot write the report to {}{yet}: {why}", quoted(&path))
            }),
        );
    }
    doubts
}

/// Returns the reason why a file cannot be written, if its path shows one. The first value is ` yet` if
/// the program may be about to change that.
fn obstacle(path: &Path) -> Option<(&'static str, String)> {
    if path.is_dir() {
        return Some(("", "it is a directory".to_owned()));
    }
    let directory = path.parent()?;
    let is_not_one = |path: &Path| ("", format!("{} is not a directory", quoted(path)));
    match fs::metadata(directory) {
        Ok(status) if status.is_dir() => None,
        Ok(_) => Some(is_not_one(directory)),
        Err(error) => match error.kind() {
            ErrorKind::NotFound => {
                Some((" yet", format!("the directory {} does not exist", quoted(directory))))
            }
            ErrorKind::NotADirectory => {
                directory.ancestors().find(|ancestor| ancestor.exists()).map(is_not_one)
            }
            _ => Some(("", format!("the directory {}: {error}", quoted(directory)))),
        },
    }
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
        #[cfg(not(feature = "html"))]
        "html" => return Err(format!("needs gpu-time's feature `html`; expected {ENTRIES}")),
        _ => return Err(format!("expected {ENTRIES}, with `,,` for a comma in a path")),
    };
    let sink = match path {
        Some("-" | "/dev/stdout") => Sink::Stdout,
        Some("/dev/stderr") => Sink::Stderr,
        Some(path) if !path.is_empty() => Sink::File(PathPattern::parse(path)?),
        None if format == Format::Table => Sink::Stderr,
        _ => return Err(format!("expected `{kind}:PATH`, or `{kind}:-` for stdout")),
    };
    Ok(Target { format, sink })
}

/// Returns `true` if both sinks refer to the same place, however their paths are written.
fn is_same(one: &Sink, other: &Sink) -> bool {
    match (one, other) {
        (Sink::File(one), Sink::File(other)) => canonical(one.path()) == canonical(other.path()),
        _ => one == other,
    }
}

/// Returns the canonical path of a file, which may be missing if its directory exists. Otherwise,
/// returns the path unchanged.
fn canonical(path: PathBuf) -> PathBuf {
    let in_directory = || Some(fs::canonicalize(path.parent()?).ok()?.join(path.file_name()?));
    fs::canonicalize(&path).ok().or_else(in_directory).unwrap_or(path)
}
