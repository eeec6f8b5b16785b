//! What a program calls whether or not it is timed, without the feature `enabled`: functions that do
//! nothing.

#![allow(unsafe_code)] // `unsafe` as with the feature `enabled`

use std::cell::{Ref, RefMut};
use std::ffi::c_void;
use std::rc::Rc;
use std::sync::{Arc, MutexGuard, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

/// Does nothing, because the `enabled` feature is off.
pub fn report() {}

/// Does nothing, because the `enabled` feature is off.
pub fn publish() {}

/// Does nothing, because the `enabled` feature is off.
pub fn set_enabled(_on: bool) {}

/// Does nothing, because the `enabled` feature is off.
pub fn set_default_stream<S>(_stream: S) {}

/// Does nothing, because the `enabled` feature is off.
pub fn set_thread_default_stream<S>(_stream: S) {}

/// Does nothing, because the `enabled` feature is off.
pub fn record_phase(_length: Duration) {}

/// Process-wide options, ignored because the `enabled` feature is off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "nothing happens until `apply`"]
pub struct Configure(());

/// Returns options that are ignored, because the `enabled` feature is off.
pub fn configure() -> Configure {
    Configure::default()
}

macro_rules! ignored {
    ($($option:ident: $value:ty),* $(,)?) => {
        impl Configure {
            $(
                /// Does nothing, because the `enabled` feature is off.
                pub fn $option(self, _value: $value) -> Self {
                    self
                }
            )*

            /// Does nothing, because the `enabled` feature is off.
            pub fn apply(self) {}
        }
    };
}

ignored! {
    report: &str,
    filter: &str,
    sample: impl Into<Option<f64>>,
    budget: impl Into<Option<f64>>,
    warmup: impl Into<Option<u32>>,
    cold: &str,
    sleep: &str,
    record: &str,
    notes: &str,
    view: &str,
    label: &str,
    program_version: &str,
    bias: &str,
    trace_last: impl Into<Option<usize>>,
}

/// A stream handle, which is not used because the `enabled` feature is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RawStream(usize);

/// The NULL stream.
pub const NULL_STREAM: RawStream = RawStream(0);

/// The legacy default stream, which all threads share.
pub const LEGACY_STREAM: RawStream = RawStream(1);

/// The calling thread's default stream.
pub const PER_THREAD_STREAM: RawStream = RawStream(2);

/// Returns the stream with this handle.
///
/// # Safety
///
/// `handle` must be a valid stream handle. The stream must not be destroyed before the last
/// annotated call that uses the result has ended.
pub unsafe fn raw_stream<T>(handle: *mut T) -> RawStream {
    RawStream(handle.addr())
}

/// A user-defined stream type, for `stream = EXPR`.
///
/// # Safety
///
/// The returned handle must be a valid stream handle. The stream must not be destroyed before the
/// last annotated call that uses it has ended.
pub unsafe trait GpuStream {
    /// Returns the handle: a `CUstream` or `cudaStream_t`.
    fn stream_handle(&self) -> *mut c_void;
}

// SAFETY: the streams named by the constants are never destroyed, and the caller of `raw_stream`
// guarantees the validity of all others.
unsafe impl GpuStream for RawStream {
    fn stream_handle(&self) -> *mut c_void {
        std::ptr::without_provenance_mut(self.0)
    }
}

macro_rules! behind {
    ($($pointer:ty),*) => {
        $(
            // SAFETY: the handle comes from the value behind the pointer.
            unsafe impl<T: GpuStream + ?Sized> GpuStream for $pointer {
                fn stream_handle(&self) -> *mut c_void {
                    (**self).stream_handle()
                }
            }
        )*
    };
}

behind!(&T, &mut T, Box<T>, Rc<T>, Arc<T>, Ref<'_, T>, RefMut<'_, T>, MutexGuard<'_, T>);
behind!(RwLockReadGuard<'_, T>, RwLockWriteGuard<'_, T>);
