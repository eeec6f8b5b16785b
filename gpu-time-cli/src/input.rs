//! Reads the files named on the command line.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use gpu_time_report::Snapshot;

use crate::message::Failure;

/// The maximum size of a file. A report of 500 series takes a few megabytes, and one of 73,000 series a gigabyte.
const MAX_BYTES: u64 = 4 << 30;

/// Reads a report.
pub fn report(path: &Path) -> Result<Snapshot, Failure> {
    Snapshot::from_json(&bytes(path)?).map_err(|error| format!("`{}`: {error}", path.display()))
}

/// Reads a whole file of at most 4 GiB.
pub fn bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    let cannot = |error: io::Error| format!("cannot read `{}`: {error}", path.display());
    let file = File::open(path).map_err(cannot)?;
    let size = file.metadata().map_err(cannot)?.len();
    let mut bytes = Vec::new();
    if size <= MAX_BYTES {
        bytes.reserve_exact(size as usize + 1);
        // A pipe or a device has no size in its metadata, so the limit also applies to reading.
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(cannot)?;
    }
    if size > MAX_BYTES || bytes.len() as u64 > MAX_BYTES {
        return Err(format!("`{}` is not a report: it is larger than 4 GiB", path.display()));
    }
    Ok(bytes)
}
