//! Records everything that a program runs on the GPU, with CUPTI, and writes it as JSON at exit.
//!
//! The driver loads this library into any program and calls [`InitializeInjection`]:
//!
//! ```text
//! CUDA_INJECTION64_PATH=libcupti_record.so CUPTI_RECORD=record.json program
//! ```
//!
//! Nothing here is shared with gpu-time, so that the two can be compared. CUPTI serves one of them
//! at a time: with this library loaded, gpu-time records no calls.

mod activity;
mod cupti;
mod record;

use std::ffi::c_int;
use std::fs;
use std::path::PathBuf;

use record::Record;

/// Starts recording. The driver calls this function when the program calls `cuInit`.
#[unsafe(no_mangle)]
pub extern "C" fn InitializeInjection() -> c_int {
    // SAFETY: the handler is a function that lives as long as the process.
    if let Err(why) = cupti::start().map(|()| unsafe { libc::atexit(at_exit) }) {
        eprintln!("cupti-record: nothing is recorded: {why}");
    }
    // The program runs in either case.
    1
}

extern "C" fn at_exit() {
    let path = std::env::var_os("CUPTI_RECORD").unwrap_or_else(|| "cupti-record.json".into());
    let path = PathBuf::from(path);
    let written = cupti::finish()
        .and_then(|recorded| Ok(serde_json::to_string_pretty(&Record::new(recorded))?))
        .and_then(|json| Ok(fs::write(&path, json + "\n")?));
    if let Err(why) = written {
        eprintln!("cupti-record: no record in {}: {why}", path.display());
    }
}
