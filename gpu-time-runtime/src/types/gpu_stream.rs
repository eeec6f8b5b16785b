//! Streams whose handles are guaranteed to be valid by the program.

#![allow(unsafe_code)] // `unsafe` marks the places where the program guarantees valid handles

use std::cell::{Ref, RefMut};
use std::ffi::c_void;
use std::rc::Rc;
use std::sync::{Arc, MutexGuard, RwLockReadGuard, RwLockWriteGuard};

use crate::types::handles::Stream;

/// A stream handle, from [`raw_stream`] or a constant such as [`NULL_STREAM`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RawStream(usize);

/// The NULL stream, which is the legacy stream here: gpu-time is not compiled for per-thread default streams.
pub const NULL_STREAM: RawStream = RawStream(0);

/// The legacy default stream, which all threads share.
pub const LEGACY_STREAM: RawStream = RawStream(1);

/// The calling thread's default stream.
pub const PER_THREAD_STREAM: RawStream = RawStream(2);

/// Returns the stream with this handle, a `CUstream` or `cudaStream_t`, for `stream = EXPR` and
/// [`Settle::graph`](crate::Settle::graph).
///
/// A null handle is the default stream: the [legacy stream](LEGACY_STREAM), as of PyTorch, whose current stream is null
/// unless the program changes it. If the program was compiled for per-thread default streams, pass
/// [`PER_THREAD_STREAM`] instead.
///
/// ```
/// # use gpu_time_runtime::raw_stream;
/// # struct Stream;
/// # impl Stream {
/// #     fn as_inner(&self) -> *mut u8 { std::ptr::null_mut() }
/// # }
/// # let stream = Stream;
/// // SAFETY: the annotated functions borrow the stream while they run.
/// let raw = unsafe { raw_stream(stream.as_inner()) };
/// ```
///
/// # Safety
///
/// `handle` must be a valid stream handle. The stream must not be destroyed before the last
/// annotated call or [`until_stable`](crate::until_stable) run that uses the result has ended.
pub unsafe fn raw_stream<T>(handle: *mut T) -> RawStream {
    RawStream(handle.addr())
}

impl RawStream {
    /// Returns the handle.
    pub(crate) fn stream(self) -> Stream {
        Stream(self.0)
    }
}

/// A user-defined stream type, for `stream = EXPR` and
/// [`set_default_stream`](crate::set_default_stream), which owns its argument. The `CudaStream` of cudarc does
/// not need this trait.
///
/// ```
/// # use gpu_time_runtime::GpuStream;
/// # use std::ffi::c_void;
/// struct Queue {
///     handle: *mut c_void,
/// }
///
/// // SAFETY: a `Queue` destroys its stream when it is dropped, and is only ever lent to annotated functions.
/// unsafe impl GpuStream for Queue {
///     fn stream_handle(&self) -> *mut c_void {
///         self.handle
///     }
/// }
/// ```
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
pub trait GraphStream {
    /// Returns the stream.
    fn gpu_time_raw(self) -> RawStream;
}

impl GraphStream for RawStream {
    fn gpu_time_raw(self) -> RawStream {
        self
    }
}
