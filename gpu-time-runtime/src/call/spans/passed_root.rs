//! The root span that a thread is inside of if that root opened no call.

use tracing_core::{Subscriber, dispatcher};
use tracing_subscriber::Registry;
use tracing_subscriber::registry::LookupSpan;

use crate::call::spans::{roots, sites};

/// Returns the probability with which the root span around the thread's next call would have opened a call. Returns 0
/// if the thread is inside no span. The thread must not be inside an opened call.
///
/// Until a root of its callsite has been chosen, it is not known whether the filter excludes the span.
pub(crate) fn share() -> f64 {
    if !roots::is_inside() {
        return 0.0;
    }
    known_share().unwrap_or_else(roots::share)
}

/// Returns the probability of choosing and timing a root of this root's site, if there is one.
fn known_share() -> Option<f64> {
    dispatcher::get_default(|dispatch| {
        let registry = dispatch.downcast_ref::<Registry>()?;
        let current = registry.current_span();
        let root = registry.span(current.id()?)?.scope().last()?;
        let site = &sites::known(root.metadata())?.site;
        let timed = if site.is_sampled() { site.rate.get().rate() } else { 1.0 };
        Some(if site.is_on() { site.kernels_share() * timed } else { 0.0 })
    })
}
