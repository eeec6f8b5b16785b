//! Argument types of the exported functions, and their representation in the trace.

use std::ffi::{CStr, c_char};

use serde_json::Value;

use crate::code::{Code, DriverResult};

/// An output pointer from the C caller. As for every driver function, it must be null or valid for
/// writing one value. Rust code never creates one.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Out<T>(pub *mut T);

impl<T> Out<T> {
    /// Stores a required result. Fails if the pointer is null.
    pub fn put(self, value: T) -> DriverResult {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        self.put_if_wanted(value);
        Ok(())
    }

    /// Stores an optional result. Does nothing if the pointer is null.
    pub fn put_if_wanted(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: by the contract of `Out`, a non-null pointer is valid for a write.
            unsafe { self.0.write(value) };
        }
    }

    /// Reads a value that the caller has stored.
    pub fn take(self) -> DriverResult<T> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: as in `put_if_wanted`, and functions that read require an initialised value.
        Ok(unsafe { self.0.read() })
    }
}

/// A NUL-terminated string from the C caller, or null.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Text(*const c_char);

impl Text {
    fn read(&self) -> Option<String> {
        if self.0.is_null() {
            return None;
        }
        // SAFETY: by the contract of `Text`, a non-null pointer is a NUL-terminated string.
        Some(unsafe { CStr::from_ptr(self.0) }.to_string_lossy().into_owned())
    }

    pub fn get(self) -> DriverResult<String> {
        self.read().ok_or(Code::INVALID_VALUE)
    }
}

/// Formats an argument for the trace. `None` omits it.
pub(super) trait Argument {
    fn show(&self) -> Option<Value>;
}

impl<T> Argument for Out<T> {
    fn show(&self) -> Option<Value> {
        None
    }
}

impl Argument for Text {
    fn show(&self) -> Option<Value> {
        // Omit long strings, because module images are passed as text too.
        self.read().filter(|text| text.len() < 256).map(Value::from)
    }
}

impl<T> Argument for *const T {
    fn show(&self) -> Option<Value> {
        Some(Value::from(*self as u64))
    }
}

impl<A, B> Argument for Option<unsafe extern "C" fn(A) -> B> {
    fn show(&self) -> Option<Value> {
        None
    }
}

macro_rules! numbers {
    ($($type:ty)+) => {$(
        impl Argument for $type {
            fn show(&self) -> Option<Value> {
                Some(Value::from(*self))
            }
        }
    )+};
}
numbers!(u8 u16 u32 i32 u64 usize);
