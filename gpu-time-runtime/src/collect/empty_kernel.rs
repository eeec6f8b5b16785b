//! CUPTI's time of an empty kernel, without which the event bias is a microsecond too small.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::base::{clock, switches};
use crate::collect::devices;
use crate::config::kernel_bases::{self, KernelBases};
use crate::control::active;
use crate::cuda::{self, Context};
use crate::cupti;
use crate::gpu::Gpu;
use crate::record::phase::controller;
use crate::record::{collector, drain, kernel_base, opened, stream_state};
use crate::stats::bias::KernelBase;
use crate::types::record_mode::RecordMode;

/// The longest wait for the GPU, and for the records of what has run.
const IDLE_PATIENCE: Duration = Duration::from_millis(200);
/// The longest wait for the measurement at the end of the process. CUPTI may withhold its records behind a kernel that
/// still runs.
const MEASURE_PATIENCE: Duration = Duration::from_millis(500);
/// The longest wait for CUPTI's records.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(1);

/// Measures and stores the time on every GPU whose functions were timed by events and for which none is known. For
/// the end of the process, before the report: CUPTI slows down what runs beside it, so it waits until nothing is timed
/// any more. Takes up to 0.3 s in the first run on a machine, and nothing in the next ones.
pub(crate) fn measure_missing() {
    let config = active::config();
    let is_wanted = !config.targets.is_empty()
        && config.bias.is_none()
        && !matches!(config.recording, Some(RecordMode::Off | RecordMode::On));
    let lacking: Vec<_> = cuda::contexts()
        .into_iter()
        .filter(|context| is_wanted && !context.is_gone())
        .filter(|context| !context.is_calibrated() || context.lacks_kernel_base())
        .filter(|context| !devices::has_stored_base(context))
        .collect();
    if lacking.is_empty() {
        return;
    }
    switches::switch(false);
    controller::wait_for_end(Instant::now() + PATIENCE);
    // The GPU may be busy for longer, and another thread may be inside a call for ever.
    let is_idle = drain::wait_for_gpu(IDLE_PATIENCE);
    if !is_idle || stream_state::has_open() || opened::are_open() || !cupti::is_available() {
        return;
    }
    // A context that has only been used in phases is not calibrated yet.
    lacking.iter().for_each(|context| context.calibrate());
    let deadline = Instant::now() + MEASURE_PATIENCE;
    let measured =
        lacking.into_iter().filter_map(|context| Some((context, measure(context, deadline).ok()?)));
    let measured: Vec<_> = measured.collect();
    if let (false, Some(path), Some(version)) =
        (measured.is_empty(), kernel_bases::path(), cupti::version())
        && KernelBases::read(&path).is_ok()
    {
        // The program has not asked for the file. If it cannot be written, the next run measures again.
        _ = add(&path, version, &measured);
    }
}

/// Adds the times to the file, and replaces a file that cannot be used.
///
/// # Errors
///
/// An error if the file cannot be written.
pub(crate) fn add(
    path: &Path,
    cupti_version: u32,
    measured: &[(&Context, KernelBase)],
) -> std::io::Result<()> {
    let mut bases = KernelBases::read(path).ok().flatten().unwrap_or_default();
    for (context, base) in measured {
        bases.add(devices::identity(context), cupti_version, *base);
    }
    bases.write(path)
}

/// Measures the time on a context's GPU, and waits for CUPTI's records until the deadline.
///
/// # Errors
///
/// One sentence if there are too few records.
pub(crate) fn measure(context: &'static Context, deadline: Instant) -> Result<KernelBase, String> {
    clock::wait_until(deadline, PAUSE, || kernel_base::measure(context, deadline));
    clock::wait_until(deadline, PAUSE, || {
        collector::collect(deadline);
        context.kernel_base.get().is_some()
    });
    let base = context.kernel_base.get().copied();
    base.ok_or_else(|| "CUPTI recorded too few of the empty kernels".to_owned())
}
