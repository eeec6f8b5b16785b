//! Reading what the user names.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use gpu_time_report::Snapshot;

use crate::Failure;

/// Larger files are none of ours: a report of 500 series takes a few megabytes.
const LARGEST: u64 = 1 << 30;

/// The report in a file.
pub fn report(path: &Path) -> Result<Snapshot, Failure> {
    Snapshot::from_json(&bytes(path)?).map_err(|error| format!("`{}`: {error}", path.display()))
}

/// What is in a file, or why it cannot be read.
pub fn bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    let cannot = |error: io::Error| format!("`{}` cannot be read: {error}", path.display());
    let file = File::open(path).map_err(cannot)?;
    let size = file.metadata().map_err(cannot)?.len();
    let mut bytes = Vec::new();
    if size <= LARGEST {
        bytes.reserve_exact(size as usize + 1);
        // What is no regular file does not tell its size.
        file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(cannot)?;
    }
    if size > LARGEST || bytes.len() as u64 > LARGEST {
        return Err(format!("`{}` is larger than 1 GiB, so no report", path.display()));
    }
    Ok(bytes)
}
