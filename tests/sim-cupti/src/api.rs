//! CUPTI's exported functions, with the signatures from its headers.

use std::ffi::{c_char, c_void};
use std::mem::offset_of;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::STREAM_IDS;
use crate::abi::{
    self, Callback, Code, Completed, Completed2, INSUFFICIENT_PRIVILEGES, INVALID_KIND,
    INVALID_OPERATION, INVALID_PARAMETER, INVALID_STREAM, MAX_LIMIT_REACHED,
    MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, NOT_COMPATIBLE, NOT_INITIALIZED, Requested, Requested2,
    SUCCESS, SubscriberParams,
};
use crate::delivery::{self, Which};
use crate::driver;
use crate::fragile;
use crate::hooks::OBSERVER;
use crate::process;
use crate::script::{Other, script};
use crate::state::{BufferFunctions, Subscriber, state};

/// The handle of the only subscriber.
const SUBSCRIBER: *mut c_void = ptr::without_provenance_mut(0x5c);
/// Name of the other client that the script can add.
const OTHER: &std::ffi::CStr = c"CUPTI for Other Tool";

/// Host costs in ns. Functions that only the client's own thread calls cost nothing: all threads
/// share the driver's clock, so a cost would delay the whole program.
mod cost {
    pub const ENABLE: u64 = 1_700;
    pub const DISABLE: u64 = 1_000;
    pub const CALLBACK: u64 = 150;
    pub const FLUSH: u64 = 0;
    pub const OTHER: u64 = 0;
}

fn code(result: Result<(), Code>) -> Code {
    result.err().unwrap_or(SUCCESS)
}

/// Stores a result for the caller.
fn put<T>(to: *mut T, value: T) -> Result<(), Code> {
    if to.is_null() {
        return Err(INVALID_PARAMETER);
    }
    // SAFETY: as for all functions of CUPTI, the caller guarantees that a non-null pointer is valid.
    unsafe { to.write(value) };
    Ok(())
}

fn check(subscriber: *mut c_void) -> Result<(), Code> {
    let is_known = subscriber == SUBSCRIBER && state().subscriber.is_some();
    if is_known { Ok(()) } else { Err(INVALID_PARAMETER) }
}

/// Subscribes the client. Fails if the driver is too old for this version, or if another client has
/// subscribed and the two cannot share CUPTI.
fn subscribe(
    handle: *mut *mut c_void,
    callback: Option<Callback>,
    data: *mut c_void,
    shares: bool,
) -> Result<(), Code> {
    let callback = callback.ok_or(INVALID_PARAMETER)?;
    if !driver::version().is_some_and(|driver| script().version.runs_on(driver)) {
        return Err(NOT_INITIALIZED);
    }
    let is_allowed = match script().other {
        Other::None => true,
        Other::Shared => shares && script().version.shares(),
        Other::Exclusive => false,
    };
    if !is_allowed || state().subscriber.is_some() {
        return Err(MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    }
    put(handle, SUBSCRIBER)?;
    driver::observe(&OBSERVER);
    state().subscriber = Some(Subscriber { callback, data });
    Ok(())
}

fn before_teardown() {
    if script().exit {
        delivery::deliver(Which::All);
    }
}

/// The parameters of a subscription.
struct Parameters {
    allows_others: bool,
    old_name: *mut c_char,
    old_name_size: usize,
}

impl Parameters {
    /// Reads the fields that the caller's version of the structure has.
    ///
    /// # Safety
    /// The pointer must be null or valid for the number of bytes in the structure's `size`.
    unsafe fn read(from: *const SubscriberParams) -> Result<Self, Code> {
        if from.is_null() {
            return Ok(Self { allows_others: false, old_name: ptr::null_mut(), old_name_size: 0 });
        }
        // SAFETY: guaranteed by the caller. Fields are read only if the size includes them.
        unsafe {
            let size = (*from).size;
            if size < offset_of!(SubscriberParams, allows_others) {
                return Err(INVALID_PARAMETER);
            }
            let has_flag = size > offset_of!(SubscriberParams, allows_others);
            Ok(Self {
                allows_others: has_flag && (*from).allows_others != 0,
                old_name: (*from).old_name,
                old_name_size: (*from).old_name_size,
            })
        }
    }

    /// Copies the other client's name to the caller's buffer, if it is large enough.
    fn put_other_name(&self) {
        let name = OTHER.to_bytes_with_nul();
        if !self.old_name.is_null() && self.old_name_size >= name.len() {
            // SAFETY: the caller's buffer has `old_name_size` bytes.
            unsafe { ptr::copy_nonoverlapping(name.as_ptr().cast(), self.old_name, name.len()) };
        }
    }
}

fn enable(kind: u32) -> Result<(), Code> {
    fragile::check("a kind is switched");
    script().version.record_bytes(kind).ok_or(INVALID_KIND)?;
    if script().refused.contains(&kind) {
        return Err(INSUFFICIENT_PRIVILEGES);
    }
    let mut state = state();
    let excluded = match kind {
        abi::KERNEL => abi::CONCURRENT_KERNEL,
        abi::CONCURRENT_KERNEL => abi::KERNEL,
        _ => 0,
    };
    if state.kinds.contains(&excluded) {
        return Err(NOT_COMPATIBLE);
    }
    if kind == abi::CONCURRENT_KERNEL && state.kinds.contains(&abi::MEMSET) {
        fragile::fail("kernels are switched on after memsets");
    }
    state.kinds.insert(kind);
    drop(state);
    process::register_teardown(before_teardown);
    // Activity can be recorded without a subscriber.
    driver::observe(&OBSERVER);
    Ok(())
}

fn disable(kind: u32) -> Result<(), Code> {
    fragile::check_switch_off();
    script().version.record_bytes(kind).ok_or(INVALID_KIND)?;
    if script().refused.contains(&kind) {
        return Err(INSUFFICIENT_PRIVILEGES);
    }
    let mut state = state();
    if kind == abi::CONCURRENT_KERNEL && state.kinds.contains(&abi::MEMSET) {
        fragile::fail("kernels are switched off before memsets");
    }
    state.kinds.remove(&kind);
    Ok(())
}

fn register(functions: Option<BufferFunctions>) -> Result<(), Code> {
    state().functions = Some(functions.ok_or(INVALID_PARAMETER)?);
    Ok(())
}

/// Moves `record` to the next record in a buffer, or to the first one if it is null.
///
/// # Safety
/// The first `valid` bytes of the buffer must be records. `record` must be null or valid, and
/// `*record` must be null or one of these records.
unsafe fn next_record(buffer: *mut u8, valid: usize, record: *mut *mut u8) -> Result<(), Code> {
    if buffer.is_null() || record.is_null() {
        return Err(INVALID_PARAMETER);
    }
    // SAFETY: guaranteed by the caller.
    let current = unsafe { *record };
    let at = if current.is_null() {
        0
    } else {
        // SAFETY: as above. A record begins with its kind.
        let kind = unsafe { current.cast::<u32>().read() };
        let bytes = script().version.record_bytes(kind).ok_or(INVALID_KIND)?;
        current.addr() - buffer.addr() + bytes
    };
    if at >= valid {
        return Err(MAX_LIMIT_REACHED);
    }
    // SAFETY: the offset is inside the buffer.
    put(record, unsafe { buffer.add(at) })
}

fn take_dropped(dropped: *mut usize) -> Result<(), Code> {
    put(dropped, 0)?;
    put(dropped, std::mem::take(&mut state().dropped))
}

fn stream_id(
    context: *mut c_void,
    stream: *mut c_void,
    is_per_thread: bool,
    id: *mut u32,
) -> Result<(), Code> {
    let found = driver::stream_id(context.addr() as u64, stream.addr() as u64, is_per_thread);
    put(id, found.ok_or(INVALID_STREAM)? as u32 + STREAM_IDS)
}

/// Defines exported functions: `fn name(argument: type, …) [cost in ns, traced argument] result;`
macro_rules! cupti {
    ($(
        fn $name:ident($($arg:ident: $type:ty),* $(,)?) [$cost:expr, $shown:expr] $body:expr;
    )+) => {$(
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        pub unsafe extern "C" fn $name($($arg: $type),*) -> Code {
            if process::is_torn_down() {
                fragile::fail(concat!(stringify!($name), " is called after the teardown"));
            }
            let result = driver::call(stringify!($name), $cost, $shown as u64);
            code(result.and_then(|()| $body))
        }
    )+};
}

cupti! {
    fn cuptiSubscribe(
        subscriber: *mut *mut c_void, callback: Option<Callback>, userdata: *mut c_void,
    ) [cost::OTHER, 0] subscribe(subscriber, callback, userdata, false);
    fn cuptiSubscribe_v2(
        subscriber: *mut *mut c_void, callback: Option<Callback>, userdata: *mut c_void,
        params: *const SubscriberParams,
    ) [cost::OTHER, 0] {
        // SAFETY: the caller guarantees that a non-null pointer is valid.
        let parameters = unsafe { Parameters::read(params) }?;
        let result = subscribe(subscriber, callback, userdata, parameters.allows_others);
        state().is_lossy = result.is_ok() && parameters.allows_others && script().version.loses_shared_records();
        if script().other != Other::None {
            parameters.put_other_name();
        }
        result
    };
    fn cuptiUnsubscribe(subscriber: *mut c_void) [cost::OTHER, 0] {
        check(subscriber)?;
        let mut state = state();
        state.subscriber = None;
        state.callbacks.clear();
        Ok(())
    };
    fn cuptiEnableCallback(
        enable: u32, subscriber: *mut c_void, domain: u32, cbid: u32,
    ) [cost::CALLBACK, cbid] {
        check(subscriber)?;
        match domain {
            abi::DRIVER_API if !(1..script().version.driver_ids).contains(&cbid) => return Err(INVALID_PARAMETER),
            abi::DRIVER_API if enable != 0 => drop(state().callbacks.insert(cbid)),
            abi::DRIVER_API => drop(state().callbacks.remove(&cbid)),
            // The stand-in has no callbacks in the other domains.
            domain if (1..abi::DOMAINS).contains(&domain) => {}
            _ => return Err(INVALID_PARAMETER),
        }
        Ok(())
    };
    fn cuptiActivityEnable(kind: u32) [cost::ENABLE, kind] enable(kind);
    fn cuptiActivityEnable_v2(
        subscriber: *mut c_void, kind: u32, _config: *mut c_void,
    ) [cost::ENABLE, kind] check(subscriber).and_then(|()| enable(kind));
    fn cuptiActivityDisable(kind: u32) [cost::DISABLE, kind] disable(kind);
    fn cuptiActivityDisable_v2(
        subscriber: *mut c_void, kind: u32, _config: *mut c_void,
    ) [cost::DISABLE, kind] check(subscriber).and_then(|()| disable(kind));
    fn cuptiActivityRegisterCallbacks(
        requested: Option<Requested>, completed: Option<Completed>,
    ) [cost::OTHER, 0] {
        register(requested.zip(completed).map(|(one, other)| BufferFunctions::First(one, other)))
    };
    fn cuptiActivityRegisterCallbacks_v2(
        subscriber: *mut c_void, requested: Option<Requested2>, completed: Option<Completed2>,
    ) [cost::OTHER, 0] {
        check(subscriber)?;
        register(requested.zip(completed).map(|(one, other)| BufferFunctions::Second(one, other)))
    };
    fn cuptiActivityFlushAll(flag: u32) [cost::FLUSH, flag] {
        {
            let mut state = state();
            state.functions.ok_or(INVALID_OPERATION)?;
            state.flushes += 1;
        }
        fragile::flush();
        let is_forced = flag & abi::FLUSH_FORCED != 0;
        delivery::deliver(if is_forced { Which::All } else { Which::Complete });
        Ok(())
    };
}

/// Defines exported functions that are not traced: `fn name(argument: type, …) result;`
macro_rules! untraced {
    ($(fn $name:ident($($arg:ident: $type:ty),* $(,)?) $body:expr;)+) => {$(
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        pub unsafe extern "C" fn $name($($arg: $type),*) -> Code {
            if process::is_torn_down() {
                fragile::fail(concat!(stringify!($name), " is called after the teardown"));
            }
            let call = || -> Result<(), Code> { $body };
            code(call())
        }
    )+};
}

untraced! {
    fn cuptiActivityGetNextRecord(buffer: *mut u8, valid: usize, record: *mut *mut u8) {
        // SAFETY: guaranteed by the caller.
        unsafe { next_record(buffer, valid, record) }
    };
    fn cuptiActivityGetNextRecord_v2(
        subscriber: *mut c_void, buffer: *mut u8, valid: usize, record: *mut *mut u8,
    ) {
        check(subscriber)?;
        // SAFETY: guaranteed by the caller.
        unsafe { next_record(buffer, valid, record) }
    };
    fn cuptiActivityGetNumDroppedRecords(
        _context: *mut c_void, _stream: u32, dropped: *mut usize,
    ) take_dropped(dropped);
    fn cuptiActivityGetNumDroppedRecords_v2(
        subscriber: *mut c_void, _context: *mut c_void, _stream: u32, dropped: *mut usize,
    ) check(subscriber).and_then(|()| take_dropped(dropped));
    fn cuptiGetTimestamp(timestamp: *mut u64) {
        let is_of_phase = is_of_phases() && gpu_time_sim_cupti_is_recording();
        TIMESTAMPS.fetch_add(u64::from(is_of_phase), Relaxed);
        put(timestamp, driver::timestamp(driver::now().ok_or(NOT_INITIALIZED)?))
    };
    fn cuptiGetVersion(version: *mut u32) put(version, script().version.number);
    fn cuptiGetResultString(result: Code, text: *mut *const c_char) {
        put(text, abi::name(result).ok_or(INVALID_PARAMETER)?.as_ptr())
    };
    fn cuptiGetStreamId(context: *mut c_void, stream: *mut c_void, id: *mut u32) {
        stream_id(context, stream, false, id)
    };
    fn cuptiGetStreamIdEx(
        context: *mut c_void, stream: *mut c_void, is_per_thread: u8, id: *mut u32,
    ) stream_id(context, stream, is_per_thread != 0, id);
}

/// Returns `true` in the thread that begins and ends phases. Others read the clock at any time.
fn is_of_phases() -> bool {
    let mut name = [0_u8; 16];
    // SAFETY: the name of a thread has at most as many bytes, with its NUL.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    name.starts_with(b"gpu-time-phases")
}

/// The number of calls of `cuptiGetTimestamp` by the thread of phases while kernels were recorded.
static TIMESTAMPS: AtomicU64 = AtomicU64::new(0);

/// Returns the number of calls of `cuptiGetTimestamp` by the thread of phases while kernels were recorded. The real
/// library has no such function.
#[unsafe(no_mangle)]
pub extern "C" fn gpu_time_sim_cupti_timestamps() -> u64 {
    TIMESTAMPS.load(Relaxed)
}

/// Returns `true` if kernels launched now are recorded. The real library has no such function.
#[unsafe(no_mangle)]
pub extern "C" fn gpu_time_sim_cupti_is_recording() -> bool {
    let kinds = &state().kinds;
    kinds.contains(&abi::KERNEL) || kinds.contains(&abi::CONCURRENT_KERNEL)
}
