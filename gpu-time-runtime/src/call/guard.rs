//! A call that lasts as long as a value.

use std::marker::PhantomData;

use crate::call::{scope::Scope, stream::StreamGuard};

/// The call of a `guard!`, which ends when this is dropped.
///
/// Not `Send`: if a future held it across an `.await`, the runtime would not see the suspension, and
/// would count the thread's other work as the call's.
#[must_use = "the call ends when the guard is dropped"]
pub struct Guard<G: StreamGuard>(Scope<G>, PhantomData<*const ()>);

impl<G: StreamGuard> Guard<G> {
    /// Wraps the scope of a call.
    #[inline(always)]
    pub fn new(scope: Scope<G>) -> Guard<G> {
        Guard(scope, PhantomData)
    }
}
