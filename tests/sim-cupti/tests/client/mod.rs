//! A client of CUPTI, limited to the functions that the tests need. It reads the fields of records
//! at offsets that are the same in the headers of all versions.
#![allow(dead_code)] // each test file uses a part of this module

use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use gpu_time_sim_cupti::{SimCupti, Version};
use gpu_time_sim_driver::SimDriver;
use gpu_time_sim_driver::trace::{Command, Trace};
use libloading::{Library, Symbol};

pub const MEMCPY: u32 = 1;
pub const MEMSET: u32 = 2;
pub const PEER_COPY: u32 = 22;
pub const KERNELS: u32 = 10;
pub const LAUNCH: u32 = 307;
pub const GRAPH_LAUNCH: u32 = 514;
pub const LAUNCH_EX: u32 = 652;
pub const FORCED: u32 = 1;

pub const NOT_INITIALIZED: u32 = 15;
pub const TAKEN: u32 = 39;

/// A callback, at the entry or the exit of a driver call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub is_exit: bool,
    pub id: u32,
    pub name: String,
    pub correlation: u32,
    pub context: u64,
    pub context_id: u32,
    /// The first two arguments.
    pub arguments: [u64; 2],
    /// The result, at the exit.
    pub result: Option<i32>,
    /// The value that the client kept from the entry.
    pub kept: u64,
}

/// A record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    pub kind: u32,
    pub start: u64,
    pub end: u64,
    pub device: u32,
    pub context: u32,
    pub stream: u32,
    pub correlation: u32,
    pub graph_node: u64,
    pub name: String,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub registers: u16,
    pub shared_bytes: u32,
    pub copy_kind: u8,
    pub bytes: u64,
}

static CALLS: Mutex<Vec<Call>> = Mutex::new(Vec::new());
/// The records that were delivered, by buffer.
static BUFFERS: Mutex<Vec<Vec<Record>>> = Mutex::new(Vec::new());
/// Size of the buffers.
static BYTES: AtomicUsize = AtomicUsize::new(1 << 16);
/// All requests for buffers are declined.
static DECLINES: AtomicBool = AtomicBool::new(false);
/// The kind to switch on at the entry of the next call with a callback; 0 for none.
static AT_ENTRY: AtomicU32 = AtomicU32::new(0);
static REQUESTS: AtomicUsize = AtomicUsize::new(0);

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Installs the stand-in beside the driver.
pub fn with(sim: SimDriver, cupti: SimCupti) -> SimDriver {
    cupti.install(sim.dir()).unwrap();
    let (name, value) = cupti.variable();
    sim.with(name, value)
}

/// Installs a stand-in for CUPTI 13.0 with this script.
pub fn scripted(sim: SimDriver, script: &str) -> SimDriver {
    with(sim, SimCupti::default().script(script))
}

/// Reads the trace of the calling process.
pub fn trace() -> Trace {
    Trace::read(std::env::var_os("GPU_TIME_TEST_SIM_TRACE").unwrap().as_ref()).unwrap()
}

/// A client of the loaded library.
pub struct Client {
    library: Library,
    pub subscriber: *mut c_void,
}

#[repr(C)]
pub struct Parameters {
    pub size: usize,
    pub name: *const c_char,
    pub old_name: *mut c_char,
    pub old_name_size: usize,
    pub allows_others: u8,
    pub padding: [u8; 7],
}

type Unary = unsafe extern "C" fn(u32) -> u32;

impl Client {
    /// Loads the library of CUPTI 13.
    pub fn load() -> Self {
        Self::load_version(Version::V13_0)
    }

    pub fn load_version(version: Version) -> Self {
        // SAFETY: loading the library does not run any code.
        let library = unsafe { Library::new(version.file()) }.unwrap();
        Self { library, subscriber: ptr::null_mut() }
    }

    /// Loads the library, subscribes, and registers the functions for buffers.
    pub fn subscribed() -> Self {
        let mut client = Self::load();
        assert_eq!(client.subscribe(), 0);
        assert_eq!(client.register(), 0);
        client
    }

    fn get<T>(&self, name: &str) -> Symbol<'_, T> {
        // SAFETY: the callers pass the function's type from the headers.
        unsafe { self.library.get(name.as_bytes()) }.unwrap()
    }

    pub fn has(&self, name: &str) -> bool {
        // SAFETY: the symbol is not used.
        unsafe { self.library.get::<Unary>(name.as_bytes()) }.is_ok()
    }

    pub fn subscribe(&mut self) -> u32 {
        type Function =
            unsafe extern "C" fn(*mut *mut c_void, CallbackFunction, *mut c_void) -> u32;
        let mut handle = ptr::null_mut();
        let function = self.get::<Function>("cuptiSubscribe");
        // SAFETY: the types match the headers.
        let result = unsafe { function(&mut handle, called, ptr::null_mut()) };
        self.subscriber = handle;
        result
    }

    /// Subscribes with parameters. Returns the result and the name of the other client.
    pub fn subscribe_with(&mut self, allows_others: bool) -> (u32, String) {
        type Function = unsafe extern "C" fn(
            *mut *mut c_void,
            CallbackFunction,
            *mut c_void,
            *const Parameters,
        ) -> u32;
        let mut handle = ptr::null_mut();
        let mut old_name = [0 as c_char; 64];
        let parameters = Parameters {
            size: size_of::<Parameters>(),
            name: c"test".as_ptr(),
            old_name: old_name.as_mut_ptr(),
            old_name_size: old_name.len(),
            allows_others: allows_others.into(),
            padding: [0; 7],
        };
        let function = self.get::<Function>("cuptiSubscribe_v2");
        // SAFETY: the types match the headers.
        let result = unsafe { function(&mut handle, called, ptr::null_mut(), &parameters) };
        self.subscriber = handle;
        // SAFETY: the buffer ends in NUL.
        let old_name = unsafe { CStr::from_ptr(old_name.as_ptr()) };
        (result, old_name.to_str().unwrap().to_owned())
    }

    /// Registers the second version of the functions for buffers.
    pub fn register_second(&self) -> u32 {
        type Function =
            unsafe extern "C" fn(*mut c_void, SecondRequestFunction, SecondCompleteFunction) -> u32;
        let function = self.get::<Function>("cuptiActivityRegisterCallbacks_v2");
        // SAFETY: the types match the headers.
        unsafe { function(self.subscriber, requested_second, completed_second) }
    }

    /// Calls the second version of a function that takes a kind.
    pub fn call_second(&self, name: &str, kind: u32) -> u32 {
        type Function = unsafe extern "C" fn(*mut c_void, u32, *mut c_void) -> u32;
        // SAFETY: the types match the headers.
        unsafe { self.get::<Function>(name)(self.subscriber, kind, ptr::null_mut()) }
    }

    pub fn dropped_second(&self) -> usize {
        type Function = unsafe extern "C" fn(*mut c_void, *mut c_void, u32, *mut usize) -> u32;
        let mut dropped = usize::MAX;
        let function = self.get::<Function>("cuptiActivityGetNumDroppedRecords_v2");
        // SAFETY: the types match the headers.
        assert_eq!(unsafe { function(self.subscriber, ptr::null_mut(), 0, &mut dropped) }, 0);
        dropped
    }

    /// Returns the result of asking for the first record of an empty buffer.
    pub fn next_record_second(&self) -> u32 {
        type Function = unsafe extern "C" fn(*mut c_void, *mut u8, usize, *mut *mut u8) -> u32;
        let (mut buffer, mut record) = ([0u64; 32], ptr::null_mut());
        let function = self.get::<Function>("cuptiActivityGetNextRecord_v2");
        // SAFETY: the types match the headers.
        unsafe { function(self.subscriber, buffer.as_mut_ptr().cast(), 0, &mut record) }
    }

    pub fn unsubscribe(&self) -> u32 {
        type Function = unsafe extern "C" fn(*mut c_void) -> u32;
        // SAFETY: the types match the headers.
        unsafe { self.get::<Function>("cuptiUnsubscribe")(self.subscriber) }
    }

    pub fn register(&self) -> u32 {
        type Function = unsafe extern "C" fn(RequestFunction, CompleteFunction) -> u32;
        // SAFETY: the types match the headers.
        unsafe { self.get::<Function>("cuptiActivityRegisterCallbacks")(requested, completed) }
    }

    /// Calls a function that takes only a kind or a flag.
    pub fn call(&self, name: &str, argument: u32) -> u32 {
        // SAFETY: the types match the headers.
        unsafe { self.get::<Unary>(name)(argument) }
    }

    #[track_caller]
    pub fn enable(&self, kinds: &[u32]) {
        for &kind in kinds {
            assert_eq!(self.call("cuptiActivityEnable", kind), 0, "{kind}");
        }
    }

    #[track_caller]
    pub fn disable(&self, kinds: &[u32]) {
        for &kind in kinds {
            assert_eq!(self.call("cuptiActivityDisable", kind), 0, "{kind}");
        }
    }

    pub fn flush(&self) {
        assert_eq!(self.call("cuptiActivityFlushAll", 0), 0);
    }

    /// Switches the callbacks of driver functions on or off.
    pub fn callbacks(&self, is_on: bool, ids: &[u32]) {
        type Function = unsafe extern "C" fn(u32, *mut c_void, u32, u32) -> u32;
        let function = self.get::<Function>("cuptiEnableCallback");
        for &id in ids {
            // SAFETY: the types match the headers.
            assert_eq!(unsafe { function(is_on.into(), self.subscriber, 1, id) }, 0, "{id}");
        }
    }

    pub fn dropped(&self) -> usize {
        type Function = unsafe extern "C" fn(*mut c_void, u32, *mut usize) -> u32;
        let mut dropped = usize::MAX;
        let function = self.get::<Function>("cuptiActivityGetNumDroppedRecords");
        // SAFETY: the types match the headers.
        assert_eq!(unsafe { function(ptr::null_mut(), 0, &mut dropped) }, 0);
        dropped
    }

    pub fn timestamp(&self) -> Result<u64, u32> {
        type Function = unsafe extern "C" fn(*mut u64) -> u32;
        let mut timestamp = 0;
        // SAFETY: the types match the headers.
        match unsafe { self.get::<Function>("cuptiGetTimestamp")(&mut timestamp) } {
            0 => Ok(timestamp),
            code => Err(code),
        }
    }

    pub fn version(&self) -> u32 {
        type Function = unsafe extern "C" fn(*mut u32) -> u32;
        let mut version = 0;
        // SAFETY: the types match the headers.
        assert_eq!(unsafe { self.get::<Function>("cuptiGetVersion")(&mut version) }, 0);
        version
    }

    pub fn stream_id(&self, context: *mut c_void, stream: *mut c_void) -> u32 {
        type Function = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut u32) -> u32;
        let mut id = 0;
        let function = self.get::<Function>("cuptiGetStreamId");
        // SAFETY: the types match the headers.
        assert_eq!(unsafe { function(context, stream, &mut id) }, 0);
        id
    }

    pub fn result_name(&self, result: u32) -> &'static str {
        type Function = unsafe extern "C" fn(u32, *mut *const c_char) -> u32;
        let mut name = ptr::null();
        // SAFETY: the types match the headers, and the name is static.
        unsafe {
            assert_eq!(self.get::<Function>("cuptiGetResultString")(result, &mut name), 0);
            CStr::from_ptr(name).to_str().unwrap()
        }
    }
}

/// Sets the size of the buffers.
pub fn set_buffer_bytes(bytes: usize) {
    BYTES.store(bytes, Relaxed);
}

/// Declines all further requests for buffers.
pub fn decline() {
    DECLINES.store(true, Relaxed);
}

/// Switches a kind on at the entry of the next call with a callback.
pub fn enable_at_entry(kind: u32) {
    AT_ENTRY.store(kind, Relaxed);
}

/// Returns the number of requests for buffers so far.
pub fn requests() -> usize {
    REQUESTS.load(Relaxed)
}

/// Removes and returns the buffers delivered so far.
pub fn take_buffers() -> Vec<Vec<Record>> {
    std::mem::take(&mut locked(&BUFFERS))
}

/// Removes and returns the records delivered so far.
pub fn take_records() -> Vec<Record> {
    take_buffers().into_iter().flatten().collect()
}

/// Removes and returns the callbacks so far.
pub fn take_calls() -> Vec<Call> {
    std::mem::take(&mut locked(&CALLS))
}

type CallbackFunction = unsafe extern "C" fn(*mut c_void, u32, u32, *const u8);
type RequestFunction = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
type CompleteFunction = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);

type SecondRequestFunction =
    unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize, *const usize);
type SecondCompleteFunction = unsafe extern "C" fn(*mut u8, usize, usize, *const usize);

unsafe extern "C" fn requested_second(
    buffer: *mut *mut u8,
    size: *mut usize,
    records: *mut usize,
    info: *const usize,
) {
    // SAFETY: the library passes valid pointers. The information begins with its size.
    unsafe {
        assert_eq!(*info, 8);
        requested(buffer, size, records);
    }
}

unsafe extern "C" fn completed_second(
    buffer: *mut u8,
    size: usize,
    valid: usize,
    info: *const usize,
) {
    // SAFETY: the library passes valid pointers. The information begins with its size.
    unsafe {
        assert_eq!(*info, 32);
        completed(ptr::null_mut(), 0, buffer, size, valid);
    }
}

/// Reads a field of a structure.
///
/// # Safety
/// The structure must have a field of this type at the offset.
unsafe fn field<T: Copy>(structure: *const u8, offset: usize) -> T {
    // SAFETY: guaranteed by the caller.
    unsafe { structure.add(offset).cast::<T>().read() }
}

unsafe extern "C" fn called(_: *mut c_void, domain: u32, id: u32, data: *const u8) {
    assert_eq!(domain, 1);
    let kind = AT_ENTRY.swap(0, Relaxed);
    if kind != 0 {
        Client::load().enable(&[kind]);
    }
    // SAFETY: these are the offsets of `CUpti_CallbackData`.
    let call = unsafe {
        let is_exit = field::<u32>(data, 0) == 1;
        let parameters = field::<*const u8>(data, 16);
        let result = field::<*const i32>(data, 24);
        let kept = field::<*mut u64>(data, 56);
        let correlation = field::<u32>(data, 64);
        let call = Call {
            is_exit,
            id,
            name: CStr::from_ptr(field(data, 8)).to_str().unwrap().to_owned(),
            correlation,
            context: field(data, 40),
            context_id: field(data, 48),
            arguments: [field(parameters, 0), field(parameters, 8)],
            result: is_exit.then(|| *result),
            kept: *kept,
        };
        if !is_exit {
            *kept = correlation.into();
        }
        call
    };
    locked(&CALLS).push(call);
}

unsafe extern "C" fn requested(buffer: *mut *mut u8, size: *mut usize, records: *mut usize) {
    REQUESTS.fetch_add(1, Relaxed);
    let bytes = BYTES.load(Relaxed);
    let memory = match DECLINES.load(Relaxed) {
        true => ptr::null_mut(),
        // Made of eight-byte words, because CUPTI requires that alignment.
        false => Box::leak(vec![u64::MAX; bytes.div_ceil(8)].into_boxed_slice()).as_mut_ptr(),
    };
    // SAFETY: the library passes valid pointers.
    unsafe {
        (*buffer, *size, *records) = (memory.cast(), bytes, 0);
    }
}

unsafe extern "C" fn completed(_: *mut c_void, _: u32, buffer: *mut u8, _: usize, valid: usize) {
    type Next = unsafe extern "C" fn(*mut u8, usize, *mut *mut u8) -> u32;
    // SAFETY: the library that calls this is loaded under one of these names.
    let library = unsafe {
        let files = ["libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8"];
        files.iter().find_map(|file| Library::new(*file).ok()).unwrap()
    };
    let mut records = Vec::new();
    let mut record = ptr::null_mut();
    // SAFETY: the types and offsets match the headers.
    unsafe {
        let next = library.get::<Next>(b"cuptiActivityGetNextRecord").unwrap();
        while next(buffer, valid, &mut record) == 0 {
            records.push(read(record));
        }
        assert_eq!(next(buffer, valid, &mut record), 12);
    }
    locked(&BUFFERS).push(records);
}

/// Reads a record.
///
/// # Safety
/// `record` must point to the record of a kernel, copy or memset.
unsafe fn read(record: *const u8) -> Record {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let kind = field::<u32>(record, 0);
        let times = (field(record, 16), field(record, 24));
        let common = |at: usize| Record {
            kind,
            start: times.0,
            end: times.1,
            device: field(record, at),
            context: field(record, at + 4),
            stream: field(record, at + 8),
            ..Record::default()
        };
        if kind == KERNELS {
            Record {
                correlation: field(record, 92),
                graph_node: field(record, 144),
                name: CStr::from_ptr(field(record, 104)).to_str().unwrap().to_owned(),
                grid: field(record, 52),
                block: field(record, 64),
                registers: field(record, 6),
                shared_bytes: field::<u32>(record, 76) + field::<u32>(record, 80),
                ..common(40)
            }
        } else if kind == PEER_COPY {
            Record {
                correlation: field(record, 60),
                graph_node: field(record, 72),
                copy_kind: field(record, 4),
                bytes: field(record, 8),
                ..common(32)
            }
        } else {
            assert!([MEMCPY, MEMSET].contains(&kind), "{kind}");
            Record {
                correlation: field(record, 44),
                graph_node: field(record, 64),
                copy_kind: if kind == MEMCPY { field(record, 4) } else { 0 },
                bytes: field(record, 8),
                ..common(32)
            }
        }
    }
}

/// Asserts that the records match the recorded commands in the trace, including their times.
#[track_caller]
pub fn assert_match(mut records: Vec<Record>, trace: &Trace) {
    let epoch = gpu_time_sim_cupti::EPOCH_NS;
    let expected = |command: &Command| {
        let (kind, copy_kind) = match (&*command.kind, &*command.name) {
            ("kernel", _) => (KERNELS, 0),
            ("memset", _) => (MEMSET, 0),
            ("copy", "to device") => (MEMCPY, 1),
            ("copy", "to host") => (MEMCPY, 2),
            ("copy", "device") => (MEMCPY, 8),
            ("copy", "peer") => (PEER_COPY, 10),
            other => panic!("{other:?}"),
        };
        Record {
            kind,
            start: epoch + command.start_ns,
            end: epoch + command.start_ns + command.duration_ns,
            device: command.device,
            context: command.context as u32,
            stream: command.stream_id as u32 + gpu_time_sim_cupti::STREAM_IDS,
            correlation: command.correlation,
            graph_node: command.graph_node,
            name: if kind == KERNELS { command.name.clone() } else { String::new() },
            grid: command.grid,
            block: command.block,
            registers: if kind == KERNELS { 32 } else { 0 },
            copy_kind,
            ..Record::default()
        }
    };
    let mut expected: Vec<Record> = trace.recorded().map(expected).collect();
    let order = |record: &Record| (record.correlation, record.graph_node);
    expected.sort_by_key(order);
    records.sort_by_key(order);
    // The trace does not contain these fields.
    records.iter_mut().for_each(|record| (record.bytes, record.shared_bytes) = (0, 0));
    assert_eq!(records, expected);
}
