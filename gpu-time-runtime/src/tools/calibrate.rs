//! The measurement made by `gpu-time calibrate`: CUPTI's time of an empty kernel on each GPU.

use std::path::PathBuf;
use std::time::Instant;

use crate::base::inside;
use crate::collect::empty_kernel::{self, PATIENCE};
use crate::config::kernel_bases;
use crate::cuda::{self, Context};
use crate::cupti;
use crate::stats::bias::KernelBase;

/// The result returned by [`calibrate`].
pub struct CalibrationResult {
    /// The version from `cuptiGetVersion`.
    pub cupti_version: u32,
    /// The file that the times are stored in.
    pub path: PathBuf,
    pub devices: Vec<CalibratedDevice>,
}

/// A GPU and its measurement.
pub struct CalibratedDevice {
    /// For example `cuda:0`.
    pub id: String,
    pub name: String,
    /// The time of an empty kernel and its error in nanoseconds, or the reason why there is none.
    pub empty_kernel_ns: Result<(f64, f64), String>,
}

/// Measures every GPU and stores the times. Stores nothing if there is none.
///
/// # Errors
///
/// One sentence if nothing can be measured, or the file cannot be written.
pub fn calibrate() -> Result<CalibrationResult, String> {
    let _inside = inside::enter();
    let path = kernel_bases::path()
        .ok_or("no cache directory: set `XDG_CACHE_HOME` or `HOME` to an absolute path")?;
    let found = cuda::all_devices()?;
    if found.is_empty() {
        return Err("CUDA found no GPU".to_owned());
    }
    let version = cupti::is_available().then(cupti::version).flatten();
    let no_cupti = || cupti::why_unavailable().unwrap_or_default();
    let cupti_version = version.ok_or_else(no_cupti)?;
    let (mut devices, mut new) = (Vec::new(), Vec::new());
    for (ordinal, (name, _)) in (0..).zip(found) {
        let measured = measure(ordinal);
        new.extend(measured.clone().ok());
        let empty_kernel_ns = measured.map(|(_, base)| (base.ns, base.error_ns));
        devices.push(CalibratedDevice { id: format!("cuda:{ordinal}"), name, empty_kernel_ns });
    }
    if !new.is_empty() {
        empty_kernel::add(&path, cupti_version, &new)
            .map_err(|error| format!("cannot write `{}`: {error}", path.display()))?;
    }
    Ok(CalibrationResult { cupti_version, path, devices })
}

fn measure(ordinal: u32) -> Result<(&'static Context, KernelBase), String> {
    let context = cuda::primary(ordinal).map_err(|fault| format!("no context ({fault})"))?;
    context.calibrate();
    if context.calibration().is_none() {
        return Err(context.warnings().join(", "));
    }
    Ok((context, empty_kernel::measure(context, Instant::now() + PATIENCE)?))
}
