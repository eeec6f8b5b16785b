//! The `calibrate` command: measures CUPTI's time of an empty kernel on every GPU and stores it.

use std::process::ExitCode;

use gpu_time_report::printable;
use gpu_time_runtime::tools::calibrate::{CalibratedDevice, CalibrationResult, calibrate};

use crate::message::Failure;
use crate::output;

/// The exit code if some GPU could not be measured.
const INCOMPLETE: u8 = 1;

/// Measures all GPUs, prints the times and returns the exit code.
pub fn run() -> Result<ExitCode, Failure> {
    let CalibrationResult { cupti_version, path, devices } =
        calibrate().map_err(|why| format!("cannot calibrate: {why}"))?;
    let mut text = String::new();
    let mut measured = 0;
    for CalibratedDevice { id, name, empty_kernel_ns } in &devices {
        let result = match empty_kernel_ns {
            Ok((ns, error_ns)) => {
                measured += 1;
                format!(
                    "an empty kernel takes {ns:.0} ns (±{error_ns:.0}) by CUPTI {cupti_version}"
                )
            }
            Err(why) => format!("not measured: {why}"),
        };
        text += &format!("{}\n", printable(&format!("{id}: {name}: {result}")));
    }
    if measured > 0 {
        text += &format!("stored in {}\n", printable(&path.to_string_lossy()));
    }
    output::write(None, &text)?;
    let is_complete = measured == devices.len();
    Ok(if is_complete { ExitCode::SUCCESS } else { ExitCode::from(INCOMPLETE) })
}
