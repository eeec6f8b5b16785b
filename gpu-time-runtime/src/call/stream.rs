//! Support for streams from any cudarc version: generated code uses it to evaluate `stream`
//! expressions.
//!
//! The user's crate chooses the cudarc version, so this file does not name the types of all of them. Generated
//! code follows pointers to the stream itself, which it finds by method lookup, and then calls its `cu_stream()`
//! and `context()`. Method lookup tries a type before its `Deref` target: see [`Step`]. The methods on steps
//! have a prefix, because traits that the user implements for every type take part in the same lookup.
//!
//! A safe program can give any type methods with these names, so [`handles`] believes only types whose handles
//! are valid.

mod guard;

pub use guard::{Life, RefCounted, StreamGuard, WeakStream, owner};

use std::any::{Any, type_name};
use std::ffi::c_void;
use std::ops::Deref;

use cudarc::driver::CudaStream;

use crate::call::lookup::Step;
use crate::types::gpu_stream::GpuStream;

/// Wraps the value of a `stream` expression, so that `gpu_time_stream` can extract the stream.
///
/// Method lookup tries an `Option` or `Result` first, then one behind a reference or a guard, then
/// any type, which is taken as the stream itself.
pub fn given<V>(value: &V) -> Step<Step<Step<&V>>> {
    Step(Step(Step(value)))
}

impl<'a, V: TryOperand> Step<Step<Step<&'a V>>> {
    /// Returns the stream, if this call has one.
    pub fn gpu_time_stream(&self) -> Option<&'a V::Value> {
        self.0.0.0.as_value()
    }
}

impl<'a, V> Step<Step<&'a V>>
where
    V: Deref,
    V::Target: TryOperand,
{
    /// Returns the stream, if this call has one.
    pub fn gpu_time_stream(&self) -> Option<&'a <V::Target as TryOperand>::Value> {
        self.0.0.deref().as_value()
    }
}

impl<'a, V> Step<&'a V> {
    /// Returns the stream.
    pub fn gpu_time_stream(&self) -> Option<&'a V> {
        Some(self.0)
    }
}

/// An `Option` or a `Result`: an operand of `?` in an expression of the attribute, where `?` leaves the expression
/// rather than the function.
#[diagnostic::on_unimplemented(
    message = "`?` in an expression of the attribute needs an `Option` or a `Result`, not `{Self}`",
    label = "expected an `Option` or a `Result`"
)]
pub trait TryOperand {
    /// The value that `?` passes on.
    type Value;

    /// Returns the value, if there is one.
    fn value(self) -> Option<Self::Value>;

    /// Returns a reference to the value, if there is one.
    fn as_value(&self) -> Option<&Self::Value>;
}

impl<T> TryOperand for Option<T> {
    type Value = T;

    fn value(self) -> Option<T> {
        self
    }

    fn as_value(&self) -> Option<&T> {
        self.as_ref()
    }
}

impl<T, E> TryOperand for Result<T, E> {
    type Value = T;

    fn value(self) -> Option<T> {
        self.ok()
    }

    fn as_value(&self) -> Option<&T> {
        self.as_ref().ok()
    }
}

/// Returns the value of an operand of `?`, if it has one.
pub fn tried<T: TryOperand>(operand: T) -> Option<T::Value> {
    operand.value()
}

/// Wraps a stream or a pointer to one, so that `gpu_time_target` can follow the pointer by one step.
///
/// Method lookup tries a pointer to a [`GpuStream`] first, then a [`GpuStream`], which may itself dereference
/// to something else, then any other pointer, then any type.
pub fn pointer<V: ?Sized>(value: &V) -> Step<Step<Step<Step<&V>>>> {
    Step(Step(Step(Step(value))))
}

impl<'a, V: Deref<Target: GpuStream> + ?Sized> Step<Step<Step<Step<&'a V>>>> {
    /// Returns the stream behind the pointer.
    pub fn gpu_time_target(&self) -> &'a V::Target {
        self.0.0.0.0
    }
}

impl<'a, V: GpuStream + ?Sized> Step<Step<Step<&'a V>>> {
    /// Returns the stream.
    pub fn gpu_time_target(&self) -> &'a V {
        self.0.0.0
    }
}

impl<'a, V: Deref + ?Sized> Step<Step<&'a V>> {
    /// Returns the value behind the pointer.
    pub fn gpu_time_target(&self) -> &'a V::Target {
        self.0.0
    }
}

impl<'a, V: ?Sized> Step<&'a V> {
    /// Returns the value, which is no pointer.
    pub fn gpu_time_target(&self) -> &'a V {
        self.0
    }
}

/// Wraps the target of all pointers, so that `gpu_time_candidate` can return a pointer to a value with the methods
/// of cudarc's `CudaStream`.
///
/// Method lookup tries a [`GpuStream`] first, then a raw handle, which is an error, then any type.
pub fn candidate<S: ?Sized>(stream: &S) -> Step<Step<Step<&S>>> {
    Step(Step(Step(stream)))
}

impl<S: GpuStream + ?Sized> Step<Step<Step<&S>>> {
    /// Returns a pointer to the handle, in a type with these methods.
    pub fn gpu_time_candidate(&self) -> Step<VouchedHandle> {
        Step(VouchedHandle(self.0.0.0.stream_handle()))
    }
}

impl<T> Step<Step<&*mut T>> {
    /// Produces the error message for a raw handle.
    pub fn gpu_time_candidate(&self) -> Step<VouchedHandle>
    where
        *mut T: IsVouched,
    {
        Step(VouchedHandle(std::ptr::null_mut()))
    }
}

impl<'a, S: ?Sized> Step<&'a S> {
    /// Returns the value, which should have these methods.
    pub fn gpu_time_candidate(&self) -> &'a S {
        self.0
    }
}

/// The handle of a [`GpuStream`].
pub struct VouchedHandle(*mut c_void);

impl VouchedHandle {
    /// Returns the handle.
    pub fn cu_stream(&self) -> *mut c_void {
        self.0
    }

    /// Stands in for a cudarc context.
    pub fn context(&self) -> &'static &'static NoHandle {
        &&NoHandle
    }
}

/// The methods that generated code calls on a stream, for a type that lacks them.
///
/// A type's own methods take precedence. Nothing implements [`IsStream`], so these only produce its error
/// message. Together with another trait that provides such a method, they are ambiguous.
pub trait NoStream {
    /// Stands in for a missing method.
    fn cu_stream(&self) -> NoHandle
    where
        Self: IsStream,
    {
        NoHandle
    }

    /// Stands in for a missing method.
    fn context(&self) -> &'static &'static NoHandle
    where
        Self: IsStream,
    {
        &&NoHandle
    }
}

impl<S: ?Sized> NoStream for S {}

/// The handle of a stream or context that has none. It has the methods of both, so that the compiler does not report
/// that they are missing as well.
pub struct NoHandle;

impl NoHandle {
    /// Returns a null handle, and itself as the stream.
    pub fn gpu_time_of<S: ?Sized>(self, _stream: &S) -> (usize, &'static NoHandle) {
        (0, &NoHandle)
    }

    /// Stands in for a missing method.
    pub fn context(&self) -> &'static &'static NoHandle {
        &&NoHandle
    }

    /// Returns a null handle.
    pub fn cu_ctx(&self) -> *mut c_void {
        std::ptr::null_mut()
    }
}

/// Provides the error message for a value that is not a stream.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a stream",
    label = "expected a `CudaStream` of cudarc, or a type that implements `GpuStream`",
    note = "for a stream of another library, pass the raw handle, as in \
            `stream = unsafe {{ gpu_time::raw_stream(s.as_inner()) }}`"
)]
pub trait IsStream {}

/// Provides the error message for a raw handle.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is a raw handle, and nothing shows that its stream lives",
    label = "expected a `CudaStream` of cudarc, or a type that implements `GpuStream`",
    note = "if the stream outlives the call, write `stream = unsafe {{ gpu_time::raw_stream(…) }}` around the handle"
)]
pub trait IsVouched {}

/// The types of streams and contexts that return valid handles, by the beginnings and ends of their names: those of
/// cudarc and of NVIDIA's cuda-core.
const TRUSTED: &[(&str, &str, &str)] = &[
    ("cudarc::", "::CudaStream", "::CudaContext"),
    ("cuda_core::", "::Stream", "::Context"),
    #[cfg(test)]
    ("gpu_time_runtime::call::stream::tests::v0_", "::CudaStream", "::CudaContext"),
];

/// Returns the handles of a stream and its context, or `None` if the type of the stream is not known to return
/// valid ones. `named` are the handles that methods with the names of cudarc's returned.
///
/// The methods of a [`GpuStream`] and of the cudarc that this crate uses are called here. For other versions of
/// cudarc, the compiler chose the methods where the attribute is, and a type is recognised by its name: a crate
/// that calls itself cudarc is trusted. So is code that is generic over a trait of its own with these methods, and
/// implements it for such a type.
///
/// With optimisation, the decision is a constant. Without, it compares a few bytes.
#[inline(always)]
pub(super) fn handles<S: 'static, C: 'static>(
    stream: &S,
    _context: &C,
    named: (usize, usize),
) -> Option<(usize, usize)> {
    let any: &dyn Any = stream;
    if let Some(VouchedHandle(handle)) = any.downcast_ref() {
        return Some((handle.addr(), 0));
    }
    if let Some(stream) = any.downcast_ref::<CudaStream>() {
        return Some((stream.cu_stream().addr(), stream.context().cu_ctx().addr()));
    }
    is_trusted(type_name::<S>(), type_name::<C>()).then_some(named)
}

#[inline(always)]
fn is_trusted(stream: &str, context: &str) -> bool {
    TRUSTED.iter().any(|(path, stream_name, context_name)| {
        let is_one = |found: &str, name: &str| found.starts_with(path) && found.ends_with(name);
        is_one(stream, stream_name) && is_one(context, context_name)
    })
}

/// A raw driver handle. References do not implement this trait, although they coerce to pointers.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the handle of a stream",
    label = "expected a `CUstream` from `cu_stream()`, and a `CUcontext` from `cu_ctx()`"
)]
pub trait RawHandle {
    /// Returns the handle as a number.
    fn gpu_time_address(self) -> usize;

    /// Returns the handle as a number, together with the stream.
    fn gpu_time_of<S: ?Sized>(self, stream: &S) -> (usize, &S);
}

impl<T> RawHandle for *mut T {
    fn gpu_time_address(self) -> usize {
        self.addr()
    }

    fn gpu_time_of<S: ?Sized>(self, stream: &S) -> (usize, &S) {
        (self.addr(), stream)
    }
}

/// Dereferences a pointer exactly once. On a pointer to a stream or context, the methods of [`NoStream`] and
/// [`Untracking`] would take precedence over those of the stream or context.
pub fn behind<P: Deref>(pointer: &P) -> &P::Target {
    pointer
}

/// Fallbacks for contexts that lack these methods.
///
/// cudarc 0.15 always tracks events if it has several streams, and a [`GpuStream`] does not belong
/// to cudarc. If a context has methods with these names, those are called instead.
pub trait Untracking {
    /// Returns `true` if there are streams in addition to the default one.
    fn is_in_multi_stream_mode(&self) -> bool {
        false
    }

    /// Returns `true` if cudarc uses its own events to order streams.
    fn is_event_tracking(&self) -> bool {
        true
    }
}

impl<C: ?Sized> Untracking for C {}

#[cfg(test)]
mod tests;
