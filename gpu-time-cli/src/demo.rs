//! The stored report of the `demo` command, for a machine without a GPU.

use std::path::Path;

use gpu_time_report::Snapshot;

use crate::message::Failure;

/// The report of a program with recorded kernels. Any report of a single process can take its place.
const REPORT: &[u8] = include_bytes!("demo.json");

/// Returns the stored report.
pub fn report() -> Result<Snapshot, Failure> {
    Snapshot::from_json(REPORT).map_err(|error| format!("the stored report: {error}"))
}

/// Says what was measured, on what and when.
pub fn origin(report: &Snapshot, page: &Path) -> String {
    let gpu = report.devices.iter().find(|device| device.id != "host");
    let gpu = gpu.map_or("no GPU", |device| &device.name);
    let program = report.process.label.as_ref().unwrap_or(&report.process.name);
    let day = report.process.started.split('T').next().unwrap_or_default();
    format!(
        "nothing was measured here: this is a stored report of `{program}` on {gpu} on {day}; its page is `{}`",
        page.display()
    )
}
