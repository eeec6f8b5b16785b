//! Reads a report. If this succeeds, every rendering must work, and reading back the written report
//! must give the same result.

#![no_main]

use gpu_time_report::Snapshot;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|json: &[u8]| {
    let snapshot = match Snapshot::from_json(json) {
        Ok(snapshot) => snapshot,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let written = snapshot.to_json();
    let again = Snapshot::from_json(written.as_bytes()).expect("what was written is read");
    assert_eq!(again.to_json(), written);
    assert!(!snapshot.to_string().is_empty());
    assert!(!snapshot.to_csv().is_empty());
    assert!(!snapshot.to_html().is_empty());
});
