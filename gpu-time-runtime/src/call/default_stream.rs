//! The default stream, on which functions that do not name a stream are timed by events.
//!
//! The runtime keeps it alive while it is the default. Calls in progress hold only a weak pointer to
//! it, as they do to every stream that they do not borrow.

use std::cell::RefCell;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};
use std::sync::{Arc, Weak};

use cudarc::driver::CudaStream;

use crate::base::lock::{Mutex, Rank, locked};
use crate::base::{fork, inside};
use crate::call::decide::StreamQuery;
use crate::call::source::Source;
use crate::call::stream::WeakStream;
use crate::types::gpu_stream::GpuStream;

/// The guard of a call on the default stream.
pub type DefaultGuard = WeakStream<Weak<dyn Owner>>;

/// A value that keeps a stream alive.
pub trait Owner: Send + Sync {
    /// Returns the handles of the stream and its context. The latter is 0 if it is not known.
    fn handles(&self) -> (usize, usize);

    /// Returns `true` if cudarc waits for and records events of its own around launches.
    fn is_tracked(&self) -> bool;
}

impl<S: GpuStream + Send + Sync> Owner for S {
    fn handles(&self) -> (usize, usize) {
        (self.stream_handle().addr(), 0)
    }

    fn is_tracked(&self) -> bool {
        false
    }
}

impl Owner for CudaStream {
    fn handles(&self) -> (usize, usize) {
        (self.cu_stream().addr(), self.context().cu_ctx().addr())
    }

    fn is_tracked(&self) -> bool {
        let context = self.context();
        context.is_in_multi_stream_mode() && context.is_event_tracking()
    }
}

/// The argument of [`set_default_stream`]: an `Arc<CudaStream>` of cudarc, an owned
/// [`GpuStream`], a [`RawStream`](crate::RawStream), or an `Option` of one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the default stream",
    label = "expected an `Arc<CudaStream>` of cudarc 0.19, or an owned, shareable `GpuStream`",
    note = "for another type, write `unsafe {{ gpu_time::raw_stream(stream.cu_stream()) }}` and keep the \
            stream"
)]
pub trait DefaultStream {
    /// Returns the owner of the stream.
    #[doc(hidden)]
    fn gpu_time_owner(self) -> Option<Arc<dyn Owner>>;
}

impl<S: GpuStream + Send + Sync + 'static> DefaultStream for S {
    fn gpu_time_owner(self) -> Option<Arc<dyn Owner>> {
        Some(Arc::new(self))
    }
}

impl DefaultStream for Arc<CudaStream> {
    fn gpu_time_owner(self) -> Option<Arc<dyn Owner>> {
        Some(self)
    }
}

impl<S: DefaultStream> DefaultStream for Option<S> {
    fn gpu_time_owner(self) -> Option<Arc<dyn Owner>> {
        self.and_then(S::gpu_time_owner)
    }
}

/// The number of times that any thread has set or removed a default stream.
static CHANGES: AtomicU64 = AtomicU64::new(0);
/// The default stream of all threads.
static SHARED: Mutex<Option<Arc<dyn Owner>>> = Mutex::new(Rank::DefaultStream, None);

thread_local! {
    /// The default stream of this thread.
    static OWN: RefCell<Option<Arc<dyn Owner>>> = const { RefCell::new(None) };
    /// A weak copy of `SHARED`, and the value of `CHANGES` when it was made.
    static SEEN: RefCell<(u64, Option<Weak<dyn Owner>>)> = const { RefCell::new((0, None)) };
}

/// Sets the stream on which functions that name no stream are timed by events, on all threads that have
/// no default stream of their own. `None` removes it.
///
/// ```
/// # use gpu_time_runtime as gpu_time;
/// // For cudarc: `gpu_time::set_default_stream(stream.clone())`.
/// gpu_time::set_default_stream(gpu_time::NULL_STREAM);
/// ```
///
/// Applies to functions that would otherwise be timed by their kernels: they have neither a `stream`
/// nor a `clock` key, and no parameter or visible launch shows the stream. Calls in progress are not
/// affected. Work that a function launches on another stream is not part of its time.
///
/// The stream is kept alive until another one is set. A [`RawStream`](crate::RawStream) keeps nothing
/// alive: the stream must exist as long as it is the default.
pub fn set_default_stream(stream: impl DefaultStream) {
    let owner = stream.gpu_time_owner();
    let before = {
        let Some(_call) = fork::begin_call() else { return };
        let before = mem::replace(&mut *locked(&SHARED), owner);
        CHANGES.fetch_add(1, Release);
        before
    };
    // May destroy the stream.
    drop(before);
}

/// Sets the [default stream](set_default_stream) of the calling thread, which takes precedence over the
/// one for all threads. `None` removes it.
pub fn set_thread_default_stream(stream: impl DefaultStream) {
    let owner = stream.gpu_time_owner();
    CHANGES.fetch_add(1, Release);
    let before = OWN.try_with(|own| own.replace(owner));
    drop(before);
}

/// Returns the default stream of the calling thread, for one call.
pub(super) fn current() -> Option<Source<DefaultGuard>> {
    let changes = CHANGES.load(Acquire);
    // A call that interrupts the runtime is not timed.
    if changes == 0 || inside::is_inside() {
        return None;
    }
    let own = OWN.try_with(|own| own.try_borrow().ok()?.clone()).ok().flatten();
    let owner = own.or_else(|| shared(changes))?;
    let (stream, context) = owner.handles();
    let guard = || WeakStream::new(stream, || Arc::downgrade(&owner));
    StreamQuery::WITHOUT_LEASES.stream(stream, context, || owner.is_tracked(), guard)
}

/// Returns the default stream of all threads. Takes the lock only after a change.
fn shared(changes: u64) -> Option<Arc<dyn Owner>> {
    let seen = |seen: &RefCell<(u64, Option<Weak<dyn Owner>>)>| {
        let mut seen = seen.try_borrow_mut().ok()?;
        if seen.0 != changes {
            let _inside = inside::enter();
            *seen = (changes, locked(&SHARED).as_ref().map(Arc::downgrade));
        }
        seen.1.as_ref()?.upgrade()
    };
    SEEN.try_with(seen).ok().flatten()
}
