//! Provides stack space for one-time work on threads whose own stack may be small.

#![allow(unsafe_code)] // a thread, and the bounds of a stack

use std::any::Any;
use std::cell::Cell;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::panic::{self, AssertUnwindSafe};
use std::ptr;

use crate::base::{inside, signal_mask::BlockedSignals};

/// The least stack space for such work: more than the loader, NVML and an unoptimised build need.
const ROOM: usize = 256 * 1024;
/// The stack size of the thread that runs the work if the caller has less than [`ROOM`].
const STACK: usize = 1024 * 1024;

/// Runs `run` on this thread or, if less than [`ROOM`] is left of its stack, on a new thread, and waits
/// for it. The caller must hold no lock that `run` takes, and `run` must not use the caller's current
/// CUDA context.
pub(crate) fn with_room<R: Send>(run: impl FnOnce() -> R + Send) -> R {
    if has_room() { run() } else { run_aside(run) }
}

/// Returns `true` if [`ROOM`] is left on the stack. Returns `false` on a stack that is not the thread's own,
/// such as a coroutine's, because its bounds are unknown.
fn has_room() -> bool {
    thread_local! {
        /// The lowest address of the thread's stack, and the address above it.
        static STACK: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
    }
    let here = 0_u8;
    let here = (&raw const here).addr();
    if STACK.get() == (0, 0) {
        STACK.set(bounds().unwrap_or((usize::MAX, usize::MAX)));
    }
    let (lowest, end) = STACK.get();
    here < end && here.checked_sub(lowest).is_some_and(|left| left >= ROOM)
}

/// Returns the lowest address of the calling thread's stack, and the address above it.
fn bounds() -> Option<(usize, usize)> {
    let mut attributes = MaybeUninit::uninit();
    let (mut lowest, mut bytes) = (ptr::null_mut(), 0);
    // SAFETY: initialises the attributes if it succeeds. They are read, and destroyed once.
    unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return None;
        }
        let is_known =
            libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut lowest, &raw mut bytes) == 0;
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        is_known.then(|| (lowest.addr(), lowest.addr().saturating_add(bytes)))
    }
}

/// A closure, or its result once it has run.
struct Job<F, R> {
    run: Option<F>,
    result: Option<Result<R, Box<dyn Any + Send>>>,
}

/// Runs `run` on a new thread, or on this one if no thread can be created. Does not use `std::thread`,
/// because creating such a thread takes several KiB of stack.
fn run_aside<R: Send, F: FnOnce() -> R + Send>(run: F) -> R {
    let mut job = Job { run: Some(run), result: None };
    let at = (&raw mut job).cast();
    let blocked = BlockedSignals::all();
    let created = create(do_job::<R, F>, at);
    drop(blocked);
    if let Some(thread) = created {
        // SAFETY: it was created joinable, and is joined once. The job outlives it.
        unsafe { libc::pthread_join(thread, ptr::null_mut()) };
    }
    match (job.result, job.run) {
        (Some(Ok(result)), _) => result,
        (Some(Err(panic)), _) => panic::resume_unwind(panic),
        (None, Some(run)) => run(),
        (None, None) => unreachable!("the thread that took the closure stored its result"),
    }
}

fn create(
    start: extern "C" fn(*mut c_void) -> *mut c_void,
    job: *mut c_void,
) -> Option<libc::pthread_t> {
    let mut attributes = MaybeUninit::uninit();
    let mut thread = MaybeUninit::uninit();
    // SAFETY: the attributes are initialised before they are used, and destroyed once. The caller waits for
    // the thread, so the job outlives it.
    unsafe {
        if libc::pthread_attr_init(attributes.as_mut_ptr()) != 0 {
            return None;
        }
        libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), STACK);
        let error = libc::pthread_create(thread.as_mut_ptr(), attributes.as_ptr(), start, job);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        (error == 0).then(|| thread.assume_init())
    }
}

extern "C" fn do_job<R: Send, F: FnOnce() -> R + Send>(job: *mut c_void) -> *mut c_void {
    let _inside = inside::enter();
    // SAFETY: the creator waits for this thread, and does not use the job meanwhile.
    let job = unsafe { &mut *job.cast::<Job<F, R>>() };
    if let Some(run) = job.run.take() {
        // A panic must not unwind into the C library.
        job.result = Some(panic::catch_unwind(AssertUnwindSafe(run)));
    }
    ptr::null_mut()
}

#[cfg(test)]
mod tests {
    use std::thread::{self, ThreadId};

    use super::*;

    fn id() -> ThreadId {
        thread::current().id()
    }

    fn on_stack_of<R: Send + 'static>(bytes: usize, run: fn() -> R) -> thread::Result<R> {
        thread::Builder::new().stack_size(bytes).spawn(run).unwrap().join()
    }

    #[test]
    fn roomy_stack_is_used() {
        assert!(on_stack_of(4 * ROOM, || id() == with_room(id)).unwrap());
    }

    #[test]
    fn small_stack_is_left() {
        let is_elsewhere = on_stack_of(ROOM / 4, || {
            let (other, text) = with_room(|| (id(), "done".to_owned()));
            other != id() && text == "done"
        });
        assert!(is_elsewhere.unwrap());
    }

    #[test]
    fn panic_passes_to_caller() {
        let panicked = on_stack_of(ROOM / 4, || with_room(|| panic!("planted")));
        assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&"planted"));
    }
}
