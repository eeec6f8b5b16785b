//! Reads the files named on the command line. `-` stands for stdin, as it stands for stdout where results are
//! written.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use gpu_time_report::Snapshot;

use crate::message::Failure;

/// The maximum size of a file in MiB. A report of 500 series takes a few.
const MAX_MIB: u64 = 256;
/// Why a program may have written no report.
const NO_REPORT: &str =
    "; a program writes its report only if it was built with the feature `enabled` of gpu-time";
const MAX_BYTES: u64 = MAX_MIB << 20;

/// Reads a report.
pub fn report(path: &Path) -> Result<Snapshot, Failure> {
    Snapshot::from_json(&bytes(path)?).map_err(|error| format!("{}: {error}", name(path)))
}

/// Returns the name of an input in messages.
pub fn name(path: &Path) -> String {
    if is_stdin(path) { "stdin".to_owned() } else { format!("`{}`", path.display()) }
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Reads a whole file of at most [`MAX_MIB`], or stdin.
pub fn bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    static STDIN_IS_READ: AtomicBool = AtomicBool::new(false);
    if is_stdin(path) && STDIN_IS_READ.swap(true, Relaxed) {
        return Err("stdin can be read only once: name `-` once".to_owned());
    }
    let cannot = |error: io::Error| {
        let is_report = path.extension().is_some_and(|extension| extension == "json");
        let hint =
            if is_report && error.kind() == io::ErrorKind::NotFound { NO_REPORT } else { "" };
        format!("cannot read {}: {error}{hint}", name(path))
    };
    let (input, size): (Box<dyn Read>, u64) = if is_stdin(path) {
        (Box::new(io::stdin()), 0)
    } else {
        let file = File::open(path).map_err(cannot)?;
        let size = file.metadata().map_err(cannot)?.len();
        (Box::new(file), size)
    };
    let too_large = |mib: u64| {
        let name = name(path);
        Err(format!(
            "{name} is too large: it has more than {mib} MiB, and at most {MAX_MIB} MiB are read"
        ))
    };
    if size > MAX_BYTES {
        return too_large(size >> 20);
    }
    let mut bytes = Vec::with_capacity(size as usize + 1);
    // A pipe or a device has no size in its metadata, so the limit also applies to reading.
    input.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(cannot)?;
    if bytes.len() as u64 > MAX_BYTES {
        return too_large(MAX_MIB);
    }
    Ok(bytes)
}
