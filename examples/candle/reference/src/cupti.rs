//! Calls to CUPTI, which is loaded at run time.

use std::alloc::{Layout, alloc, dealloc};
use std::collections::HashMap;
use std::error::Error;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::{Mutex, OnceLock, PoisonError};

use libloading::Library;

use crate::activity::{Activity, KINDS, Work};

pub type Result<T> = std::result::Result<T, Box<dyn Error>>;
type Status = u32;
const SUCCESS: Status = 0;
/// `CUPTI_ERROR_MAX_LIMIT_REACHED`, returned at the end of a buffer.
const END_OF_BUFFER: Status = 12;

type Request = extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
type Complete = extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);
type Callback = extern "C" fn(*mut c_void, u32, u32, *const c_void);
type Subscribe = unsafe extern "C" fn(*mut *mut c_void, Callback, *mut c_void) -> Status;
type RegisterCallbacks = unsafe extern "C" fn(Request, Complete) -> Status;
type Enable = unsafe extern "C" fn(u32) -> Status;
type Version = unsafe extern "C" fn(*mut u32) -> Status;
type FlushAll = unsafe extern "C" fn(u32) -> Status;
type NextRecord = unsafe extern "C" fn(*mut u8, usize, *mut *mut u8) -> Status;
type Dropped = unsafe extern "C" fn(*mut c_void, u32, *mut usize) -> Status;

struct Functions {
    version: u32,
    flush_all: FlushAll,
    next_record: NextRecord,
    dropped: Dropped,
}

/// Everything that CUPTI delivered.
#[derive(Default)]
pub struct Recorded {
    pub cupti_version: u32,
    /// The start and end of each activity, grouped by its work.
    pub times: HashMap<Work, Vec<(u64, u64)>>,
    /// Activities without a start or an end.
    pub zero_times: u64,
    /// Activities that CUPTI could not record.
    pub dropped: usize,
    /// The error that ended a buffer early.
    pub unreadable: Option<Status>,
}

// Global, because CUPTI passes no user data to the buffer callbacks.
static FUNCTIONS: OnceLock<Functions> = OnceLock::new();
static RECORDED: Mutex<Option<Recorded>> = Mutex::new(None);

/// Loads CUPTI and enables the activity kinds in [`KINDS`].
pub fn start() -> Result<()> {
    let names = ["libcupti.so.13", "libcupti.so.12", "libcupti.so"];
    // SAFETY: loading CUPTI runs only its initializers.
    let library = names.iter().find_map(|name| unsafe { Library::new(*name) }.ok());
    let library = library.ok_or("no libcupti on the loader's path")?;
    // Never unloaded, because CUPTI may run code at any time.
    let library: &'static Library = Box::leak(Box::new(library));
    /// Loads a function. Its type is inferred.
    macro_rules! function {
        ($name:literal) => {
            // SAFETY: the function has this type in CUPTI 11 to 13.
            *unsafe { library.get($name) }?
        };
    }
    let subscribe: Subscribe = function!("cuptiSubscribe");
    let register: RegisterCallbacks = function!("cuptiActivityRegisterCallbacks");
    let enable: Enable = function!("cuptiActivityEnable");
    let version: Version = function!("cuptiGetVersion");
    let mut functions = Functions {
        version: 0,
        flush_all: function!("cuptiActivityFlushAll"),
        next_record: function!("cuptiActivityGetNextRecord"),
        dropped: function!("cuptiActivityGetNumDroppedRecords"),
    };
    // SAFETY: the call writes one integer.
    check("cuptiGetVersion", unsafe { version(&raw mut functions.version) })?;
    FUNCTIONS.set(functions).map_err(|_| "this library is loaded twice")?;

    let mut subscriber = null_mut();
    // Subscribes without enabling a callback, only to keep other clients from replacing the buffer
    // callbacks.
    // SAFETY: the callback lives as long as the process.
    let subscribed = unsafe { subscribe(&raw mut subscriber, ignore, null_mut()) };
    check("cuptiSubscribe", subscribed)?;
    // SAFETY: both callbacks live as long as the process.
    check("cuptiActivityRegisterCallbacks", unsafe { register(request, complete) })?;
    for kind in KINDS {
        // SAFETY: CUPTI knows the kind.
        check("cuptiActivityEnable", unsafe { enable(kind) })?;
    }
    Ok(())
}

/// Returns everything recorded so far.
pub fn finish() -> Result<Recorded> {
    /// `CUPTI_ACTIVITY_FLAG_FLUSH_FORCED`.
    const FORCED: u32 = 1;
    let functions = FUNCTIONS.get().ok_or("it was not started")?;
    // SAFETY: the only argument is a flag.
    check("cuptiActivityFlushAll", unsafe { (functions.flush_all)(FORCED) })?;
    let recorded = RECORDED.lock().unwrap_or_else(PoisonError::into_inner).take();
    let mut recorded = recorded.unwrap_or_default();
    if let Some(status) = recorded.unreadable {
        check("cuptiActivityGetNextRecord", status)?;
    }
    recorded.cupti_version = functions.version;
    // SAFETY: the call writes one integer. A null context with stream 0 stands for all contexts.
    let counted = unsafe { (functions.dropped)(null_mut(), 0, &raw mut recorded.dropped) };
    check("cuptiActivityGetNumDroppedRecords", counted)?;
    Ok(recorded)
}

fn check(function: &str, status: Status) -> Result<()> {
    if status == SUCCESS { Ok(()) } else { Err(format!("{function}: error {status}").into()) }
}

const BUFFER: Layout = match Layout::from_size_align(4 << 20, 8) {
    Ok(layout) => layout,
    Err(_) => panic!("the alignment is not a power of two"),
};

extern "C" fn ignore(_: *mut c_void, _: u32, _: u32, _: *const c_void) {}

/// Allocates a buffer for CUPTI to fill.
extern "C" fn request(buffer: *mut *mut u8, size: *mut usize, max_records: *mut usize) {
    // SAFETY: CUPTI passes three valid pointers, and the layout's size is not zero. Without memory
    // the buffer is null, and CUPTI counts the dropped records.
    unsafe {
        *buffer = alloc(BUFFER);
        *size = BUFFER.size();
        *max_records = 0; // no limit
    }
}

/// Reads the records of a filled buffer and frees it.
extern "C" fn complete(_: *mut c_void, _: u32, buffer: *mut u8, _: usize, valid: usize) {
    let Some(functions) = FUNCTIONS.get() else { return };
    if buffer.is_null() {
        return;
    }
    let mut recorded = RECORDED.lock().unwrap_or_else(PoisonError::into_inner);
    let recorded = recorded.get_or_insert_default();
    let mut record: *mut u8 = null_mut();
    loop {
        // SAFETY: the buffer has `valid` valid bytes, and `record` is null or the previous record.
        match unsafe { (functions.next_record)(buffer, valid, &raw mut record) } {
            SUCCESS => {}
            END_OF_BUFFER => break,
            status => {
                recorded.unreadable = Some(status);
                break;
            }
        }
        // SAFETY: CUPTI returned a record.
        let Some(Activity { work, start_ns, end_ns }) = (unsafe { Activity::read(record) }) else {
            continue;
        };
        if start_ns == 0 || end_ns < start_ns {
            recorded.zero_times += 1;
        } else {
            recorded.times.entry(work).or_default().push((start_ns, end_ns));
        }
    }
    // SAFETY: `request` allocated the buffer with this layout, and CUPTI no longer uses it.
    unsafe { dealloc(buffer, BUFFER) };
}
