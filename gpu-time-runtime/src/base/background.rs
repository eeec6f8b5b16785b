//! Background threads of the runtime.

#![allow(unsafe_code)] // a thread without `std`

use std::ffi::c_void;
use std::io;
use std::mem::{self, MaybeUninit};
use std::panic::{self, AssertUnwindSafe};
use std::ptr;
use std::thread;

use crate::base::signal_mask::BlockedSignals;
use crate::base::{inside, pin};

/// The stack of a thread for one-time work: more than the loader, NVML and an unoptimised build need.
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

/// Runs one-time work on a new thread and waits for it, because the caller's stack may be small. Runs it on the
/// calling thread if no thread can be created. The caller must hold no lock that `work` takes, and `work` must not
/// use the caller's current CUDA context.
pub(crate) fn aside<R: Send>(work: impl FnOnce() -> R + Send) -> R {
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

    #[test]
    fn work_aside_has_a_stack_of_its_own() {
        let (caller, outer) = (thread::current().id(), inside::is_inside());
        let (thread, is_inside) = aside(|| (thread::current().id(), inside::is_inside()));
        assert!(thread != caller && is_inside);
        assert_eq!(inside::is_inside(), outer);
    }

    #[test]
    fn panic_passes_to_caller() {
        let panicked = panic::catch_unwind(|| aside(|| panic!("planted")));
        assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&"planted"));
    }
}
