//! Streams whose handles the program guarantees to be valid. They are not used in this build.

#![allow(unsafe_code)] // `unsafe` as with the feature `enabled`

use std::cell::{Ref, RefMut};
use std::ffi::c_void;
use std::rc::Rc;
use std::sync::{Arc, MutexGuard, RwLockReadGuard, RwLockWriteGuard};

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
/// annotated call or [`until_stable`](crate::until_stable) run that uses the result has ended.
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

/// The argument of [`Settle::graph`](crate::Settle::graph): a [`RawStream`]. This is a trait only
/// to provide an error message.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a `RawStream`",
    label = "expected a `RawStream`",
    note = "a raw handle needs `unsafe`: write for example \
            `graph(unsafe {{ gpu_time::raw_stream(stream.cu_stream()) }}, 100)`"
)]
pub trait GraphStream {}

impl GraphStream for RawStream {}
