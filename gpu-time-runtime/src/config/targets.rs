//! Report targets: renderings, and their destinations.

use std::ops::{Deref, RangeInclusive};
use std::path::Path;
use std::time::Duration;
use std::{env, fs};

use crate::base::{environment, standard::Standard};
use crate::config::names;
use crate::config::path_pattern::{PathPattern, quoted};
use crate::config::problems::{Problems, entries, shown};
use gpu_time_report::units::parsed_ns;

/// Where reports go, and when.
///
/// Invariant: no two of the targets have the same sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Targets {
    all: Vec<Target>,
    /// The time after which the files are written again, so that a process that is killed leaves its last report.
    pub every: Option<Duration>,
}

impl Default for Targets {
    /// Returns the targets of a process for which none are given. A test harness has the output of its binary to itself.
    fn default() -> Targets {
        let all = if environment::is_in_test() { Vec::new() } else { vec![Target::TABLE] };
        Targets { all, every: None }
    }
}

impl Deref for Targets {
    type Target = [Target];

    fn deref(&self) -> &[Target] {
        &self.all
    }
}

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
    /// The call tree as a profile.
    Pprof,
    #[cfg(feature = "html")]
    Html,
    /// The last calls and brackets on a time axis, as Chrome trace events.
    Trace,
}

impl Format {
    /// The names of the formats.
    const NAMED: [(&str, Format); if cfg!(feature = "html") { 7 } else { 6 }] = [
        ("table", Format::Table),
        ("json", Format::Json),
        ("csv", Format::Csv),
        ("folded", Format::Folded),
        ("pprof", Format::Pprof),
        ("trace", Format::Trace),
        #[cfg(feature = "html")]
        ("html", Format::Html),
    ];

    fn named(name: &str) -> Option<Format> {
        Format::NAMED.iter().find(|(known, _)| *known == name).map(|(_, format)| *format)
    }
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
const ENTRIES: &str = "`table`, `table:PATH`, `json:PATH`, `csv:PATH`, `folded:PATH`, `pprof:PATH`, `html:PATH` (with gpu-time's \
                       feature `html`), `trace:PATH`, `none` or `every=10s`, with `,,` for a comma in a path";
/// The valid times between two reports.
const EVERY: RangeInclusive<f64> = 1e9..=86_400e9;

/// Parses the list of the environment, whose paths are relative to the directory in which the program was started.
pub(crate) fn of_environment(list: &str, invalid: &mut dyn FnMut(&str, String)) -> Targets {
    targets(list, environment::start_directory(), invalid)
}

/// Parses a list that the program gives, whose paths are relative to its current directory.
pub(crate) fn of_program(list: &str, invalid: &mut dyn FnMut(&str, String)) -> Targets {
    targets(list, &env::current_dir().unwrap_or_default(), invalid)
}

/// Parses a comma-separated list of targets. Passes each invalid entry to `invalid` with the
/// reason, and replaces it with the table on stderr.
fn targets(list: &str, directory: &Path, invalid: &mut dyn FnMut(&str, String)) -> Targets {
    let (mut targets, mut every) = (Vec::<Target>::new(), None);
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
        if let Some(time) = entry.strip_prefix("every=") {
            every = parsed_ns(time).filter(|ns| EVERY.contains(ns));
            if every.is_none() {
                reject(
                    &entry,
                    "expected a time from `1s` to `86400s`, such as `every=10s`".to_owned(),
                );
            }
            continue;
        }
        match target(&entry, directory) {
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
    if every.is_some() && !targets.iter().any(|target| matches!(target.sink, Sink::File(_))) {
        reject("every", "expected a file beside it, such as `json:gpu-time-%p.json`".to_owned());
        every = None;
    }
    let is_empty = targets.is_empty() && !is_none;
    if (is_empty || !is_valid) && !targets.iter().any(|target| target.sink == Target::TABLE.sink) {
        targets.push(Target::TABLE);
    }
    Targets { all: targets, every: every.map(|ns| Duration::from_nanos(ns as u64)) }
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
fn target(entry: &str, directory: &Path) -> Result<Target, String> {
    if let Some(list) = with_commas(entry) {
        return Err(format!("targets are separated by commas: `{}`", shown(&list)));
    }
    let (kind, path) =
        entry.split_once(':').map_or((entry, None), |(kind, path)| (kind, Some(path.trim_start())));
    let Some(format) = Format::named(kind) else {
        return Err(match meant(kind, path.is_some()) {
            Some(meant) => {
                format!("did you mean `{}`, or `,,` for a comma in a path?", shown(&meant))
            }
            None => format!("expected {ENTRIES}"),
        });
    };
    let sink = match path {
        Some("-" | "/dev/stdout") => Sink::Standard(Standard::Stdout),
        Some("/dev/stderr") => Sink::Standard(Standard::Stderr),
        Some(path) if !path.is_empty() => Sink::File(PathPattern::parse(path, directory)?),
        None if format == Format::Table => Sink::Standard(Standard::Stderr),
        _ => return Err(format!("expected `{kind}:PATH`, or `{kind}:-` for stdout")),
    };
    Ok(Target { format, sink })
}

/// Returns the list that was meant if its entries are separated by blanks or semicolons.
fn with_commas(entry: &str) -> Option<String> {
    let parts =
        entry.split(|c: char| c == ';' || c.is_whitespace()).filter(|part| !part.is_empty());
    let parts: Vec<&str> = parts.collect();
    let is_target =
        |part: &&str| Format::named(part.split(':').next().unwrap_or_default()).is_some();
    // A path may have a blank, and a format's name behind it.
    let (first, others) = parts.split_first()?;
    let is_path = first.contains(':') && !others.iter().any(|part| part.contains(':'));
    (!others.is_empty() && !is_path && parts.iter().all(is_target)).then(|| parts.join(","))
}

/// Returns what was meant by an entry that does not begin with a format.
fn meant(kind: &str, has_path: bool) -> Option<String> {
    let mut names: Vec<&str> = Format::NAMED.iter().map(|(name, _)| *name).collect();
    if has_path {
        return Some(format!("{}:PATH", names::nearest(kind, &names)?));
    }
    if let Some(extension) = Path::new(kind).extension() {
        let format = names.into_iter().find(|name| extension == *name).unwrap_or("table");
        return Some(format!("{format}:{kind}"));
    }
    names.push("none");
    names::nearest(kind, &names).map(str::to_owned)
}
