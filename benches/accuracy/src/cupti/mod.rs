//! Records activities with CUPTI: the start and end of each kernel, copy and memset.
//!
//! The library is loaded at run time, so that the crate builds without a toolkit.

mod activity;
mod launches;
mod status;

pub use activity::Activity;

use std::alloc::{Layout, alloc, dealloc};
use std::ffi::{CStr, c_char, c_void};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};

use libloading::Library;

use self::status::{MAX_LIMIT_REACHED, SUCCESS, Status};
use crate::failure::Failure;

type Request = extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
type Complete = extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);
type RegisterCallbacks = unsafe extern "C" fn(Request, Complete) -> Status;
type Enable = unsafe extern "C" fn(u32) -> Status;
type Finalize = unsafe extern "C" fn() -> Status;
type FlushAll = unsafe extern "C" fn(u32) -> Status;
type NextRecord = unsafe extern "C" fn(*mut u8, usize, *mut *mut u8) -> Status;
type Dropped = unsafe extern "C" fn(*mut c_void, u32, *mut usize) -> Status;
type Version = unsafe extern "C" fn(*mut u32) -> Status;
type ResultString = unsafe extern "C" fn(Status, *mut *const c_char) -> Status;

struct Functions {
    register: RegisterCallbacks,
    finalize: Finalize,
    enable: Enable,
    disable: Enable,
    flush_all: FlushAll,
    next_record: NextRecord,
    dropped: Dropped,
    result_string: ResultString,
    launches: launches::CallbackFunctions,
    version: u32,
}

/// CUPTI's functions. Static, like the records, because CUPTI's callbacks do not receive a user
/// pointer.
static FUNCTIONS: OnceLock<Functions> = OnceLock::new();
static RECORDS: Mutex<Vec<Activity>> = Mutex::new(Vec::new());
/// The last error that CUPTI returned instead of a record.
static UNREADABLE: AtomicU32 = AtomicU32::new(SUCCESS);

/// The order in which the kinds of activities are switched.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Kernels are switched on first and off last.
    KernelsAround,
    /// Kernels are switched on last and off first.
    KernelsInside,
}

/// CUPTI, which records this process's kernels, copies and memsets.
pub struct Cupti(&'static Functions);

impl Cupti {
    /// Loads CUPTI and starts recording. The errors are those of [`load`](Cupti::load).
    pub fn start() -> Result<Cupti, Failure> {
        let cupti = Cupti::load()?;
        cupti.switch(true, Order::KernelsAround)?;
        Ok(cupti)
    }

    /// Loads CUPTI, which then records nothing yet. Only the first call in a process can succeed. It should
    /// precede the first driver call.
    ///
    /// # Errors
    /// No library is found, it lacks a function, or CUPTI refuses, as it does for a second
    /// profiler.
    pub fn load() -> Result<Cupti, Failure> {
        // Never unloaded, because CUPTI calls back.
        let library: &'static Library = Box::leak(Box::new(open().ok_or(ABSENT)?));
        /// Loads a function from the library. Its type is inferred from the context.
        macro_rules! function {
            ($name:literal) => {
                // SAFETY: the function has this type in every CUPTI since 9.
                *unsafe { library.get($name) }?
            };
        }
        let version_of: Version = function!("cuptiGetVersion");
        let mut version = 0;
        // SAFETY: the call writes one integer.
        unsafe { version_of(&raw mut version) };
        let functions = Functions {
            register: function!("cuptiActivityRegisterCallbacks"),
            finalize: function!("cuptiFinalize"),
            enable: function!("cuptiActivityEnable"),
            disable: function!("cuptiActivityDisable"),
            flush_all: function!("cuptiActivityFlushAll"),
            next_record: function!("cuptiActivityGetNextRecord"),
            dropped: function!("cuptiActivityGetNumDroppedRecords"),
            result_string: function!("cuptiGetResultString"),
            launches: launches::CallbackFunctions::of(library)?,
            version,
        };
        if FUNCTIONS.set(functions).is_err() {
            return Err("CUPTI is already recording".into());
        }
        let cupti = Cupti(FUNCTIONS.get().expect("just set"));
        cupti.attach()?;
        Ok(cupti)
    }

    /// Attaches CUPTI to the process, which is only needed after [`detach`](Cupti::detach).
    ///
    /// # Errors
    /// CUPTI refuses.
    pub fn attach(&self) -> Result<(), Failure> {
        // SAFETY: both callbacks live as long as the process.
        self.check(unsafe { (self.0.register)(request, complete) })
    }

    /// Switches recording on or off.
    ///
    /// # Errors
    /// CUPTI refuses.
    pub fn switch(&self, is_on: bool, order: Order) -> Result<(), Failure> {
        let mut kinds = activity::KINDS;
        if is_on == (order == Order::KernelsAround) {
            kinds.reverse();
        }
        let switch = if is_on { self.0.enable } else { self.0.disable };
        for kind in kinds {
            // SAFETY: CUPTI knows the kind.
            self.check(unsafe { switch(kind) })?;
        }
        Ok(())
    }

    /// Detaches CUPTI from the process. Its callbacks and records end.
    ///
    /// # Safety
    /// No other thread may be in a function of the driver or of CUPTI, and graphs that already
    /// exist must not be launched afterwards.
    ///
    /// # Errors
    /// CUPTI refuses.
    pub unsafe fn detach(&self) -> Result<(), Failure> {
        // SAFETY: the caller's promise.
        self.check(unsafe { (self.0.finalize)() })
    }

    /// Makes CUPTI call an empty callback for every launch from now on. Only the first call can succeed.
    ///
    /// # Errors
    /// CUPTI refuses.
    pub fn call_back_launches(&self) -> Result<(), Failure> {
        self.0.launches.call_back(|status| self.check(status))
    }

    /// Delivers the records of activities that have ended.
    ///
    /// # Errors
    /// CUPTI refuses.
    pub fn flush(&self) -> Result<(), Failure> {
        // SAFETY: the only argument is a flag.
        self.check(unsafe { (self.0.flush_all)(0) })
    }

    /// Returns CUPTI's API version, from `cuptiGetVersion`.
    pub fn version(&self) -> u32 {
        self.0.version
    }

    /// Returns the activities since the last call, ordered by start time. The device must be idle.
    ///
    /// # Errors
    /// CUPTI cannot return its records or has dropped some.
    pub fn take(&self) -> Result<Vec<Activity>, Failure> {
        /// `CUPTI_ACTIVITY_FLAG_FLUSH_FORCED`.
        const FORCED: u32 = 1;
        // SAFETY: the only argument is a flag.
        self.check(unsafe { (self.0.flush_all)(FORCED) })?;
        self.check(UNREADABLE.load(Relaxed))?;
        let mut dropped = 0;
        // SAFETY: the call writes one integer. A null context and stream 0 mean all contexts and
        // streams.
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
        // SAFETY: the call writes the address of a constant string.
        let known = unsafe { (self.0.result_string)(status, &raw mut text) } == SUCCESS;
        let text = if known && !text.is_null() {
            // SAFETY: CUPTI returned a constant string.
            unsafe { CStr::from_ptr(text) }.to_string_lossy()
        } else {
            "unknown error".into()
        };
        Err(format!("CUPTI error {status}: {text}").into())
    }
}

/// Returns the library folders of installed toolkits, which are often not on the loader path.
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

/// The error message without CUPTI. `gpu/run.sh` parses it.
pub const ABSENT: &str = "there is no libcupti on this machine";

/// Returns `true` if the library can be loaded.
pub fn is_present() -> bool {
    open().is_some()
}

fn open() -> Option<Library> {
    const NAMES: [&str; 3] = ["libcupti.so", "libcupti.so.13", "libcupti.so.12"];
    let plain = NAMES.into_iter().map(PathBuf::from);
    let toolkit = toolkit_folders().into_iter();
    let toolkit = toolkit.flat_map(|folder| NAMES.map(|name| folder.join(name)));
    plain.chain(toolkit).find_map(|path| {
        // SAFETY: loading CUPTI runs only its initializers.
        unsafe { Library::new(path) }.ok()
    })
}

const BUFFER: Layout = match Layout::from_size_align(4 << 20, 8) {
    Ok(layout) => layout,
    Err(_) => panic!("the alignment is not a power of two"),
};

/// Allocates a buffer for CUPTI to fill.
extern "C" fn request(buffer: *mut *mut u8, size: *mut usize, max_records: *mut usize) {
    // SAFETY: CUPTI passes three valid pointers, and the layout's size is not zero. If the
    // allocation fails, the buffer is null and CUPTI counts the dropped records.
    unsafe {
        *buffer = alloc(BUFFER);
        *size = BUFFER.size();
        *max_records = 0; // no limit
    }
}

/// Reads the records from a filled buffer and frees it.
extern "C" fn complete(_: *mut c_void, _: u32, buffer: *mut u8, _: usize, valid: usize) {
    let Some(functions) = FUNCTIONS.get() else { return };
    if buffer.is_null() {
        return;
    }
    let mut records = RECORDS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut record: *mut u8 = std::ptr::null_mut();
    loop {
        // SAFETY: the buffer has `valid` valid bytes, and `record` is null or the previous record.
        match unsafe { (functions.next_record)(buffer, valid, &raw mut record) } {
            // SAFETY: CUPTI returned a record.
            SUCCESS => records.extend(unsafe { Activity::read(record) }),
            MAX_LIMIT_REACHED => break,
            status => {
                UNREADABLE.store(status, Relaxed);
                break;
            }
        }
    }
    drop(records);
    // SAFETY: the buffer was allocated in `request` with this layout, and CUPTI no longer uses it.
    unsafe { dealloc(buffer, BUFFER) };
}
