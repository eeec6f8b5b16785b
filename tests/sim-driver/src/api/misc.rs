//! Errors, entry points, the profiler, and what only the simulation has.

use std::ffi::{CString, c_char, c_void};

use super::{Out, Text, driver};
use crate::code::{self, Code};
use crate::model::Model;
use crate::process::{self, State};

/// The address of an exported function, found as a program would find it, so that one which was
/// made absent is absent here too. A plain name stands for its newest version.
fn address_of(symbol: &str) -> Option<*mut c_void> {
    // SAFETY: an all-zero `Dl_info` is valid, and the address is one of our own functions.
    let file = unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        libc::dladdr(cuInit_address(), &mut info);
        info.dli_fname
    };
    if file.is_null() {
        return None;
    }
    // SAFETY: `file` is the name of a loaded object, and `NOLOAD` only finds it again.
    let library = unsafe { libc::dlopen(file, libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    if library.is_null() {
        return None;
    }
    let found = ["_v4", "_v3", "_v2", ""].iter().find_map(|version| {
        let name = CString::new(format!("{symbol}{version}")).ok()?;
        // SAFETY: the library is loaded, and the name ends in NUL.
        let address = unsafe { libc::dlsym(library, name.as_ptr()) };
        (!address.is_null()).then_some(address)
    });
    // SAFETY: closes what was opened above; the library itself stays, for this code runs in it.
    unsafe { libc::dlclose(library) };
    found
}

#[allow(non_snake_case)]
fn cuInit_address() -> *const c_void {
    super::device::cuInit as *const c_void
}

driver! {
    fn cuGetErrorName(error: i32, pStr: Out<*const c_char>) [5, Any] |_| {
        pStr.put(code::name(error).map_or(std::ptr::null(), |name| name.as_ptr()))?;
        code::name(error).map(drop).ok_or(Code::INVALID_VALUE)
    };
    // The name has to do for a sentence.
    fn cuGetErrorString(error: i32, pStr: Out<*const c_char>) [5, Any] |_| {
        pStr.put(code::name(error).map_or(std::ptr::null(), |name| name.as_ptr()))?;
        code::name(error).map(drop).ok_or(Code::INVALID_VALUE)
    };
    fn cuGetProcAddress_v2(
        symbol: Text, pfn: Out<*mut c_void>, cudaVersion: i32, flags: u64, symbolStatus: Out<u32>,
    ) [100, Any] |_| {
        let found = address_of(&symbol.get()?);
        pfn.put(found.unwrap_or(std::ptr::null_mut()))?;
        symbolStatus.put_if_wanted(u32::from(found.is_none()));
        found.map(drop).ok_or(Code::NOT_FOUND)
    };
    fn cuGetProcAddress(
        symbol: Text, pfn: Out<*mut c_void>, cudaVersion: i32, flags: u64,
    ) [100, Any] |_| {
        let found = address_of(&symbol.get()?);
        pfn.put(found.unwrap_or(std::ptr::null_mut()))?;
        found.map(drop).ok_or(Code::NOT_FOUND)
    };
    fn cuProfilerStart() [100, Free] |m| m.current().map(drop);
    fn cuProfilerStop() [100, Free] |m| m.current().map(drop);
}

/// What the host's clock shows of virtual time, in nanoseconds. It moves nothing and settles nothing.
#[unsafe(no_mangle)]
pub extern "C" fn gpu_time_sim_now() -> u64 {
    if process::state() == State::Alive { Model::lock().host_clock() } else { 0 }
}

/// Lets the host spend `ns` nanoseconds of virtual time. Held streams are looked at before and
/// after, as by any other call.
#[unsafe(no_mangle)]
pub extern "C" fn gpu_time_sim_advance(ns: u64) {
    if process::state() == State::Alive {
        let mut model = Model::lock();
        model.settle();
        model.now += ns;
        model.settle();
    }
}
