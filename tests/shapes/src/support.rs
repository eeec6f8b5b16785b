//! Logs the observable behaviour of shapes to stdout. The annotated run must print exactly what the
//! plain one prints.

pub use crate::cuda::*;
pub(crate) use crate::log::log;
#[cfg(feature = "timed")]
pub use gpu_time::{gpu_timed, scope};
pub use std::cell::{Cell, RefCell};
pub use std::fmt::{Debug, Display};
pub use std::future::Future;
pub use std::panic::{Location, RefUnwindSafe, UnwindSafe, catch_unwind};
pub use std::pin::Pin;
pub use std::rc::Rc;
pub use std::sync::{Arc, Mutex};
pub use std::task::{Context, Poll, Waker};

/// The block of the macro that times it.
#[cfg(not(feature = "timed"))]
macro_rules! scope {
    ($name:literal, $($key:ident = $value:expr,)* $block:block) => { $block };
}
#[cfg(not(feature = "timed"))]
pub(crate) use scope;

/// Lists the auto traits of a value's type, which the attribute could remove without an error.
macro_rules! log_auto_traits {
    ($value:expr) => {
        match Probe(&$value) {
            probe => log!(
                "send {} sync {} unpin {} unwind-safe {} ref-unwind-safe {}",
                probe.send(),
                probe.sync(),
                probe.unpin(),
                probe.unwind_safe(),
                probe.ref_unwind_safe()
            ),
        }
    };
}
pub(crate) use log_auto_traits;

/// A value whose type is checked for its traits: a method of this type applies only if its bound
/// holds, else the one of [`No`] does.
pub struct Probe<'a, T>(pub &'a T);

pub trait No {
    fn send(&self) -> bool {
        false
    }
    fn sync(&self) -> bool {
        false
    }
    fn unpin(&self) -> bool {
        false
    }
    fn unwind_safe(&self) -> bool {
        false
    }
    fn ref_unwind_safe(&self) -> bool {
        false
    }
}

impl<T> No for Probe<'_, T> {}

impl<T: Send> Probe<'_, T> {
    pub fn send(&self) -> bool {
        true
    }
}

impl<T: Sync> Probe<'_, T> {
    pub fn sync(&self) -> bool {
        true
    }
}

impl<T: Unpin> Probe<'_, T> {
    pub fn unpin(&self) -> bool {
        true
    }
}

impl<T: UnwindSafe> Probe<'_, T> {
    pub fn unwind_safe(&self) -> bool {
        true
    }
}

impl<T: RefUnwindSafe> Probe<'_, T> {
    pub fn ref_unwind_safe(&self) -> bool {
        true
    }
}

/// Logs its own drop.
#[derive(Debug)]
pub struct Noisy(pub &'static str);

impl Drop for Noisy {
    fn drop(&mut self) {
        log!("drop {}", self.0);
    }
}

impl Noisy {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn get(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

pub fn type_of<T>(_: &T) -> &'static str {
    std::any::type_name::<T>()
}

/// Logs the return value of `f`, or that it panicked. The panic hook has logged the panic itself.
pub fn attempt<R: Debug>(f: impl FnOnce() -> R) {
    match catch_unwind(std::panic::AssertUnwindSafe(f)) {
        Ok(value) => log!("returned {:?}", value),
        Err(_) => log!("unwound"),
    }
}

/// Polls to completion on this thread.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = Box::pin(future);
    let mut polls = 0;
    loop {
        polls += 1;
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            log!("ready after {} polls", polls);
            return value;
        }
    }
}

/// Polls once, then drops the future.
pub fn cancel<F: Future>(future: F) {
    let mut future = Box::pin(future);
    let pending = future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending();
    log!("pending {}", pending);
    drop(future);
    log!("cancelled");
}

/// Is ready at the second poll.
pub fn yield_now() -> Yield {
    Yield(false)
}

pub struct Yield(bool);

impl Future for Yield {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// Runs one shape under its name.
pub fn shape(name: &str, run: fn()) {
    println!("[{}]", name);
    run();
}

/// Logs panics with their message and location, which are part of a shape's behaviour.
pub fn log_panics() {
    std::panic::set_hook(Box::new(|info| {
        let message = info.payload_as_str().unwrap_or("(not a string)");
        log!("panic {:?} at {}", message, info.location().unwrap());
    }));
}

/// Runs `group: shape …;` in order. A shape that is missing here is dead code, which is an error.
macro_rules! run {
    ($($group:ident: $($shape:ident)*;)*) => {
        $($(support::shape(
            concat!(stringify!($group), "::", stringify!($shape)),
            $group::$shape::run,
        );)*)*
    };
}
pub(crate) use run;
