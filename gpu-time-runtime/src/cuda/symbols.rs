//! Whether there is a driver, and the few symbols that must be looked up by hand.

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
use crate::cuda::stream_attribute::GetAttribute;

type EventRecord = unsafe extern "C" fn(CUevent, CUstream) -> CUresult;
type IsCapturing = unsafe extern "C" fn(CUstream, *mut CUstreamCaptureStatus) -> CUresult;
type Now = unsafe extern "C" fn() -> u64;
type ElapsedTime = unsafe extern "C" fn(*mut f32, CUevent, CUevent) -> CUresult;
type GetLimit = unsafe extern "C" fn(*mut usize, CUlimit) -> CUresult;
type FreeAsync = unsafe extern "C" fn(CUdeviceptr, CUstream) -> CUresult;
type GetId = unsafe extern "C" fn(CUcontext, *mut u64) -> CUresult;

/// The symbols that cudarc offers for some CUDA versions only, chosen by the application's features,
/// so that the runtime cannot name them; and before these, side by side, what every timed call calls:
/// between two driver calls each line of memory that is touched costs.
#[repr(C, align(64))]
pub(super) struct Symbols {
    /// Drivers since 12.0 tell a context from a later one at the same address.
    pub context_id: Option<GetId>,
    pub is_capturing: IsCapturing,
    pub event_record: EventRecord,
    /// The host's time as a simulated driver has it, whose calls take no time of the real host's.
    simulated_now: Option<Now>,
    pub elapsed_time: ElapsedTime,
    /// Of the current context. Without it nobody knows of persisting lines.
    pub context_limit: Option<GetLimit>,
    /// Drivers since 11.0 say which accesses of a stream are to persist.
    pub stream_attribute: Option<GetAttribute>,
    /// Drivers since 11.2 free memory without waiting for all that the GPU does. Without it none is freed.
    pub free_async: Option<FreeAsync>,
    /// What it takes to time a graph.
    pub graph: Option<GraphSymbols>,
    /// What it takes to replay calls in a graph of our own.
    pub replay: Option<ReplaySymbols>,
    /// When the process was started, by [`Symbols::now_ns`].
    start_ns: u64,
}

impl Symbols {
    /// The host's time in nanoseconds.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        match self.simulated_now {
            None => clock::now_ns(),
            // SAFETY: it takes nothing and answers a number.
            Some(now) => unsafe { now() },
        }
    }
}

/// What the runtime calls through cudarc, which panics where a symbol is missing.
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

/// The host's time in nanoseconds, by the clock that events are dated by. Loads nothing.
pub(crate) fn now_ns() -> u64 {
    match SYMBOLS.get() {
        Some(Ok(symbols)) => symbols.now_ns(),
        _ => clock::now_ns(),
    }
}

/// The driver's symbols, or why none of ours can be called.
pub(super) fn symbols() -> Result<&'static Symbols, &'static str> {
    if fork::is_forked() {
        return Err(fork::FORKED);
    }
    SYMBOLS.get_or_init(load).as_ref().map_err(String::as_str)
}

/// Why no driver call can be made, if so.
pub(crate) fn why_unusable() -> Option<&'static str> {
    symbols().err()
}

fn load() -> Result<Symbols, String> {
    let library = open().ok_or("no CUDA driver library (libcuda) was found")?;
    // It stays loaded for ever: exit handlers still call it.
    let library: &'static Library = Box::leak(Box::new(library));
    for &name in NEEDED {
        // SAFETY: the symbol is only looked for.
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
        // SAFETY: `cuStreamGetAttribute` has the signature of `GetAttribute` in every driver that has it.
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

/// When the process was started, by the clock that brackets are dated by.
pub(crate) fn start_ns() -> u64 {
    symbols().map_or(0, |symbols| symbols.start_ns)
}

/// Opens the library that the process has loaded already, or would load.
fn open() -> Option<Library> {
    ["libcuda.so", "libcuda.so.1"].into_iter().find_map(|name| {
        // SAFETY: loading the CUDA driver runs its initialisers, as cudarc does by the same names.
        unsafe { Library::new(name) }.ok()
    })
}

/// The version of CUDA that the driver implements, as `13.0`.
pub(crate) fn driver_version() -> Option<String> {
    symbols().ok()?;
    let mut version: c_int = 0;
    // SAFETY: writes one integer; needs no context.
    check(unsafe { sys::cuDriverGetVersion(&raw mut version) }).ok()?;
    Some(format!("{}.{}", version / 1000, version % 1000 / 10))
}
