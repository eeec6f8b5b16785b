//! The measurement made by `gpu-time calibrate`: CUPTI's time of an empty kernel on each GPU.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use crate::base::inside;
use crate::collect::devices;
use crate::config::kernel_bases::{self, KernelBases};
use crate::cuda::{self, Context};
use crate::cupti;
use crate::record::kernel_base;
use crate::record::opened::collector;
use crate::stats::bias::KernelBase;

/// The maximum time to wait for CUPTI's records.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(10);

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
    // An existing file that cannot be used is replaced.
    let mut bases = KernelBases::read(&path).ok().flatten().unwrap_or_default();
    let mut is_new = false;
    let devices = (0..).zip(found).map(|(ordinal, (name, _))| {
        let measured = measure(ordinal).map(|(context, base)| {
            bases.add(devices::identity(context), cupti_version, base);
            is_new = true;
            (base.ns, base.error_ns)
        });
        CalibratedDevice { id: format!("cuda:{ordinal}"), name, empty_kernel_ns: measured }
    });
    let devices = devices.collect();
    if is_new {
        bases
            .write(&path)
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
    kernel_base::measure(context);
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(base) = context.kernel_base() {
            return Ok((context, base));
        }
        if Instant::now() >= deadline {
            return Err("CUPTI recorded too few of the empty kernels".to_owned());
        }
        thread::sleep(PAUSE);
        collector::collect(deadline);
    }
}
