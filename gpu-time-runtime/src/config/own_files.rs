//! The files that this process writes its reports to.
//!
//! Processes with one target, such as the ranks of a job, must not replace each other's reports. A report replaces only
//! an empty file, one that this process wrote, or one that is older than the process and whose path has no `%p`: such a
//! path names a report that every run replaces. Otherwise, the report goes to the next free name. The same holds for several copies
//! of gpu-time in a process, and for several targets with one path.

use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::iter;
use std::path::{Path, PathBuf};

use crate::base::lock::{Mutex, Rank, locked};
use crate::base::{clock, console};
use crate::config::path_pattern::{PathPattern, quoted};
use crate::config::report_file::{is_unchanged, write_unless_taken};
use crate::config::targets::Format;

/// The number of names to try.
const MAX_NAMES: u32 = 10_000;
/// Upper bound on [`OWN_FILES`], for programs that change their targets in a loop.
const MAX_FILES: usize = 100;

/// A file that this process has written.
#[derive(Clone)]
struct OwnFile {
    /// A forked process has written none of its parent's files.
    process: u32,
    wanted: PathBuf,
    format: Format,
    path: PathBuf,
    status: Metadata,
}

static OWN_FILES: Mutex<Vec<OwnFile>> = Mutex::new(Rank::ReportFiles, Vec::new());

/// Writes a report. Says once if it does not go to the path that was asked for.
pub(crate) fn write(pattern: &PathPattern, format: Format, bytes: &[u8]) -> io::Result<()> {
    let (wanted, process) = (pattern.path(), std::process::id());
    let is_same =
        |file: &OwnFile| file.process == process && file.format == format && file.wanted == wanted;
    let own = locked(&OWN_FILES).iter().find(|file| is_same(file)).cloned();
    let may_replace = |status: &Metadata| {
        let is_own = own.as_ref().is_some_and(|own| is_unchanged(&own.status, status));
        let is_older = || status.modified().is_ok_and(|time| time < clock::loaded());
        // The program may have created an empty file for the report.
        is_own || status.len() == 0 || !pattern.names_process() && is_older()
    };
    let numbered = (2..=MAX_NAMES).map(|number| numbered(&wanted, number));
    let names = iter::once(wanted.clone()).chain(numbered);
    for path in own.iter().map(|own| own.path.clone()).chain(names) {
        match write_unless_taken(&path, bytes, may_replace) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
            Err(error) if error.kind() == ErrorKind::PermissionDenied && path.is_file() => continue,
            written => written?,
        }
        if path != wanted && own.as_ref().is_none_or(|own| own.path != path) {
            let [wanted, path] = [&wanted, &path].map(|path| quoted(path));
            console::say(&format!(
                "{wanted} is another report, as of another process: this one is in {path}"
            ));
        }
        let mut files = locked(&OWN_FILES);
        files.retain(|file| !is_same(file));
        if files.len() >= MAX_FILES {
            files.remove(0);
        }
        if let Ok(status) = fs::metadata(&path) {
            files.push(OwnFile { process, wanted, format, path, status });
        }
        return Ok(());
    }
    Err(ErrorKind::AlreadyExists.into())
}

/// Adds a number to the name of a file, before its extension.
fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_precedes_extension() {
        for (path, expected) in [
            ("/a.b/report.json", "/a.b/report.2.json"),
            ("/a.b/report", "/a.b/report.2"),
            ("/a/.report", "/a/.report.2"),
            ("/a/report.tar.gz", "/a/report.tar.2.gz"),
        ] {
            assert_eq!(numbered(Path::new(path), 2), Path::new(expected));
        }
    }
}
