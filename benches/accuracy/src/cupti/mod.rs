//! CUPTI's activity records: when the device ran what, by the toolkit's own library.
//!
//! The library is opened at run time, so that this builds without a toolkit.

mod activity;

pub use activity::Activity;

use std::alloc::{Layout, alloc, dealloc};
use std::ffi::{CStr, c_char, c_void};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};

use libloading::Library;

use crate::Failure;

type Status = u32;
const SUCCESS: Status = 0;
/// What `cuptiActivityGetNextRecord` answers at a buffer's end: `CUPTI_ERROR_MAX_LIMIT_REACHED`.
const MAX_LIMIT_REACHED: Status = 12;

type Request = extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
type Complete = extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);
type RegisterCallbacks = unsafe extern "C" fn(Request, Complete) -> Status;
type Enable = unsafe extern "C" fn(u32) -> Status;
type FlushAll = unsafe extern "C" fn(u32) -> Status;
type NextRecord = unsafe extern "C" fn(*mut u8, usize, *mut *mut u8) -> Status;
type Dropped = unsafe extern "C" fn(*mut c_void, u32, *mut usize) -> Status;
type Version = unsafe extern "C" fn(*mut u32) -> Status;
type ResultString = unsafe extern "C" fn(Status, *mut *const c_char) -> Status;

struct Functions {
    flush_all: FlushAll,
    next_record: NextRecord,
    dropped: Dropped,
    result_string: ResultString,
    version: u32,
}

/// What CUPTI's callbacks, which get no pointer of ours, must reach.
static FUNCTIONS: OnceLock<Functions> = OnceLock::new();
static RECORDS: Mutex<Vec<Activity>> = Mutex::new(Vec::new());
/// What CUPTI last answered instead of a record.
static UNREADABLE: AtomicU32 = AtomicU32::new(SUCCESS);

/// CUPTI, recording kernels, copies and memsets of this process.
pub struct Cupti(&'static Functions);

impl Cupti {
    /// Begins to record. Of all calls of a process only the first may succeed, and it should come
    /// before the first driver call.
    ///
    /// # Errors
    /// No library was found, it lacks a function, or CUPTI refuses, as it does to a second profiler.
    pub fn start() -> Result<Cupti, Failure> {
        // Never unloaded: CUPTI calls back.
        let library: &'static Library = Box::leak(Box::new(open().ok_or(ABSENT)?));
        /// Takes a function of the library, as the type that is wanted.
        macro_rules! function {
            ($name:literal) => {
                // SAFETY: the type is the function's in every CUPTI since 9.
                *unsafe { library.get($name) }?
            };
        }
        let version_of: Version = function!("cuptiGetVersion");
        let register: RegisterCallbacks = function!("cuptiActivityRegisterCallbacks");
        let enable: Enable = function!("cuptiActivityEnable");
        let mut version = 0;
        // SAFETY: writes one integer.
        unsafe { version_of(&raw mut version) };
        let functions = Functions {
            flush_all: function!("cuptiActivityFlushAll"),
            next_record: function!("cuptiActivityGetNextRecord"),
            dropped: function!("cuptiActivityGetNumDroppedRecords"),
            result_string: function!("cuptiGetResultString"),
            version,
        };
        if FUNCTIONS.set(functions).is_err() {
            return Err("CUPTI records already".into());
        }
        let cupti = Cupti(FUNCTIONS.get().expect("just set"));
        // SAFETY: both callbacks live as long as the process.
        cupti.check(unsafe { register(request, complete) })?;
        for kind in activity::KINDS {
            // SAFETY: a kind that CUPTI knows.
            cupti.check(unsafe { enable(kind) })?;
        }
        Ok(cupti)
    }

    /// The version of CUPTI's interface, as `cuptiGetVersion` says it.
    pub fn version(&self) -> u32 {
        self.0.version
    }

    /// What the device has run since the last call, in its order. The device must be idle.
    ///
    /// # Errors
    /// CUPTI could not hand out its records, or had to drop some.
    pub fn take(&self) -> Result<Vec<Activity>, Failure> {
        const EVEN_UNFINISHED: u32 = 1;
        // SAFETY: no argument but a flag.
        self.check(unsafe { (self.0.flush_all)(EVEN_UNFINISHED) })?;
        self.check(UNREADABLE.load(Relaxed))?;
        let mut dropped = 0;
        // SAFETY: writes one integer; no context and stream 0 stand for all.
        self.check(unsafe { (self.0.dropped)(std::ptr::null_mut(), 0, &raw mut dropped) })?;
        if dropped > 0 {
            return Err(format!("CUPTI dropped {dropped} records").into());
        }
        let mut records =
            std::mem::take(&mut *RECORDS.lock().unwrap_or_else(PoisonError::into_inner));
        records.sort_by_key(|record| record.start_ns);
        Ok(records)
    }

    fn check(&self, status: Status) -> Result<(), Failure> {
        if status == SUCCESS {
            return Ok(());
        }
        let mut text: *const c_char = std::ptr::null();
        // SAFETY: writes the address of a constant text.
        let known = unsafe { (self.0.result_string)(status, &raw mut text) } == SUCCESS;
        let text = if known && !text.is_null() {
            // SAFETY: a constant text of CUPTI's.
            unsafe { CStr::from_ptr(text) }.to_string_lossy()
        } else {
            "an error that it has no name for".into()
        };
        Err(format!("CUPTI answers {status}: {text}").into())
    }
}

/// Where toolkits keep the libraries that need not be on the loader's path.
pub fn toolkit_folders() -> Vec<PathBuf> {
    let homes = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(std::env::var_os);
    let homes = homes.map(PathBuf::from).chain(["/usr/local/cuda".into(), "/opt/cuda".into()]);
    homes
        .flat_map(|home| {
            ["lib64", "extras/CUPTI/lib64", "targets/x86_64-linux/lib"].map(|part| home.join(part))
        })
        .filter(|folder| folder.is_dir())
        .collect()
}

/// What to say where there is none.
pub const ABSENT: &str = "there is no libcupti on this machine";

/// Whether there is a library to open.
pub fn is_present() -> bool {
    open().is_some()
}

fn open() -> Option<Library> {
    const NAMES: [&str; 3] = ["libcupti.so", "libcupti.so.13", "libcupti.so.12"];
    let plain = NAMES.into_iter().map(PathBuf::from);
    let toolkit = toolkit_folders().into_iter();
    let toolkit = toolkit.flat_map(|folder| NAMES.map(|name| folder.join(name)));
    plain.chain(toolkit).find_map(|path| {
        // SAFETY: loading CUPTI runs its initialisers.
        unsafe { Library::new(path) }.ok()
    })
}

const BUFFER: Layout = match Layout::from_size_align(4 << 20, 8) {
    Ok(layout) => layout,
    Err(_) => panic!("a power of two"),
};

extern "C" fn request(buffer: *mut *mut u8, size: *mut usize, most_records: *mut usize) {
    // SAFETY: CUPTI passes three places to write to; the size is not zero. Without memory the buffer
    // is null, and CUPTI counts what it drops.
    unsafe {
        *buffer = alloc(BUFFER);
        *size = BUFFER.size();
        *most_records = 0; // as many as fit
    }
}

extern "C" fn complete(_: *mut c_void, _: u32, buffer: *mut u8, _: usize, valid: usize) {
    let Some(functions) = FUNCTIONS.get() else { return };
    if buffer.is_null() {
        return;
    }
    let mut records = RECORDS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut record: *mut u8 = std::ptr::null_mut();
    loop {
        // SAFETY: the buffer holds so many valid bytes, and `record` is null or what was found last.
        match unsafe { (functions.next_record)(buffer, valid, &raw mut record) } {
            // SAFETY: CUPTI answered with a record.
            SUCCESS => records.extend(unsafe { Activity::read(record) }),
            MAX_LIMIT_REACHED => break,
            status => {
                UNREADABLE.store(status, Relaxed);
                break;
            }
        }
    }
    drop(records);
    // SAFETY: from `request`, and no longer CUPTI's.
    unsafe { dealloc(buffer, BUFFER) };
}
