//! A stand-in for CUPTI that returns the activities from the simulated driver's trace. The test
//! that uses it compiles it, using only the standard library.

use std::ffi::{CString, c_char, c_void};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

type Request = extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
type Complete = extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);

const SUCCESS: u32 = 0;
const MAX_LIMIT_REACHED: u32 = 12;
/// The size of a `CUpti_ActivityKernel10`. All records have this size here.
const RECORD: usize = 216;

static CALLBACKS: Mutex<Option<(Request, Complete)>> = Mutex::new(None);
/// The number of bytes returned from the trace so far.
static SEEN: Mutex<u64> = Mutex::new(0);

#[unsafe(no_mangle)]
extern "C" fn cuptiGetVersion(version: *mut u32) -> u32 {
    unsafe { *version = 0 };
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuptiActivityRegisterCallbacks(request: Request, complete: Complete) -> u32 {
    *CALLBACKS.lock().unwrap() = Some((request, complete));
    SUCCESS
}

/// `CUPTI_ACTIVITY_KIND_MEMSET` and `_CONCURRENT_KERNEL`.
const MEMSET: u32 = 2;
const KERNEL: u32 = 10;
static HAS_MEMSETS: AtomicBool = AtomicBool::new(false);

/// Switches a kind on or off. Refuses to switch kernels while memsets are on, where CUPTI may crash.
fn switch(kind: u32, is_on: bool) -> u32 {
    const NOT_COMPATIBLE: u32 = 6;
    match kind {
        KERNEL if HAS_MEMSETS.load(SeqCst) => return NOT_COMPATIBLE,
        MEMSET => HAS_MEMSETS.store(is_on, SeqCst),
        _ => {}
    }
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuptiActivityEnable(kind: u32) -> u32 {
    switch(kind, true)
}

#[unsafe(no_mangle)]
extern "C" fn cuptiSubscribe(_: *mut *mut c_void, _: *const c_void, _: *mut c_void) -> u32 {
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuptiEnableCallback(_: u32, _: *mut c_void, _: u32, _: u32) -> u32 {
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuptiFinalize() -> u32 {
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuptiActivityDisable(kind: u32) -> u32 {
    switch(kind, false)
}

#[unsafe(no_mangle)]
extern "C" fn cuptiActivityGetNumDroppedRecords(
    _context: *mut c_void,
    _stream: u32,
    dropped: *mut usize,
) -> u32 {
    unsafe { *dropped = 0 };
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuptiGetResultString(_status: u32, text: *mut *const c_char) -> u32 {
    unsafe { *text = c"an error of the stand-in".as_ptr() };
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuptiActivityFlushAll(_flag: u32) -> u32 {
    let Some((request, complete)) = *CALLBACKS.lock().unwrap() else { return SUCCESS };
    let path = std::env::var("GPU_TIME_TEST_SIM_TRACE").expect("tracing is enabled");
    let path = path.replace("%p", &std::process::id().to_string());
    let mut seen = SEEN.lock().unwrap();
    let mut trace = String::new();
    if let Ok(mut file) = File::open(path) {
        file.seek(SeekFrom::Start(*seen)).unwrap();
        *seen += file.read_to_string(&mut trace).unwrap() as u64;
    }
    let records: Vec<_> = trace.lines().filter_map(record).collect();
    let mut records = records.as_slice();
    while !records.is_empty() {
        let (mut buffer, mut size, mut most) = (null_mut(), 0, 0);
        request(&raw mut buffer, &raw mut size, &raw mut most);
        // At most 100 records per buffer, so that several buffers are needed.
        let fit = records.len().min(size / RECORD).min(100);
        for (i, record) in records[..fit].iter().enumerate() {
            let to = unsafe { buffer.add(i * RECORD) };
            unsafe { record.as_ptr().cast::<u8>().copy_to_nonoverlapping(to, RECORD) };
        }
        complete(null_mut(), 0, buffer, size, fit * RECORD);
        records = &records[fit..];
    }
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuptiActivityGetNextRecord(
    buffer: *mut u8,
    valid: usize,
    record: *mut *mut u8,
) -> u32 {
    let next = match unsafe { *record } {
        last if last.is_null() => buffer,
        last => unsafe { last.add(RECORD) },
    };
    if next as usize + RECORD > buffer as usize + valid {
        return MAX_LIMIT_REACHED;
    }
    unsafe { *record = next };
    SUCCESS
}

/// Converts a trace line to a record. Returns `None` for kinds that are not recorded.
fn record(line: &str) -> Option<[u64; RECORD / 8]> {
    let field = |name: &str| {
        let (_, rest) = line.split_once(&format!("\"{name}\":"))?;
        Some(rest.split([',', '}']).next()?.trim_matches('"'))
    };
    let kind = match field("kind")? {
        "copy" => 1,
        "memset" => 2,
        "kernel" => 10,
        _ => return None,
    };
    let start: u64 = field("start_ns")?.parse().ok()?;
    let length: u64 = field("duration_ns")?.parse().ok()?;
    let mut words = [u64::MAX; RECORD / 8];
    words[0] = u64::MAX << 32 | kind;
    words[2] = start;
    words[3] = start + length;
    // Leaked, because names live as long as CUPTI is loaded.
    words[13] = CString::new(field("name")?).ok()?.into_raw() as u64;
    Some(words)
}
