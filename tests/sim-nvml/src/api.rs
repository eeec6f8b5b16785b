//! NVML's exported functions, with the signatures from `nvml.h`. Every result comes from the
//! script, except for locked clocks, which the library remembers.

use std::ffi::{CStr, c_char};
use std::thread;

use crate::device::{
    Code, INSUFFICIENT_SIZE, INVALID_ARGUMENT, Library, NOT_FOUND, NOT_SUPPORTED, library, trace,
};
use crate::script::Process;

/// A marker that distinguishes this library from the real one.
#[unsafe(no_mangle)]
pub extern "C" fn gpu_time_sim_nvml() {}

/// `nvmlFieldValue_t`.
#[repr(C)]
pub struct FieldValue {
    field: u32,
    scope: u32,
    timestamp: i64,
    latency_us: i64,
    kind: u32,
    result: Code,
    value: u64,
}

/// `nvmlViolationTime_t`.
#[repr(C)]
pub struct ViolationTime {
    reference_us: u64,
    violation_ns: u64,
}

/// `nvmlProcessInfo_t`.
#[repr(C)]
pub struct ProcessInfo {
    id: u32,
    used_bytes: u64,
    gpu_instance: u32,
    compute_instance: u32,
}

/// `nvmlGpmSupport_t`.
#[repr(C)]
pub struct GpmSupport {
    version: u32,
    is_supported: u32,
}

/// What `nvmlGpmSample_t` points to: the handle of the device.
pub struct GpmSample {
    device: usize,
}

/// `nvmlGpmMetric_t`.
#[repr(C)]
pub struct GpmMetric {
    id: u32,
    result: Code,
    value: f64,
    texts: [usize; 3],
}

/// `nvmlGpmMetricsGet_t`.
#[repr(C)]
pub struct GpmMetricsGet {
    version: u32,
    count: u32,
    samples: [*mut GpmSample; 2],
    metrics: [GpmMetric; 210],
}

const UNSIGNED_LONG_LONG: u32 = 3;
const NO_INSTANCE: u32 = u32::MAX;
const SM: u32 = 1;
const MEMORY: u32 = 2;
/// The first driver version with new numbers for the clock event reason fields.
const RENUMBERED_IN: (u32, u32) = (580, 82);

/// Defines exported functions: `fn name(argument: type, …) |library| result;`
macro_rules! nvml {
    ($(fn $name:ident($($arg:ident: $type:ty),*) |$library:pat_param| $body:expr;)+) => {$(
        /// See `nvml.h`. Every pointer must be null, or valid for the values that the function
        /// writes.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        pub unsafe extern "C" fn $name($($arg: $type),*) -> Code {
            run(stringify!($name), |$library| $body)
        }
    )+};
}

/// Executes one call: hangs or fails as scripted, or runs `body`.
fn run(name: &str, body: impl FnOnce(&mut Library) -> Result<(), Code>) -> Code {
    let result = library().and_then(|mut library| {
        if library.script.hanging.contains(name) {
            drop(library);
            trace(&format!("hangs {name}"));
            loop {
                thread::park();
            }
        }
        match library.script.failing.get(name) {
            Some(&code) => Err(code),
            None => body(&mut library),
        }
    });
    result.err().unwrap_or(0)
}

/// Stores a result. Fails if the pointer is null.
fn put<T>(to: *mut T, value: T) -> Result<(), Code> {
    if to.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: the caller guarantees that a non-null pointer is valid for one value.
    unsafe { to.write(value) };
    Ok(())
}

/// Stores a NUL-terminated string.
fn put_text(to: *mut c_char, len: u32, text: &str) -> Result<(), Code> {
    if text.len() >= len as usize {
        return Err(INSUFFICIENT_SIZE);
    }
    let bytes = text.bytes().chain([0]);
    // SAFETY: the caller's buffer has `len` bytes, and at most `len` are written.
    bytes.enumerate().try_for_each(|(i, byte)| put(unsafe { to.add(i) }, byte as c_char))
}

/// Stores a list if the caller has room for it (`*count` items). Always stores the length.
fn put_list<T>(count: *mut u32, to: *mut T, list: Vec<T>) -> Result<(), Code> {
    if count.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: the caller guarantees that a non-null pointer points to a number.
    let room = unsafe { count.read() } as usize;
    put(count, list.len() as u32)?;
    if list.len() > room {
        return Err(INSUFFICIENT_SIZE);
    }
    // SAFETY: there is room for the whole list.
    list.into_iter().enumerate().try_for_each(|(i, item)| put(unsafe { to.add(i) }, item))
}

fn infos(processes: &[Process]) -> Vec<ProcessInfo> {
    let info = |process: &Process| ProcessInfo {
        id: process.id(),
        used_bytes: 1 << 30,
        gpu_instance: NO_INSTANCE,
        compute_instance: NO_INSTANCE,
    };
    processes.iter().map(info).collect()
}

impl Library {
    /// Returns a field's number in older drivers, as used in scripts.
    fn old_field(&self, field: u32) -> u32 {
        let mut version = self.script.driver.split('.').map(|part| part.parse().unwrap_or(0));
        let version = (version.next().unwrap_or(0), version.next().unwrap_or(0));
        match field {
            269..=273 if version >= RENUMBERED_IN => field - 18,
            251..=268 if version >= RENUMBERED_IN => field + 5,
            field => field,
        }
    }

    /// Reads one of a device's fields.
    fn fill(&mut self, device: usize, value: &mut FieldValue) {
        let field = self.old_field(value.field);
        value.kind = UNSIGNED_LONG_LONG;
        match self.next(device, &format!("field {field}"), |device| device.fields.get(&field)) {
            Ok(ns) => (value.result, value.value) = (0, ns),
            Err(code) => value.result = code,
        }
    }
}

nvml! {
    fn nvmlInit_v2() |_| Ok(());
    fn nvmlShutdown() |_| Ok(());
    fn nvmlSystemGetDriverVersion(to: *mut c_char, len: u32) |library| {
        put_text(to, len, &library.script.driver)
    };
    fn nvmlSystemGetProcessName(id: u32, to: *mut c_char, len: u32) |library| {
        let devices = library.script.devices.iter();
        let mut processes = devices.flat_map(|device| device.processes.iter());
        let process = processes.find(|process| process.id() == id).ok_or(NOT_FOUND)?;
        put_text(to, len, &process.name)
    };
    fn nvmlDeviceGetHandleByIndex_v2(index: u32, to: *mut usize) |library| {
        let handle = index as usize + 1;
        library.device(handle)?;
        put(to, handle)
    };
    fn nvmlDeviceGetHandleByPciBusId_v2(id: *const c_char, to: *mut usize) |library| {
        if id.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        // SAFETY: the caller guarantees that a non-null pointer is a NUL-terminated string.
        let id = unsafe { CStr::from_ptr(id) }.to_str().map_err(|_| INVALID_ARGUMENT)?;
        put(to, library.find(id)?)
    };
    fn nvmlDeviceGetClockInfo(device: usize, kind: u32, to: *mut u32) |library| match kind {
        SM => put(to, library.sm_mhz(device)?),
        MEMORY => put(to, library.next(device, "memory", |device| Some(&device.mem_mhz))?),
        _ => Err(INVALID_ARGUMENT),
    };
    fn nvmlDeviceGetMaxClockInfo(device: usize, kind: u32, to: *mut u32) |library| match kind {
        SM => put(to, library.device(device)?.sm_max_mhz),
        MEMORY => put(to, library.device(device)?.mem_max_mhz),
        _ => Err(INVALID_ARGUMENT),
    };
    fn nvmlDeviceGetSupportedGraphicsClocks(
        device: usize, memory: u32, count: *mut u32, to: *mut u32
    ) |library| {
        let device = library.device(device)?;
        if memory != device.mem_max_mhz {
            return Err(NOT_FOUND);
        }
        put_list(count, to, (345..=device.sm_max_mhz).rev().step_by(15).collect())
    };
    fn nvmlDeviceGetCurrentClocksThrottleReasons(device: usize, to: *mut u64) |library| {
        put(to, library.next(device, "reasons", |device| Some(&device.reasons))?)
    };
    fn nvmlDeviceGetFieldValues(device: usize, count: i32, values: *mut FieldValue) |library| {
        library.device(device)?;
        if values.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        for i in 0..usize::try_from(count).map_err(|_| INVALID_ARGUMENT)? {
            // SAFETY: the caller passes `count` values with the field numbers set.
            library.fill(device, unsafe { &mut *values.add(i) });
        }
        Ok(())
    };
    fn nvmlDeviceGetViolationStatus(device: usize, policy: u32, to: *mut ViolationTime) |library| {
        let what = format!("policy {policy}");
        let violation_ns = library.next(device, &what, |device| device.policies.get(&policy))?;
        put(to, ViolationTime { reference_us: 0, violation_ns })
    };
    fn nvmlDeviceGetTemperature(device: usize, _sensor: u32, to: *mut u32) |library| {
        put(to, library.device(device)?.temperature_c)
    };
    fn nvmlDeviceGetPowerUsage(device: usize, to: *mut u32) |library| {
        put(to, library.device(device)?.power_mw)
    };
    fn nvmlDeviceGetPersistenceMode(device: usize, to: *mut u32) |library| {
        put(to, u32::from(library.device(device)?.persistence))
    };
    fn nvmlDeviceGetMigMode(device: usize, current: *mut u32, pending: *mut u32) |library| {
        let mode = library.device(device)?.mig.ok_or(NOT_SUPPORTED)?;
        put(current, u32::from(mode))?;
        put(pending, u32::from(mode))
    };
    fn nvmlDeviceGetComputeRunningProcesses_v3(
        device: usize, count: *mut u32, to: *mut ProcessInfo
    ) |library| {
        put_list(count, to, infos(&library.device(device)?.processes))
    };
    fn nvmlDeviceGetMPSComputeRunningProcesses_v3(
        device: usize, count: *mut u32, to: *mut ProcessInfo
    ) |library| {
        put_list(count, to, infos(&library.device(device)?.mps_processes))
    };
    fn nvmlGpmQueryDeviceSupport(device: usize, to: *mut GpmSupport) |library| {
        let is_supported = u32::from(library.device(device)?.gpm.is_some());
        put(to, GpmSupport { version: 1, is_supported })
    };
    fn nvmlGpmSampleAlloc(to: *mut *mut GpmSample) |_| {
        put(to, Box::into_raw(Box::new(GpmSample { device: 0 })))
    };
    fn nvmlGpmSampleFree(sample: *mut GpmSample) |_| {
        // SAFETY: the sample comes from `nvmlGpmSampleAlloc`, and is freed once.
        drop(unsafe { Box::from_raw(sample) });
        Ok(())
    };
    fn nvmlGpmSampleGet(device: usize, sample: *mut GpmSample) |library| {
        library.device(device)?;
        put(sample, GpmSample { device })
    };
    fn nvmlGpmMetricsGet(get: *mut GpmMetricsGet) |library| {
        // SAFETY: the caller passes a request with samples that it has not freed.
        let (get, device) = unsafe { (&mut *get, (*(*get).samples[1]).device) };
        let metrics = library.device(device)?.gpm.as_ref().ok_or(NOT_SUPPORTED)?;
        for metric in &mut get.metrics[..get.count as usize] {
            match metrics.get(&metric.id) {
                Some(&value) => (metric.result, metric.value) = (0, value),
                None => metric.result = NOT_SUPPORTED,
            }
        }
        Ok(())
    };
    fn nvmlDeviceSetGpuLockedClocks(device: usize, min: u32, max: u32) |library| {
        library.lock(device, min, max)
    };
    fn nvmlDeviceResetGpuLockedClocks(device: usize) |library| library.reset(device);
}
