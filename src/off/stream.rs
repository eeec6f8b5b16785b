//! Streams whose handle the program vouches for, none of which is used.

#![allow(unsafe_code)] // `unsafe` as with the feature `enabled`

use std::cell::{Ref, RefMut};
use std::ffi::c_void;
use std::rc::Rc;
use std::sync::{Arc, MutexGuard, RwLockReadGuard, RwLockWriteGuard};

/// The handle of a stream, which nothing uses because the feature `enabled` is off.
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
/// The handle must be that of a stream, which must not be destroyed before the last annotated call or run
/// of [`until_stable`](crate::until_stable) ends that got the result.
pub unsafe fn raw_stream<T>(handle: *mut T) -> RawStream {
    RawStream(handle.addr())
}

/// A stream type of your own, for `stream = EXPR`.
///
/// # Safety
///
/// The handle must be that of a stream, which must not be destroyed before the last annotated call ends that
/// got it.
pub unsafe trait GpuStream {
    /// Returns the handle: a `CUstream` or `cudaStream_t`.
    fn stream_handle(&self) -> *mut c_void;
}

// SAFETY: the constants are streams that are never destroyed, and the caller of `raw_stream` vouches for
// the others.
unsafe impl GpuStream for RawStream {
    fn stream_handle(&self) -> *mut c_void {
        std::ptr::without_provenance_mut(self.0)
    }
}

macro_rules! behind {
    ($($pointer:ty),*) => {
        $(
            // SAFETY: it is the handle of the value behind the pointer.
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

/// The argument of [`Settle::graph`](crate::Settle::graph): a [`RawStream`]. A trait only for its message.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a `RawStream`",
    label = "expected a `RawStream`",
    note = "a raw handle needs `unsafe`: write for example \
            `graph(unsafe {{ gpu_time::raw_stream(stream.cu_stream()) }}, 100)`"
)]
pub trait GraphStream {}

impl GraphStream for RawStream {}
