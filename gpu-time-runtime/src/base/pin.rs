//! Keeps shared libraries loaded until the process ends.
//!
//! A program may unload a plugin at any time. The runtime would then lose code and data that it still uses: the
//! functions of its threads and handlers, and the sites that it reports. The object that holds them is therefore
//! pinned before their first use.

#![allow(unsafe_code)] // the dynamic loader

use std::ffi::{CStr, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The program or a shared library, as the dynamic loader knows it.
struct Object {
    base: usize,
    name: &'static CStr,
}

impl Object {
    /// Returns the object that holds an address, or `None` in a program without a dynamic loader.
    ///
    /// # Safety
    ///
    /// The object must stay loaded while the result exists.
    unsafe fn of(address: *const c_void) -> Option<Object> {
        let mut info = MaybeUninit::<libc::Dl_info>::uninit();
        // SAFETY: accepts any address, and initialises `info` if it succeeds. The name lives as long as the
        // object, which the caller guarantees.
        unsafe {
            (libc::dladdr(address, info.as_mut_ptr()) != 0).then(|| {
                let info = info.assume_init();
                Object { base: info.dli_fbase.addr(), name: CStr::from_ptr(info.dli_fname) }
            })
        }
    }

    /// Returns `true` if this is the program itself.
    fn is_program(&self) -> bool {
        // SAFETY: reads a value that the kernel passed to the program, which is never unloaded.
        let program = unsafe {
            let entry = libc::getauxval(libc::AT_ENTRY);
            Object::of(ptr::without_provenance(entry as usize))
        };
        program.is_some_and(|program| program.base == self.base)
    }
}

/// Returns `true` if the runtime is part of the program itself, and not of a library.
pub(crate) fn is_in_program() -> bool {
    // SAFETY: this code is not unloaded while it runs.
    unsafe { Object::of(own_address()) }.is_none_or(|object| object.is_program())
}

/// Keeps the object of `item` loaded, if it is not part of the program.
pub(crate) fn pin<T>(item: &'static T) {
    pin_at(ptr::from_ref(item).cast());
}

/// Keeps the runtime's own code loaded, if it is not part of the program.
pub(crate) fn pin_runtime() {
    pin_at(own_address());
}

fn own_address() -> *const c_void {
    pin_runtime as *const () as *const c_void
}

fn pin_at(address: *const c_void) {
    /// The base of the object handled last, to skip it the next time: most programs have only one.
    static LAST: AtomicUsize = AtomicUsize::new(0);
    // SAFETY: the caller runs in the object or has a reference into it, so it is loaded.
    let Some(object) = (unsafe { Object::of(address) }) else { return };
    if LAST.swap(object.base, Relaxed) != object.base && !object.is_program() {
        let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
        // Finds the object by its exact name, so it cannot fail.
        // SAFETY: loads nothing, and so runs no code of the object.
        unsafe { libc::dlopen(object.name.as_ptr(), flags) };
    }
}
