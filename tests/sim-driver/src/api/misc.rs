//! Error names, symbol lookup, the profiler switches, and functions that read and advance virtual
//! time, which the real driver does not have.

use std::ffi::{CString, c_char, c_void};

use super::args::{Out, Text};
use super::call::driver;
use crate::code::{self, Code};
use crate::model::Model;
use crate::process::{self, ProcessState};

/// Looks up an exported function with `dlsym`, as a program would, so that a symbol removed from
/// the library is not found here either. A name without a version suffix refers to the newest
/// version.
fn address_of(symbol: &str) -> Option<*mut c_void> {
    // SAFETY: an all-zero `Dl_info` is valid, and the address belongs to this library.
    let file = unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        libc::dladdr(cuInit_address(), &mut info);
        info.dli_fname
    };
    if file.is_null() {
        return None;
    }
    // SAFETY: `file` is the name of a loaded object, and `RTLD_NOLOAD` only returns its handle.
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
    // SAFETY: closes the handle opened above. The library stays loaded, because this code is in it.
    unsafe { libc::dlclose(library) };
    found
}

#[allow(non_snake_case)]
fn cuInit_address() -> *const c_void {
    super::device::cuInit as *const c_void
}

driver! {
    fn cuGetErrorName(error: i32, pStr: Out<*const c_char>) [5, Always] |_| {
        pStr.put(code::name(error).map_or(std::ptr::null(), |name| name.as_ptr()))?;
        code::name(error).map(drop).ok_or(Code::INVALID_VALUE)
    };
    // Returns the name instead of a description.
    fn cuGetErrorString(error: i32, pStr: Out<*const c_char>) [5, Always] |_| {
        pStr.put(code::name(error).map_or(std::ptr::null(), |name| name.as_ptr()))?;
        code::name(error).map(drop).ok_or(Code::INVALID_VALUE)
    };
    fn cuGetProcAddress_v2(
        symbol: Text, pfn: Out<*mut c_void>, cudaVersion: i32, flags: u64, symbolStatus: Out<u32>,
    ) [100, Always] |_| {
        let found = address_of(&symbol.get()?);
        pfn.put(found.unwrap_or(std::ptr::null_mut()))?;
        symbolStatus.put_if_wanted(u32::from(found.is_none()));
        found.map(drop).ok_or(Code::NOT_FOUND)
    };
    fn cuGetProcAddress(
        symbol: Text, pfn: Out<*mut c_void>, cudaVersion: i32, flags: u64,
    ) [100, Always] |_| {
        let found = address_of(&symbol.get()?);
        pfn.put(found.unwrap_or(std::ptr::null_mut()))?;
        found.map(drop).ok_or(Code::NOT_FOUND)
    };
    fn cuProfilerStart() [100, AfterInit] |m| m.current().map(drop);
    fn cuProfilerStop() [100, AfterInit] |m| m.current().map(drop);
}

/// Returns the virtual time shown by the host clock, in nanoseconds. Unlike a driver call, this
/// advances neither the clock nor any stream.
#[unsafe(no_mangle)]
pub extern "C" fn gpu_time_sim_now() -> u64 {
    if process::state() == ProcessState::Alive { Model::lock().host_clock() } else { 0 }
}

/// Advances virtual time by `ns` nanoseconds of host time. Held streams advance before and after,
/// as in any other call.
#[unsafe(no_mangle)]
pub extern "C" fn gpu_time_sim_advance(ns: u64) {
    if process::state() == ProcessState::Alive {
        let mut model = Model::lock();
        model.advance_streams();
        model.now += ns;
        model.advance_streams();
    }
}
