//! Weak guards that detect whether the user's stream was dropped before the stop event.
//!
//! [`owner`] selects the guard by method lookup, just as [`given`](super::given) finds the stream.

use std::marker::PhantomData;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::rc::{self, Rc};
use std::sync::{self, Arc};

use crate::base::thread_bound::ThreadBound;
use crate::call::lookup::Step;
use crate::types::sample::Lost;

/// Detects whether a stream was dropped, without keeping it alive.
pub trait StreamGuard {
    /// A strong reference, which keeps the stream alive while its handle is used.
    type Strong;

    /// Keeps the stream alive until the returned value is dropped. Returns `None` if the stream has
    /// been dropped.
    fn upgrade(&self) -> Option<Self::Strong>;
}

/// Proof that a call's stream was checked. If it was alive, it stays alive for `'a`.
#[derive(Clone, Copy)]
pub struct Life<'a> {
    is_alive: bool,
    strong: PhantomData<&'a ()>,
}

impl<'a> Life<'a> {
    /// Proof for a stream that is never destroyed, or that the program guarantees to keep alive.
    pub const ALWAYS: Life<'static> = Life { is_alive: true, strong: PhantomData };

    /// Returns the proof for a result of [`StreamGuard::upgrade`], which it cannot outlive.
    #[inline(always)]
    pub fn of<S>(strong: &'a Option<S>) -> Self {
        Life { is_alive: strong.is_some(), strong: PhantomData }
    }

    /// Returns the reason why nothing can be recorded, if the stream has been dropped.
    #[inline(always)]
    pub fn obstacle(self) -> Option<Lost> {
        if self.is_alive { None } else { Some(Lost::Stream) }
    }
}

/// A stream that outlives the call.
impl StreamGuard for () {
    type Strong = ();

    #[inline(always)]
    fn upgrade(&self) -> Option<()> {
        Some(())
    }
}

/// A weak reference to the stream's owner: a strong one would break the user's `try_unwrap`.
///
/// Invariant: `None` exactly for streams that are never destroyed. An `Arc` around such a stream
/// may be a temporary that only serves to name it, as with cudarc's `default_stream()`.
pub struct WeakStream<W>(Option<W>);

// The guard is part of the call, and must not make the user's future lose its unwind safety.
impl<W> UnwindSafe for WeakStream<W> {}
impl<W> RefUnwindSafe for WeakStream<W> {}

impl<W> WeakStream<W> {
    pub(in crate::call) fn new(stream: usize, downgrade: impl FnOnce() -> W) -> Self {
        // The NULL stream, the legacy stream and the per-thread stream are never destroyed.
        WeakStream((stream > 2).then(downgrade))
    }
}

impl<T: ?Sized> StreamGuard for WeakStream<sync::Weak<T>> {
    type Strong = Option<Arc<T>>;

    #[inline]
    fn upgrade(&self) -> Option<Option<Arc<T>>> {
        self.0.as_ref().map_or(Some(None), |weak| weak.upgrade().map(Some))
    }
}

/// Bound to its thread, so that a future stays `Send` even if its stream was in a temporary `Rc`.
/// If the future has moved to another thread, the stream counts as dropped.
impl<T: ?Sized> StreamGuard for WeakStream<ThreadBound<rc::Weak<T>>> {
    type Strong = Option<Rc<T>>;

    #[inline]
    fn upgrade(&self) -> Option<Option<Rc<T>>> {
        let upgrade = |weak: &ThreadBound<rc::Weak<T>>| weak.get()?.upgrade().map(Some);
        self.0.as_ref().map_or(Some(None), upgrade)
    }
}

/// Wraps the pointers on the way to a stream that the body may drop. `gpu_time_guard` then creates a weak guard.
///
/// Method lookup tries an `Arc` or `Rc` in the first place, then in the second and third. If there is none, the
/// stream has no reference count and gets no guard.
pub fn owner<P>(pointers: P) -> Step<Step<Step<Step<P>>>> {
    Step(Step(Step(Step(pointers))))
}

/// An `Arc` or an `Rc`.
pub trait RefCounted {
    /// The weak counterpart.
    type Weak;

    /// Creates a weak reference.
    fn downgrade(&self) -> Self::Weak;
}

impl<T: ?Sized> RefCounted for Arc<T> {
    type Weak = sync::Weak<T>;

    fn downgrade(&self) -> Self::Weak {
        Arc::downgrade(self)
    }
}

impl<T: ?Sized> RefCounted for Rc<T> {
    type Weak = ThreadBound<rc::Weak<T>>;

    fn downgrade(&self) -> Self::Weak {
        ThreadBound::new(Rc::downgrade(self))
    }
}

impl<A: RefCounted, B: ?Sized, C: ?Sized> Step<Step<Step<Step<(&A, &B, &C)>>>> {
    /// Returns a weak guard.
    pub fn gpu_time_guard(&self, stream: usize) -> WeakStream<A::Weak> {
        WeakStream::new(stream, || self.0.0.0.0.0.downgrade())
    }
}

impl<A: ?Sized, B: RefCounted, C: ?Sized> Step<Step<Step<(&A, &B, &C)>>> {
    /// Returns a weak guard.
    pub fn gpu_time_guard(&self, stream: usize) -> WeakStream<B::Weak> {
        WeakStream::new(stream, || self.0.0.0.1.downgrade())
    }
}

impl<A: ?Sized, B: ?Sized, C: RefCounted> Step<Step<(&A, &B, &C)>> {
    /// Returns a weak guard.
    pub fn gpu_time_guard(&self, stream: usize) -> WeakStream<C::Weak> {
        WeakStream::new(stream, || self.0.0.2.downgrade())
    }
}

impl<A: ?Sized, B: ?Sized, C: ?Sized> Step<(&A, &B, &C)> {
    /// Returns no guard, because none is needed.
    pub fn gpu_time_guard(&self, _stream: usize) {}
}
