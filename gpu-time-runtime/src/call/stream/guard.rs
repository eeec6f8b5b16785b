//! What of a stream is kept while the body of the user may let go of it.
//!
//! [`Owner`] decides what that is by method lookup, as [`Given`](super::Given) does.

use std::ops::Deref;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::rc::{self, Rc};
use std::sync::{self, Arc};

use crate::types::workload::Workload;

/// What can say, later, whether a stream is still there, without keeping it alive until then.
pub trait StreamGuard {
    /// Keeps the stream alive while a handle to it is being used.
    type Held;

    /// `None` if the stream has gone.
    fn hold(&self) -> Option<Self::Held>;

    /// The work of the call, for those that carry it along.
    fn workload(&self) -> Workload {
        Workload::UNKNOWN
    }
}

/// A stream that outlives the call anyway.
impl StreamGuard for () {
    type Held = ();

    fn hold(&self) -> Option<()> {
        Some(())
    }
}

/// Keeps a stream by a weak pointer: a strong count of ours would break the user's `try_unwrap`.
///
/// Invariant: empty exactly for a handle that no one owns, because an `Arc` around one of those may
/// be a temporary that was made to name it, as by cudarc's `default_stream()`.
pub struct WeakStream<W>(Option<W>);

// It stays with the call, so it must not cost the user's function its unwind safety.
impl<W> UnwindSafe for WeakStream<W> {}
impl<W> RefUnwindSafe for WeakStream<W> {}

impl<W> WeakStream<W> {
    fn new(stream: usize, downgrade: impl FnOnce() -> W) -> Self {
        // The NULL stream, the legacy one and the per-thread one are never destroyed.
        WeakStream((stream > 2).then(downgrade))
    }
}

impl<T: ?Sized> StreamGuard for WeakStream<sync::Weak<T>> {
    type Held = Option<Arc<T>>;

    fn hold(&self) -> Option<Option<Arc<T>>> {
        self.0.as_ref().map_or(Some(None), |weak| weak.upgrade().map(Some))
    }
}

impl<T: ?Sized> StreamGuard for WeakStream<rc::Weak<T>> {
    type Held = Option<Rc<T>>;

    fn hold(&self) -> Option<Option<Rc<T>>> {
        self.0.as_ref().map_or(Some(None), |weak| weak.upgrade().map(Some))
    }
}

/// A stream's keep with the work of the call: calls whose work nobody asked for do not carry any.
pub struct WithWorkload<K> {
    /// What says whether the stream is still there.
    pub keep: K,
    /// The work of the call.
    pub workload: Workload,
}

impl<K: StreamGuard> StreamGuard for WithWorkload<K> {
    type Held = K::Held;

    fn hold(&self) -> Option<K::Held> {
        self.keep.hold()
    }

    fn workload(&self) -> Workload {
        self.workload
    }
}

/// A stream that the body may let go of, to be asked for what it can [keep](Owner::gpu_time_keep).
///
/// Lookup meets an `Arc` or `Rc` first, then one behind a reference, box or guard, then anything.
pub struct Owner<'a, S>(OwnerBehind<'a, S>);

/// What dereferences to an `Arc` or `Rc`.
pub struct OwnerBehind<'a, S>(OwnerBehindTwo<'a, S>);

/// What dereferences to what dereferences to an `Arc` or `Rc`.
pub struct OwnerBehindTwo<'a, S>(OwnerPlain<'a, S>);

/// A stream that nothing counts.
pub struct OwnerPlain<'a, S>(&'a S);

/// Wraps a stream that the body may let go of.
pub fn owner<S>(stream: &S) -> Owner<'_, S> {
    Owner(OwnerBehind(OwnerBehindTwo(OwnerPlain(stream))))
}

/// An `Arc` or an `Rc`.
pub trait Counted {
    /// The weak counterpart.
    type Weak;

    /// Makes one.
    fn downgrade(&self) -> Self::Weak;
}

impl<T: ?Sized> Counted for Arc<T> {
    type Weak = sync::Weak<T>;

    fn downgrade(&self) -> Self::Weak {
        Arc::downgrade(self)
    }
}

impl<T: ?Sized> Counted for Rc<T> {
    type Weak = rc::Weak<T>;

    fn downgrade(&self) -> Self::Weak {
        Rc::downgrade(self)
    }
}

impl<S: Counted> Owner<'_, S> {
    /// What to keep of the owner of this handle.
    pub fn gpu_time_keep(&self, stream: usize) -> WeakStream<S::Weak> {
        WeakStream::new(stream, || self.0.0.0.0.downgrade())
    }
}

impl<S> OwnerBehind<'_, S>
where
    S: Deref,
    S::Target: Counted,
{
    /// What to keep of the owner of this handle.
    pub fn gpu_time_keep(&self, stream: usize) -> WeakStream<<S::Target as Counted>::Weak> {
        WeakStream::new(stream, || self.0.0.0.deref().downgrade())
    }
}

impl<S> OwnerBehindTwo<'_, S>
where
    S: Deref,
    S::Target: Deref,
    <S::Target as Deref>::Target: Counted,
{
    /// What to keep of the owner of this handle.
    pub fn gpu_time_keep(
        &self,
        stream: usize,
    ) -> WeakStream<<<S::Target as Deref>::Target as Counted>::Weak> {
        WeakStream::new(stream, || self.0.0.deref().deref().downgrade())
    }
}

impl<S> OwnerPlain<'_, S> {
    /// Nothing to keep.
    pub fn gpu_time_keep(&self, _stream: usize) {}
}

impl<'a, S> Deref for Owner<'a, S> {
    type Target = OwnerBehind<'a, S>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<'a, S> Deref for OwnerBehind<'a, S> {
    type Target = OwnerBehindTwo<'a, S>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<'a, S> Deref for OwnerBehindTwo<'a, S> {
    type Target = OwnerPlain<'a, S>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}
