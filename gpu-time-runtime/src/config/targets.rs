//! Where reports are to go, by what `GPU_TIME_REPORT` says.

use std::fs;
use std::path::{self, Path, PathBuf};

use crate::config::output::{Format, Sink, Target, with_process_id};
use crate::config::vars;

pub const REPORT: &str = "GPU_TIME_REPORT";
/// What it may list.
const TARGETS: &str = if cfg!(feature = "html") {
    "`table`, `table:PATH`, `json:PATH`, `csv:PATH`, `html:PATH`, `trace:PATH` and `none`"
} else {
    "`table`, `table:PATH`, `json:PATH`, `csv:PATH`, `trace:PATH` and `none`"
};

/// The targets. Each entry that makes no sense has the default, a table on stderr, in its place.
pub fn read(text: &str, complaints: &mut Vec<String>) -> Vec<Target> {
    let complaints_before = complaints.len();
    let mut targets: Vec<Target> = Vec::new();
    let mut none = false;
    // No path has a NUL, so that it may stand for the comma meanwhile.
    for entry in vars::entries(&text.replace(",,", "\0")) {
        let entry = entry.replace('\0', ",");
        if entry == "none" {
            none = true;
            continue;
        }
        let wrong = match target(&entry) {
            Ok(target)
                if !targets.iter().any(|other| place(&other.sink) == place(&target.sink)) =>
            {
                targets.push(target);
                continue;
            }
            Ok(_) => {
                "goes where an earlier entry goes and is left out; write another path".to_owned()
            }
            Err(wrong) => wrong,
        };
        complaints.push(format!("`{REPORT}`: `{}` {wrong}", entry.escape_debug()));
    }
    if none && !targets.is_empty() {
        complaints.push(format!(
            "`{REPORT}`: `none` has no meaning beside other entries; write it alone"
        ));
    }
    let nothing = targets.is_empty() && !none;
    let complained = complaints.len() > complaints_before;
    if (nothing || complained) && !targets.iter().any(|target| target.sink == Sink::Stderr) {
        targets.push(Target::TABLE);
    }
    targets
}

/// One entry of `GPU_TIME_REPORT`, or what is wrong with it.
fn target(entry: &str) -> Result<Target, String> {
    let (kind, path) =
        entry.split_once(':').map_or((entry, None), |(kind, path)| (kind, Some(path)));
    let format = match kind {
        "table" => Format::Table,
        "json" => Format::Json,
        "csv" => Format::Csv,
        "trace" => Format::Trace,
        #[cfg(feature = "html")]
        "html" => Format::Html,
        #[cfg(not(feature = "html"))]
        "html" => {
            return Err(format!("needs gpu-time's feature `html`; accepted are {TARGETS}"));
        }
        _ => {
            return Err(format!(
                "makes no sense; accepted are {TARGETS}, with a comma in a path as `,,`"
            ));
        }
    };
    let sink = match path {
        Some("") => return Err(format!("lacks a path; write `{kind}:PATH`, with `-` for stdout")),
        Some("-") => Sink::Stdout,
        // Absolute from here on: the program may change its folder before the report is written.
        Some(path) => Sink::File(path::absolute(path).unwrap_or_else(|_| path.into())),
        None if format == Format::Table => Sink::Stderr,
        None => return Err(format!("lacks a path; write `{kind}:PATH`, with `-` for stdout")),
    };
    Ok(Target { format, sink })
}

/// The sink by the one name that all spellings of its path share.
fn place(sink: &Sink) -> Sink {
    match sink {
        Sink::File(path) => Sink::File(one_name(path).unwrap_or_else(|| path.clone())),
        other => other.clone(),
    }
}

/// The true name of the file, or that of its folder with its own where there is no file yet.
fn one_name(path: &Path) -> Option<PathBuf> {
    let path = with_process_id(path);
    let of_folder = || Some(fs::canonicalize(path.parent()?).ok()?.join(path.file_name()?));
    fs::canonicalize(&path).ok().or_else(of_folder)
}
