//! Launches that are timed individually, with an event pair around each.

use std::panic::{RefUnwindSafe, UnwindSafe};

use crate::base::{fork, inside};
use crate::call::scope::Scope;
use crate::call::stream::{Life, StreamGuard};
use crate::call::stream_call::OpenLaunch;
use crate::call::timed_call::TimedCall;
use crate::types::sample::Lost;

/// A launch between its two events. If the token is dropped before the stop, the launch counts as
/// lost.
#[must_use]
pub struct Token(Option<OpenLaunch>);

const _: () = {
    const fn holds_across_awaits_and_unwinding<T: Send + Sync + UnwindSafe + RefUnwindSafe>() {}
    holds_across_awaits_and_unwinding::<Scope<()>>();
    holds_across_awaits_and_unwinding::<Token>();
};

impl<G: StreamGuard> Scope<G> {
    /// Starts the launch with this index in
    /// [`Spec::launches`](crate::types::attribute::Spec::launches).
    #[inline]
    pub fn start(&self, launch: u32) -> Token {
        Token(match self.timed() {
            _ if fork::is_forked() => None,
            Some((TimedCall::OnStream(call), cost)) => {
                let _inside = inside::enter();
                let _timing = cost.start();
                call.open_launch(launch)
            }
            Some((TimedCall::Opened(call), _)) => Some(OpenLaunch::Opened(call.start_launch())),
            _ => None,
        })
    }

    fn close(&self, launch: OpenLaunch, has_failed: bool) {
        if fork::is_forked() {
            return;
        }
        let Some((TimedCall::OnStream(timed), cost)) = self.timed() else {
            // A launch of an opened call has no bracket that could be lost.
            return launch.abandon(Lost::Failed);
        };
        let _inside = inside::enter();
        let _timing = cost.start();
        if has_failed {
            return launch.abandon(Lost::Failed);
        }
        let strong = timed.guard.upgrade();
        launch.close(&timed.call, Life::of(&strong));
    }
}

/// Stops a launch. `failed` returns `true` if the result shows that nothing was launched.
#[inline]
pub fn stop<R, G: StreamGuard>(
    (mut token, result): (Token, R),
    scope: &Scope<G>,
    failed: impl FnOnce(&R) -> bool,
) -> R {
    if let Some(launch) = token.0.take() {
        scope.close(launch, failed(&result));
    }
    result
}

/// Runs if the function left the launch by unwinding, or by a `return` or `?` in one of its
/// arguments.
impl Drop for Token {
    fn drop(&mut self) {
        if let Some(launch) = self.0.take()
            && !fork::is_forked()
        {
            let _inside = inside::enter();
            launch.abandon(Lost::Failed);
        }
    }
}
