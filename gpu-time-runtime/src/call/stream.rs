//! Support for streams from any cudarc version: generated code uses it to evaluate `stream`
//! expressions.
//!
//! The user's crate chooses the cudarc version, so this file does not name any cudarc type.
//! Generated code calls the user's own `cu_stream()`, `context()` and `cu_ctx()`. Everything that
//! depends on a value's type is decided by method lookup, which tries a type before its `Deref`
//! target: see [`Step`]. The methods on steps have a prefix, because traits that the user
//! implements for every type take part in the same lookup.

mod guard;

pub use guard::{Life, RefCounted, StreamGuard, WeakStream, owner};

use std::cell::Cell;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::ops::Deref;

use crate::call::lookup::Step;
use crate::types::gpu_stream::GpuStream;

/// Wraps the value of a `stream` expression, so that `gpu_time_stream` can extract the stream.
///
/// Method lookup tries an `Option` or `Result` first, then one behind a reference or a guard, then
/// any type, which is taken as the stream itself.
pub fn given<V>(value: &V) -> Step<Step<Step<&V>>> {
    Step(Step(Step(value)))
}

/// An `Option` or a `Result`.
pub trait Maybe {
    /// The type of the value.
    type Value;

    /// Returns the value, if any.
    fn value(&self) -> Option<&Self::Value>;
}

impl<S> Maybe for Option<S> {
    type Value = S;

    fn value(&self) -> Option<&S> {
        self.as_ref()
    }
}

impl<S, E> Maybe for Result<S, E> {
    type Value = S;

    fn value(&self) -> Option<&S> {
        self.as_ref().ok()
    }
}

impl<'a, V: Maybe> Step<Step<Step<&'a V>>> {
    /// Returns the stream, if this call has one.
    pub fn gpu_time_stream(&self) -> Option<&'a V::Value> {
        self.0.0.0.value()
    }
}

impl<'a, V> Step<Step<&'a V>>
where
    V: Deref,
    V::Target: Maybe,
{
    /// Returns the stream, if this call has one.
    pub fn gpu_time_stream(&self) -> Option<&'a <V::Target as Maybe>::Value> {
        self.0.0.deref().value()
    }
}

impl<'a, V> Step<&'a V> {
    /// Returns the stream.
    pub fn gpu_time_stream(&self) -> Option<&'a V> {
        Some(self.0)
    }
}

/// An operand of `?` in an expression of the attribute, where `?` leaves the expression rather than the
/// function.
#[diagnostic::on_unimplemented(
    message = "`?` in an expression of the attribute needs an `Option` or a `Result`, not `{Self}`",
    label = "expected an `Option` or a `Result`"
)]
pub trait TryOperand {
    /// The value that `?` passes on.
    type Value;

    /// Returns the value, if there is one.
    fn value(self) -> Option<Self::Value>;
}

impl<T> TryOperand for Option<T> {
    type Value = T;

    fn value(self) -> Option<T> {
        self
    }
}

impl<T, E> TryOperand for Result<T, E> {
    type Value = T;

    fn value(self) -> Option<T> {
        self.ok()
    }
}

/// Returns the value of an operand of `?`, if it has one.
pub fn tried<T: TryOperand>(operand: T) -> Option<T::Value> {
    operand.value()
}

/// Wraps the value of a `stream` expression, without its `Option` or `Result`, so that
/// `gpu_time_candidate` can extract the handle.
///
/// Method lookup tries a [`GpuStream`] first, then any type.
pub fn found<S>(value: &S) -> Step<Step<&S>> {
    Step(Step(value))
}

impl<S: GpuStream> Step<Step<&S>> {
    /// Returns the handle, wrapped in a type with the same methods as `CudaStream`.
    pub fn gpu_time_candidate(&self) -> VouchedHandle {
        VouchedHandle(self.0.0.stream_handle())
    }
}

impl<'a, S> Step<&'a S> {
    /// Returns the value, which should have the same methods as `CudaStream`.
    pub fn gpu_time_candidate(&self) -> Candidate<&'a S, S> {
        Candidate(self.0, PhantomData)
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
    pub fn context(&self) -> &'static &'static UnknownContext {
        &&UnknownContext
    }
}

/// A value expected to have the same methods as `CudaStream`.
///
/// `R` is `&S`. The type has no lifetime parameter and is invariant, because the compiler shows the
/// [`IsStream`] message only if the receiver's type is identical to the type in the bound,
/// including region variables.
pub struct Candidate<R, S>(R, PhantomData<Cell<(R, S)>>);

/// The methods that generated code calls on a `CudaStream`. Nothing implements [`IsStream`], so
/// they only produce its error message.
impl<R, S> Candidate<R, S>
where
    Self: IsStream<S>,
{
    /// Stands in for a missing method.
    pub fn cu_stream(&self) -> *mut c_void {
        std::ptr::null_mut()
    }

    /// Stands in for a missing method.
    pub fn context(&self) -> &'static &'static UnknownContext {
        &&UnknownContext
    }
}

impl<R, S> Deref for Candidate<R, S> {
    type Target = R;

    fn deref(&self) -> &R {
        &self.0
    }
}

/// Provides the error message for a value that is not a stream. The value's type is a parameter, so
/// that the message can name it.
#[diagnostic::on_unimplemented(
    message = "`{S}` is not a stream",
    label = "expected a `CudaStream` of cudarc, or a type that implements `GpuStream`",
    note = "a raw handle needs `unsafe`: write for example \
            `stream = unsafe {{ gpu_time::raw_stream(s.as_inner()) }}`"
)]
pub trait IsStream<S> {}

/// The context for a [`GpuStream`], which does not name one.
pub struct UnknownContext;

impl UnknownContext {
    /// Returns a null handle.
    pub fn cu_ctx(&self) -> *mut c_void {
        std::ptr::null_mut()
    }
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
    ///
    /// If the type has no `cu_stream()`, the result of this call has no type either, so the
    /// compiler does not report `context()` as well.
    fn gpu_time_of<S>(self, stream: &S) -> (usize, &S);
}

impl<T> RawHandle for *mut T {
    fn gpu_time_address(self) -> usize {
        self.addr()
    }

    fn gpu_time_of<S>(self, stream: &S) -> (usize, &S) {
        (self.addr(), stream)
    }
}

/// Returns the context behind the `&Arc<CudaContext>` that `context()` returns.
///
/// Dereferenced exactly once: on a pointer to the context, the [`Untracking`] methods would take
/// precedence over those of the context.
pub fn context_behind<P: Deref>(pointer: &P) -> &P::Target {
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
