//! Covers every kind of value that a `stream` expression may have, for each cudarc API since 0.15.
// Users do not see this lint, because it ignores macros from other crates.
#![allow(unused_imports)]

use std::cell::RefCell;
use std::ffi::c_void;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::{Arc, Mutex, RwLock};

use crate::call::decide::StreamQuery;
use crate::call::source::{Source, StreamSource};
use crate::call::stream::{StreamGuard, is_trusted, tried};
use crate::types::gpu_stream::{
    GpuStream, LEGACY_STREAM, NULL_STREAM, PER_THREAD_STREAM, RawStream,
};
use crate::types::handles::Stream;

macro_rules! source {
    ($value:expr, $owner:ident) => {
        crate::__gpu_time_source!($value, $owner, StreamQuery::WITHOUT_LEASES).unwrap()
    };
    ($value:expr) => {
        source!(&$value, owned)
    };
}

/// A fake cudarc whose context has the given methods in addition to `cu_ctx`.
macro_rules! cudarc {
    ($name:ident, $($method:ident -> $answer:expr),*) => {
        mod $name {
            use std::ffi::c_void;
            use std::sync::Arc;

            pub struct CudaContext;

            impl CudaContext {
                pub fn cu_ctx(&self) -> *mut c_void {
                    std::ptr::without_provenance_mut(0xc0)
                }
                $(pub fn $method(&self) -> bool {
                    $answer
                })*
            }

            pub struct CudaStream(usize, Arc<CudaContext>);

            impl CudaStream {
                pub fn new(handle: usize) -> Self {
                    CudaStream(handle, Arc::new(CudaContext))
                }
                pub fn cu_stream(&self) -> *mut c_void {
                    std::ptr::without_provenance_mut(self.0)
                }
                pub fn context(&self) -> &Arc<CudaContext> {
                    &self.1
                }
            }
        }
    };
}

cudarc!(v0_14,);
cudarc!(v0_15, is_in_multi_stream_mode -> true);
cudarc!(v0_16, is_in_multi_stream_mode -> true, is_event_tracking -> true);
cudarc!(v0_19, is_in_multi_stream_mode -> true, is_event_tracking -> false);

use v0_19::CudaStream;

#[derive(Debug, PartialEq)]
enum Seen {
    Host,
    Unknown(&'static str),
    Stream { stream: usize, context: usize, tracked: bool },
}

fn seen<G>(source: Source<G>) -> Seen {
    match source {
        Source::None => Seen::Host,
        Source::Unknown(name) => Seen::Unknown(name),
        Source::Stream(StreamSource { stream: Stream(stream), context, tracked, .. }) => {
            Seen::Stream { stream, context, tracked }
        }
    }
}

fn on(stream: usize) -> Seen {
    Seen::Stream { stream, context: 0xc0, tracked: false }
}

fn raw(stream: usize) -> Seen {
    Seen::Stream { stream, context: 0, tracked: false }
}

#[test]
fn owned_borrowed_counted_and_boxed() {
    let stream = CudaStream::new(5);
    assert_eq!(seen(source!(stream)), on(5));
    assert_eq!(seen(source!(&stream)), on(5));
    assert_eq!(seen(source!(&&stream)), on(5));
    assert_eq!(seen(source!(&mut CudaStream::new(6))), on(6));
    assert_eq!(seen(source!(Arc::new(CudaStream::new(7)))), on(7));
    assert_eq!(seen(source!(&Arc::new(CudaStream::new(7)))), on(7));
    assert_eq!(seen(source!(Rc::new(CudaStream::new(8)))), on(8));
    assert_eq!(seen(source!(Box::new(CudaStream::new(9)))), on(9));
    assert_eq!(seen(source!(Box::new(Arc::new(CudaStream::new(9))))), on(9));
}

#[test]
fn places_are_not_moved_out_of() {
    struct Net {
        stream: Arc<CudaStream>,
    }
    let net = &Net { stream: Arc::new(CudaStream::new(5)) };
    assert_eq!(seen(source!(net.stream)), on(5));
    assert_eq!(seen(source!(net.stream)), on(5));
}

#[test]
fn behind_guards() {
    let mutex = Mutex::new(Arc::new(CudaStream::new(5)));
    assert_eq!(seen(source!(mutex.lock().unwrap())), on(5));
    let lock = RwLock::new(Some(CudaStream::new(6)));
    assert_eq!(seen(source!(lock.read().unwrap())), on(6));
    let cell = RefCell::new(CudaStream::new(7));
    assert_eq!(seen(source!(cell.borrow())), on(7));
    assert_eq!(seen(source!(cell.borrow_mut())), on(7));
}

#[test]
fn options_and_results() {
    let stream = Arc::new(CudaStream::new(5));
    assert_eq!(seen(source!(Some(&stream))), on(5));
    assert_eq!(seen(source!(&Some(stream.clone()))), on(5));
    assert_eq!(seen(source!(Ok::<_, String>(&stream))), on(5));
    assert_eq!(seen(source!(None::<&Arc<CudaStream>>)), Seen::Host);
    assert_eq!(seen(source!(Err::<CudaStream, _>("no device"))), Seen::Host);
    let mut option = Some(CudaStream::new(6));
    assert_eq!(seen(source!(option.as_mut())), on(6));
    assert_eq!(seen(source!(&mut option)), on(6));
    assert_eq!(seen(source!(option)), on(6));
}

#[test]
fn question_marks() {
    assert_eq!(tried(Some(1)), Some(1));
    assert_eq!(tried(None::<u8>), None);
    assert_eq!(tried(Ok::<u8, String>(1)), Some(1));
    assert_eq!(tried(Err::<u8, _>("no")), None);
}

#[test]
fn vouched_streams_name_no_context() {
    assert_eq!(seen(source!(NULL_STREAM)), raw(0));
    assert_eq!(seen(source!(&LEGACY_STREAM)), raw(1));
    assert_eq!(seen(source!(Some(PER_THREAD_STREAM))), raw(2));
    assert_eq!(seen(source!(None::<RawStream>)), Seen::Host);
}

/// A user-defined stream type that has methods with the same names.
struct Queue(usize);

#[expect(unsafe_code, reason = "as a user writes it")]
// SAFETY: no driver sees the handle.
unsafe impl GpuStream for Queue {
    fn stream_handle(&self) -> *mut c_void {
        std::ptr::without_provenance_mut(self.0)
    }
}

impl Queue {
    #[expect(dead_code, reason = "the implementation of the trait is used instead")]
    fn cu_stream(&self) -> u8 {
        0
    }
}

#[test]
fn vouched_streams_behind_pointers_and_guards() {
    fn generic<S: GpuStream>(stream: S) -> Seen {
        seen(source!(stream))
    }
    let mut queue = Queue(5);
    assert_eq!(seen(source!(&&queue)), raw(5));
    assert_eq!(seen(source!(&mut queue)), raw(5));
    assert_eq!(seen(source!(Some(&queue))), raw(5));
    assert_eq!(generic(&queue), raw(5));
    assert_eq!(seen(source!(Box::new(queue) as Box<dyn GpuStream>)), raw(5));
    assert_eq!(seen(source!(Rc::new(Arc::new(Queue(6))))), raw(6));
    assert_eq!(seen(source!(Mutex::new(Queue(7)).lock().unwrap())), raw(7));
    assert_eq!(seen(source!(RwLock::new(Queue(7)).read().unwrap())), raw(7));
    assert_eq!(seen(source!(RwLock::new(Some(Queue(7))).write().unwrap())), raw(7));
    assert_eq!(seen(source!(RefCell::new(Queue(8)).borrow())), raw(8));
    assert_eq!(seen(source!(RefCell::new(Queue(8)).borrow_mut())), raw(8));
}

#[test]
fn generic_streams() {
    fn through_deref<S: Deref<Target = CudaStream>>(stream: S) -> Seen {
        seen(source!(stream))
    }
    fn through_as_ref<S: AsRef<CudaStream>>(stream: &S) -> Seen {
        seen(source!(stream.as_ref()))
    }
    assert_eq!(through_deref(Arc::new(CudaStream::new(5))), on(5));
    assert_eq!(through_deref(&CudaStream::new(6)), on(6));
    assert_eq!(through_as_ref(&Box::new(CudaStream::new(7))), on(7));
}

#[test]
fn tracking_is_what_that_version_can_do() {
    fn tracked<G>(source: Source<G>) -> bool {
        matches!(source, Source::Stream(StreamSource { tracked: true, .. }))
    }
    assert!(!tracked(source!(v0_14::CudaStream::new(5))));
    assert!(tracked(source!(v0_15::CudaStream::new(5))));
    assert!(tracked(source!(v0_16::CudaStream::new(5))));
    assert!(!tracked(source!(v0_19::CudaStream::new(5))));
}

/// A type of a safe program that could return any handle.
struct Lookalike(v0_19::CudaStream);

impl Lookalike {
    fn cu_stream(&self) -> *mut c_void {
        self.0.cu_stream()
    }

    fn context(&self) -> &Arc<v0_19::CudaContext> {
        self.0.context()
    }
}

#[test]
fn lookalikes_name_no_handle() {
    let unknown = || Seen::Unknown(concat!(module_path!(), "::Lookalike"));
    let lookalike = || Lookalike(CudaStream::new(5));
    assert_eq!(seen(source!(lookalike())), unknown());
    assert_eq!(seen(source!(Arc::new(lookalike()))), unknown());
    assert_eq!(seen(source!(Some(&lookalike()))), unknown());
}

#[test]
fn types_are_trusted_by_their_names() {
    let context = "cudarc::driver::safe::core::CudaContext";
    assert!(is_trusted("cudarc::driver::safe::core::CudaStream", context));
    assert!(is_trusted("cuda_core::runtime::Stream", "cuda_core::runtime::Context"));
    for stream in ["app::cudarc::CudaStream", "cudarc_app::CudaStream", "cudarc::Box<CudaStream>"] {
        assert!(!is_trusted(stream, context), "{stream}");
    }
    assert!(!is_trusted("cudarc::driver::CudaStream", "app::CudaContext"));
}

#[test]
fn methods_of_users_pointers_and_traits_are_passed_over() {
    #[expect(dead_code, reason = "a stream's own method is called instead")]
    trait Handles {
        fn cu_stream(&self) -> *mut c_void {
            std::ptr::without_provenance_mut(0xdead_0000)
        }
    }
    impl<T: ?Sized> Handles for T {}

    struct Pointer(CudaStream);
    impl Deref for Pointer {
        type Target = CudaStream;
        fn deref(&self) -> &CudaStream {
            &self.0
        }
    }
    impl Pointer {
        #[expect(dead_code, reason = "the stream's own method is called instead")]
        fn cu_stream(&self) -> u8 {
            0
        }
    }
    assert_eq!(seen(source!(CudaStream::new(5))), on(5));
    assert_eq!(seen(source!(Box::new(Pointer(CudaStream::new(5))))), on(5));
    assert_eq!(seen(source!(NULL_STREAM)), raw(0));
}

/// Covers the real types, which cannot be created without a driver.
#[expect(dead_code, reason = "compiled, not run")]
fn real_cudarc(stream: &Arc<cudarc::driver::CudaStream>, owned: cudarc::driver::CudaStream) {
    seen(source!(stream));
    seen(source!(Some(stream)));
    seen(source!(stream.context().default_stream()));
    seen(source!(stream.context().new_stream()));
    seen(source!(owned));
}

#[test]
fn streams_are_not_kept_alive_and_dead_ones_are_known() {
    fn guard<G>(source: Source<G>) -> G {
        match source {
            Source::Stream(StreamSource { guard, .. }) => guard,
            Source::None | Source::Unknown(_) => unreachable!(),
        }
    }
    fn is_alive(guard: &impl StreamGuard) -> bool {
        guard.upgrade().is_some()
    }
    let stream = Arc::new(CudaStream::new(5));
    let by_value = guard(source!(stream));
    let by_reference = guard(source!(Some(&stream)));
    assert!(is_alive(&by_value));
    assert!(is_alive(&by_reference));
    assert!(Arc::try_unwrap(stream).is_ok());
    assert!(!is_alive(&by_value));
    assert!(!is_alive(&by_reference));

    let counted = Rc::new(CudaStream::new(5));
    let behind_guard = RefCell::new(counted.clone());
    let cell = guard(source!(behind_guard.borrow()));
    drop(counted);
    assert!(is_alive(&cell));
    drop(behind_guard);
    assert!(!is_alive(&cell));

    // A temporary pointer to a stream that is never destroyed.
    let named = guard(source!(Arc::new(CudaStream::new(0))));
    assert!(is_alive(&named));

    // Lent by the caller.
    let () = guard(source!(&&Arc::new(CudaStream::new(5)), lent));

    // These have no reference count, so they get no guard.
    let () = guard(source!(CudaStream::new(5)));
    let () = guard(source!(Box::new(CudaStream::new(5))));
}
