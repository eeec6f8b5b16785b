//! Background threads of the runtime.

#![allow(unsafe_code)] // a thread without `std`, and the bounds of a stack

use std::cell::Cell;
use std::ffi::c_void;
use std::io;
use std::mem::{self, MaybeUninit};
use std::panic::{self, AssertUnwindSafe};
use std::ptr;
use std::thread;

use crate::base::signal_mask::BlockedSignals;
use crate::base::{inside, pin};

/// The least stack space for one-time work: more than the loader, NVML and an unoptimised build need.
const ROOM: usize = 256 * 1024;
/// The stack size of the thread that does it if the caller has less.
const STACK: usize = 1024 * 1024;

/// Starts a thread with every signal blocked, so that signals still go to the application's threads.
///
/// # Errors
///
/// The error of the operating system if it cannot create a thread.
pub(crate) fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    pin::pin_runtime();
    let _blocked = BlockedSignals::all();
    let run = || {
        let _inside = inside::enter();
        run();
    };
    thread::Builder::new().name(name.to_owned()).spawn(run).map(drop)
}

/// Runs one-time work on this thread or, if less than [`ROOM`] is left of its stack, on a new thread, and waits for it.
/// The caller must hold no lock that `work` takes, and `work` must not use the caller's current CUDA context.
///
/// Not always on a new thread: a constructor that `dlopen` runs holds the loader's lock, for which that thread would
/// wait.
pub(crate) fn aside<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    if has_room() {
        return work();
    }
    let mut work = Some(work);
    let mut result = None;
    let mut run = || {
        if let Some(work) = work.take() {
            // A panic must not unwind into the C library.
            result = Some(panic::catch_unwind(AssertUnwindSafe(work)));
        }
    };
    if !run_on_thread(&mut run) {
        run();
    }
    match result {
        Some(Ok(result)) => result,
        Some(Err(panic)) => panic::resume_unwind(panic),
        None => unreachable!("the work has run"),
    }
}

/// Returns `true` if [`ROOM`] is left on the stack. Returns `false` on a stack that is not the thread's own,
/// such as a coroutine's, because its bounds are unknown.
fn has_room() -> bool {
    thread_local! {
        /// The lowest address of the thread's stack, and the address above it.
        static BOUNDS: Cell<Option<(usize, usize)>> = const { Cell::new(None) };
    }
    let here = 0_u8;
    let here = (&raw const here).addr();
    let known = BOUNDS.get().or_else(bounds);
    BOUNDS.set(known);
    known.is_some_and(|(lowest, end)| {
        here < end && here.checked_sub(lowest).is_some_and(|left| left >= ROOM)
    })
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

/// Runs `run`, which must not unwind, on a new thread, and waits for it. Returns `false` if no thread can be created.
///
/// Not a thread of `std`, which frees memory before it runs the closure: the program's allocator may be annotated,
/// and its call would wait for the caller of this function.
fn run_on_thread(mut run: &mut (dyn FnMut() + Send)) -> bool {
    extern "C" fn start(run: *mut c_void) -> *mut c_void {
        // Also during the destructors of the thread.
        mem::forget(inside::enter());
        // SAFETY: the creator waits for this thread, and does not use the closure meanwhile.
        let run = unsafe { &mut *run.cast::<&mut (dyn FnMut() + Send)>() };
        run();
        ptr::null_mut()
    }
    let mut attributes = MaybeUninit::uninit();
    let mut thread = MaybeUninit::uninit();
    let _blocked = BlockedSignals::all();
    // SAFETY: the attributes are initialised before they are used, and destroyed once. The thread is joined once, so
    // the closure outlives it.
    unsafe {
        if libc::pthread_attr_init(attributes.as_mut_ptr()) != 0 {
            return false;
        }
        libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), STACK);
        let run = (&raw mut run).cast();
        let error = libc::pthread_create(thread.as_mut_ptr(), attributes.as_ptr(), start, run);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        error == 0 && libc::pthread_join(thread.assume_init(), ptr::null_mut()) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_stack_of<R: Send + 'static>(bytes: usize, run: fn() -> R) -> thread::Result<R> {
        thread::Builder::new().stack_size(bytes).spawn(run).unwrap().join()
    }

    #[test]
    fn roomy_stack_is_used() {
        let is_here = || aside(|| thread::current().id()) == thread::current().id();
        assert!(on_stack_of(4 * ROOM, is_here).unwrap());
    }

    #[test]
    fn small_stack_is_left() {
        let is_elsewhere = on_stack_of(ROOM / 4, || {
            let outer = inside::is_inside();
            let (other, is_inside) = aside(|| (thread::current().id(), inside::is_inside()));
            other != thread::current().id() && is_inside && inside::is_inside() == outer
        });
        assert!(is_elsewhere.unwrap());
    }

    #[test]
    fn panic_passes_to_caller() {
        let panicked = on_stack_of(ROOM / 4, || aside(|| panic!("planted")));
        assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&"planted"));
    }
}
