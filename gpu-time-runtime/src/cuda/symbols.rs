//! The driver library: checks that it is usable, and looks up functions not called through cudarc.

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::time::Instant;

use cudarc::driver::sys::{
    self, CUcontext, CUdeviceptr, CUevent, CUgraph, CUgraphNode, CUlimit, CUresult, CUstream,
    CUstreamCaptureStatus,
};
use libloading::Library;

use crate::base::{background, clock, fork};
use crate::cuda::result::check;

type CaptureInfoV2 = unsafe extern "C" fn(
    CUstream,
    *mut CUstreamCaptureStatus,
    *mut u64,
    *mut CUgraph,
    *mut *const CUgraphNode,
    *mut usize,
) -> CUresult;
type CaptureInfoV3 = unsafe extern "C" fn(
    CUstream,
    *mut CUstreamCaptureStatus,
    *mut u64,
    *mut CUgraph,
    *mut *const CUgraphNode,
    *mut *const c_void,
    *mut usize,
) -> CUresult;

/// The driver function that describes a capture, in either version.
#[derive(Clone, Copy)]
pub(super) enum CaptureInfo {
    V2(CaptureInfoV2),
    V3(CaptureInfoV3),
}

/// `CUstreamAttrValue` with an access policy window. The union has 64 bytes; `rest` leaves space
/// for a larger one.
#[repr(C)]
pub(super) struct StreamAttribute {
    pub base: *mut c_void,
    pub bytes: usize,
    pub hit_ratio: f32,
    pub hit: c_int,
    pub miss: c_int,
    pub rest: [u64; 16],
}

/// Driver functions that are not called through cudarc. It provides some of them only for some CUDA versions,
/// which the application selects by Cargo features.
///
/// The functions used by every timed call come first and are adjacent, because every cache line
/// touched between two driver calls costs time.
#[repr(C, align(64))]
pub(super) struct Symbols {
    /// Distinguishes a context from a later one at the same address. Available since driver 12.0.
    pub context_id: Option<unsafe extern "C" fn(CUcontext, *mut u64) -> CUresult>,
    pub is_capturing: unsafe extern "C" fn(CUstream, *mut CUstreamCaptureStatus) -> CUresult,
    pub event_record: unsafe extern "C" fn(CUevent, CUstream) -> CUresult,
    /// Returns the host time of a simulated driver, whose calls take no real time.
    simulated_now: Option<unsafe extern "C" fn() -> u64>,
    pub elapsed_time: unsafe extern "C" fn(*mut f32, CUevent, CUevent) -> CUresult,
    /// Reads a limit for the current context. Without it, persisting lines cannot be detected.
    pub context_limit: Option<unsafe extern "C" fn(*mut usize, CUlimit) -> CUresult>,
    /// Reads an attribute of a stream, such as its access policy window. Available since driver
    /// 11.0.
    pub stream_attribute:
        Option<unsafe extern "C" fn(CUstream, c_int, *mut StreamAttribute) -> CUresult>,
    /// Frees memory without waiting for all GPU work. Available since driver 11.2. Without it, no
    /// memory is freed.
    pub free_async: Option<unsafe extern "C" fn(CUdeviceptr, CUstream) -> CUresult>,
    /// Writes the UUID of a device or, since driver 11.4, of its MIG instance.
    pub device_uuid: Option<unsafe extern "C" fn(*mut [u8; 16], c_int) -> CUresult>,
    /// Describes a capture. `None` if the driver lacks this function or any other in [`GRAPH`].
    pub capture_info: Option<CaptureInfo>,
    /// The driver has all of [`REPLAY`].
    pub can_replay: bool,
    /// `CUDA_LAUNCH_BLOCKING` makes every launch wait for its kernel, so a held stream would never
    /// be released.
    pub launches_block: bool,
    /// The process start time on the clock of [`Symbols::now_ns`].
    start_ns: u64,
}

impl Symbols {
    /// Returns the host time in nanoseconds.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        match self.simulated_now {
            None => clock::now_ns(),
            // SAFETY: it takes no arguments and returns a number.
            Some(now) => unsafe { now() },
        }
    }
}

/// The functions that the runtime calls through cudarc, which panics if a symbol is missing.
const NEEDED: &[&str] = &[
    "cuCtxGetCurrent",
    "cuCtxGetDevice",
    "cuCtxPopCurrent_v2",
    "cuCtxPushCurrent_v2",
    "cuCtxSetCurrent",
    "cuDeviceGetAttribute",
    #[cfg(any(feature = "kernels", feature = "nvml"))]
    "cuDeviceGetCount",
    "cuDeviceGetName",
    #[cfg(feature = "nvml")]
    "cuDeviceGetPCIBusId",
    "cuDevicePrimaryCtxGetState",
    "cuDevicePrimaryCtxRelease_v2",
    "cuDevicePrimaryCtxRetain",
    "cuDriverGetVersion",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventRecord",
    #[cfg(feature = "nvml")]
    "cuInit",
    "cuLaunchKernel",
    "cuMemAlloc_v2",
    "cuMemHostGetDevicePointer_v2",
    "cuMemHostRegister_v2",
    "cuMemHostUnregister",
    "cuMemsetD32Async",
    "cuModuleGetFunction",
    "cuModuleLoadData",
    "cuStreamCreate",
    "cuStreamGetCtx",
    "cuStreamIsCapturing",
    "cuStreamQuery",
    "cuStreamSynchronize",
    "cuThreadExchangeStreamCaptureMode",
];

/// The functions needed to time launches in graphs. Available since driver 11.3.
const GRAPH: [&str; 4] = [
    "cuEventRecordWithFlags",
    "cuGraphRetainUserObject",
    "cuUserObjectCreate",
    "cuUserObjectRelease",
];

/// The functions needed to capture calls into a graph of the runtime and replay it. Available since
/// driver 11.4.
const REPLAY: [&str; 7] = [
    "cuGraphDestroy",
    "cuGraphExecDestroy",
    "cuGraphGetNodes",
    "cuGraphInstantiateWithFlags",
    "cuGraphLaunch",
    "cuStreamBeginCapture_v2",
    "cuStreamEndCapture",
];

static SYMBOLS: OnceLock<Result<Symbols, String>> = OnceLock::new();

/// Returns the host time in nanoseconds, on the clock used for event times. Does not load the
/// driver.
pub(crate) fn now_ns() -> u64 {
    match SYMBOLS.get() {
        Some(Ok(symbols)) => symbols.now_ns(),
        _ => clock::now_ns(),
    }
}

/// Returns the driver's symbols, or the reason why the driver cannot be used.
pub(super) fn symbols() -> Result<&'static Symbols, &'static str> {
    if fork::is_forked() {
        return Err(fork::FORKED);
    }
    SYMBOLS.get_or_init(|| background::aside(load)).as_ref().map_err(String::as_str)
}

/// Returns the reason if driver calls are impossible.
pub(crate) fn why_unusable() -> Option<&'static str> {
    symbols().err()
}

/// Returns `true` if the process has loaded the driver library.
pub(crate) fn is_loaded() -> bool {
    use libloading::os::unix::{Library, RTLD_LAZY};
    let flags = RTLD_LAZY | libc::RTLD_NOLOAD;
    // SAFETY: with `RTLD_NOLOAD`, nothing is loaded, so no code of the library runs.
    SYMBOLS.get().is_some() || unsafe { Library::open(Some("libcuda.so.1"), flags) }.is_ok()
}

fn load() -> Result<Symbols, String> {
    let library = open().ok_or("no CUDA driver library (libcuda) was found")?;
    // Never unloaded, because exit handlers still call it.
    let library: &'static Library = Box::leak(Box::new(library));
    for name in NEEDED {
        // SAFETY: the symbol is only looked up.
        unsafe { needed::<*const c_void>(library, name) }?;
    }
    // SAFETY: the symbol is only looked up.
    let has = |name: &&str| unsafe { symbol::<*const c_void>(library, name) }.is_some();
    // SAFETY: in every driver that has them, these functions have these signatures. No real driver
    // has `gpu_time_sim_now`.
    let mut symbols = unsafe {
        let capture_info = symbol(library, "cuStreamGetCaptureInfo_v2")
            .map(CaptureInfo::V2)
            .or_else(|| symbol(library, "cuStreamGetCaptureInfo_v3").map(CaptureInfo::V3));
        Symbols {
            context_id: symbol(library, "cuCtxGetId"),
            is_capturing: needed(library, "cuStreamIsCapturing")?,
            event_record: needed(library, "cuEventRecord")?,
            simulated_now: symbol(library, "gpu_time_sim_now"),
            elapsed_time: symbol(library, "cuEventElapsedTime_v2")
                .map_or_else(|| needed(library, "cuEventElapsedTime"), Ok)?,
            context_limit: symbol(library, "cuCtxGetLimit"),
            stream_attribute: symbol(library, "cuStreamGetAttribute"),
            free_async: symbol(library, "cuMemFreeAsync"),
            device_uuid: symbol(library, "cuDeviceGetUuid_v2")
                .or_else(|| symbol(library, "cuDeviceGetUuid")),
            capture_info: capture_info.filter(|_| GRAPH.iter().all(has)),
            can_replay: REPLAY.iter().all(has),
            launches_block: std::env::var_os("CUDA_LAUNCH_BLOCKING")
                .is_some_and(|value| !value.is_empty() && value != "0"),
            start_ns: 0,
        }
    };
    let since_start_ns = clock::since_start_ns(Instant::now());
    symbols.start_ns = symbols.now_ns().saturating_sub(since_start_ns);
    Ok(symbols)
}

/// Returns a function that every driver must have, or an error message.
///
/// # Safety
///
/// `F` must match the function's type in every driver that has it.
unsafe fn needed<F: Copy>(library: &Library, name: &str) -> Result<F, String> {
    // SAFETY: guaranteed by the caller.
    let symbol = unsafe { symbol(library, name) };
    symbol.ok_or_else(|| format!("the CUDA driver is too old: it has no `{name}`"))
}

/// Returns a driver function, or `None` if the driver lacks it.
///
/// # Safety
///
/// `F` must match the function's type in every driver that has it.
unsafe fn symbol<F: Copy>(library: &Library, name: &str) -> Option<F> {
    // SAFETY: guaranteed by the caller.
    unsafe { library.get::<F>(name) }.ok().map(|symbol| *symbol)
}

/// Returns the process start time, on the clock of [`now_ns`], or 0 if the driver cannot be used.
pub(crate) fn start_ns() -> u64 {
    symbols().map_or(0, |symbols| symbols.start_ns)
}

/// Opens the driver library that the process has loaded or would load.
fn open() -> Option<Library> {
    ["libcuda.so", "libcuda.so.1"].into_iter().find_map(|name| {
        // SAFETY: loading the CUDA driver runs its initializers, as it does when cudarc loads it
        // under the same names.
        unsafe { Library::new(name) }.ok()
    })
}

/// Returns the CUDA version that the driver implements, such as `13.0`.
pub(crate) fn driver_version() -> Option<String> {
    symbols().ok()?;
    let mut version: c_int = 0;
    // SAFETY: writes one integer; needs no context.
    check(unsafe { sys::cuDriverGetVersion(&raw mut version) }).ok()?;
    Some(format!("{}.{}", version / 1000, version % 1000 / 10))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;

    /// Collects the names in `sys::NAME(`, in all files of a folder.
    fn collect_calls(folder: &Path, names: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect_calls(&path, names);
                continue;
            }
            let text = fs::read_to_string(path).unwrap();
            for rest in text.split("sys::cu").skip(1) {
                let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                let (name, rest) = rest.split_at(rest.find(|c| !is_name(c)).unwrap_or(rest.len()));
                if rest.starts_with('(') {
                    names.insert(format!("cu{name}"));
                }
            }
        }
    }

    #[test]
    fn functions_called_through_cudarc_are_looked_up() {
        let mut called = BTreeSet::new();
        collect_calls(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut called);
        assert!(called.len() > 20, "{called:?}");
        called.retain(|name| ![NEEDED, &GRAPH, &REPLAY].concat().contains(&&**name));
        assert!(called.is_empty(), "{called:?}");
    }
}
