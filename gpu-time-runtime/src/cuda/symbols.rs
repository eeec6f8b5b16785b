//! The driver library: checks that it can be used, and looks up the symbols that cudarc does not
//! offer.

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::time::Instant;

use cudarc::driver::sys::{
    self, CUcontext, CUdeviceptr, CUevent, CUlimit, CUresult, CUstream, CUstreamCaptureStatus,
};
use libloading::Library;

use crate::base::clock;
use crate::base::fork;
use crate::cuda::graph_symbols::GraphSymbols;
use crate::cuda::replay_symbols::ReplaySymbols;
use crate::cuda::result::check;

type EventRecord = unsafe extern "C" fn(CUevent, CUstream) -> CUresult;
type IsCapturing = unsafe extern "C" fn(CUstream, *mut CUstreamCaptureStatus) -> CUresult;
type Now = unsafe extern "C" fn() -> u64;
type ElapsedTime = unsafe extern "C" fn(*mut f32, CUevent, CUevent) -> CUresult;
type GetLimit = unsafe extern "C" fn(*mut usize, CUlimit) -> CUresult;
type FreeAsync = unsafe extern "C" fn(CUdeviceptr, CUstream) -> CUresult;
type GetId = unsafe extern "C" fn(CUcontext, *mut u64) -> CUresult;
type GetAttribute = unsafe extern "C" fn(CUstream, c_int, *mut StreamAttribute) -> CUresult;

/// `CUstreamAttrValue` with an access policy window: a union of 64 bytes, with room for a larger
/// one.
#[repr(C)]
pub(super) struct StreamAttribute {
    pub base: *mut c_void,
    pub bytes: usize,
    pub hit_ratio: f32,
    pub hit: c_int,
    pub miss: c_int,
    pub rest: [u64; 16],
}

/// Driver functions that the runtime cannot name through cudarc, because cudarc offers them for
/// some CUDA versions only, which the application's features choose.
///
/// The functions that every timed call uses come first, next to each other: between two driver
/// calls, every cache line that is touched costs time.
#[repr(C, align(64))]
pub(super) struct Symbols {
    /// Tells a context from a later one at the same address. In drivers since 12.0.
    pub context_id: Option<GetId>,
    pub is_capturing: IsCapturing,
    pub event_record: EventRecord,
    /// The host's time in a simulated driver, whose calls take no real time.
    simulated_now: Option<Now>,
    pub elapsed_time: ElapsedTime,
    /// Reads a limit of the current context. Without it persisting lines cannot be detected.
    pub context_limit: Option<GetLimit>,
    /// Tells which accesses of a stream persist in the L2. In drivers since 11.0.
    pub stream_attribute: Option<GetAttribute>,
    /// Frees memory without waiting for all work of the GPU. In drivers since 11.2. Without it no
    /// memory is freed.
    pub free_async: Option<FreeAsync>,
    /// The functions that time launches in graphs.
    pub graph: Option<GraphSymbols>,
    /// The functions that replay calls in a graph of our own.
    pub replay: Option<ReplaySymbols>,
    /// The time when the process was started, by [`Symbols::now_ns`].
    start_ns: u64,
}

impl Symbols {
    /// Returns the host's time in nanoseconds.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        match self.simulated_now {
            None => clock::now_ns(),
            // SAFETY: it takes nothing and returns a number.
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
    #[cfg(feature = "nvml")]
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
    "cuMemsetD32Async",
    "cuModuleGetFunction",
    "cuModuleLoadData",
    "cuStreamCreate",
    "cuStreamGetCtx",
    "cuStreamIsCapturing",
    "cuStreamSynchronize",
    "cuThreadExchangeStreamCaptureMode",
];

static SYMBOLS: OnceLock<Result<Symbols, String>> = OnceLock::new();

/// Returns the host's time in nanoseconds, by the clock that dates events. Does not load the
/// driver.
pub(crate) fn now_ns() -> u64 {
    match SYMBOLS.get() {
        Some(Ok(symbols)) => symbols.now_ns(),
        _ => clock::now_ns(),
    }
}

/// Returns the driver's symbols, or why the driver cannot be used.
pub(super) fn symbols() -> Result<&'static Symbols, &'static str> {
    if fork::is_forked() {
        return Err(fork::FORKED);
    }
    SYMBOLS.get_or_init(load).as_ref().map_err(String::as_str)
}

/// Returns why no driver call can be made, if that is so.
pub(crate) fn why_unusable() -> Option<&'static str> {
    symbols().err()
}

fn load() -> Result<Symbols, String> {
    let library = open().ok_or("no CUDA driver library (libcuda) was found")?;
    // Never unloaded: exit handlers still call it.
    let library: &'static Library = Box::leak(Box::new(library));
    for &name in NEEDED {
        // SAFETY: the symbol is only looked up.
        if unsafe { library.get::<*const c_void>(name) }.is_err() {
            return Err(format!("the CUDA driver is too old: it has no `{name}`"));
        }
    }
    let elapsed_time =
        ["cuEventElapsedTime_v2", "cuEventElapsedTime"].into_iter().find_map(|name| {
            // SAFETY: both versions of this function have the signature of `ElapsedTime`.
            unsafe { library.get::<ElapsedTime>(name) }.ok().map(|symbol| *symbol)
        });
    // SAFETY: `cuCtxGetId` has the signature of `GetId` in every driver that has it.
    let context_id = unsafe { library.get::<GetId>("cuCtxGetId") }.ok().map(|symbol| *symbol);
    // SAFETY: no real driver has this one.
    let now = unsafe { library.get::<Now>("gpu_time_sim_now") };
    let simulated_now = now.ok().map(|symbol| *symbol);
    let context_limit =
        // SAFETY: `cuCtxGetLimit` has the signature of `GetLimit` in every driver.
        unsafe { library.get::<GetLimit>("cuCtxGetLimit") }.ok().map(|symbol| *symbol);
    let stream_attribute =
        // SAFETY: `cuStreamGetAttribute` has the signature of `GetAttribute` in every driver that
        // has it.
        unsafe { library.get::<GetAttribute>("cuStreamGetAttribute") }.ok().map(|symbol| *symbol);
    let free_async =
        // SAFETY: `cuMemFreeAsync` has the signature of `FreeAsync` in every driver that has it.
        unsafe { library.get::<FreeAsync>("cuMemFreeAsync") }.ok().map(|symbol| *symbol);
    // SAFETY: both have had these signatures in every driver.
    let often = unsafe {
        (
            library.get::<IsCapturing>("cuStreamIsCapturing").map(|symbol| *symbol),
            library.get::<EventRecord>("cuEventRecord").map(|symbol| *symbol),
        )
    };
    match (elapsed_time, often) {
        (Some(elapsed_time), (Ok(is_capturing), Ok(event_record))) => {
            let symbols = Symbols {
                context_id,
                is_capturing,
                event_record,
                simulated_now,
                elapsed_time,
                context_limit,
                stream_attribute,
                free_async,
                graph: GraphSymbols::load(library),
                replay: ReplaySymbols::load(library),
                start_ns: 0,
            };
            let since_start_ns = clock::since_start_ns(Instant::now());
            Ok(Symbols { start_ns: symbols.now_ns().saturating_sub(since_start_ns), ..symbols })
        }
        _ => Err("the CUDA driver has no `cuEventElapsedTime`".to_owned()),
    }
}

/// Returns the time when the process was started, by the clock that dates brackets.
pub(crate) fn start_ns() -> u64 {
    symbols().map_or(0, |symbols| symbols.start_ns)
}

/// Opens the library that the process has loaded, or would load.
fn open() -> Option<Library> {
    ["libcuda.so", "libcuda.so.1"].into_iter().find_map(|name| {
        // SAFETY: loading the CUDA driver runs its initializers, as cudarc does under the same
        // names.
        unsafe { Library::new(name) }.ok()
    })
}

/// Returns the version of CUDA that the driver implements, such as `13.0`.
pub(crate) fn driver_version() -> Option<String> {
    symbols().ok()?;
    let mut version: c_int = 0;
    // SAFETY: writes one integer; needs no context.
    check(unsafe { sys::cuDriverGetVersion(&raw mut version) }).ok()?;
    Some(format!("{}.{}", version / 1000, version % 1000 / 10))
}
