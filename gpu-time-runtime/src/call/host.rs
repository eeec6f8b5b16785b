//! Calls timed by the host clock, including those whose `stream` expression yields no stream.

use std::time::Instant;

use crate::base::{clock, lock::locked};
use crate::call::counted_call::CountedCall;
use crate::record::series_counters::SeriesRef;
use crate::record::timeline::CallId;
use crate::site::series_id::SeriesIdentity;
use crate::types::device::DeviceId;
use crate::types::sample::{CacheState, Lost, Sample};

/// A call between two readings of the host clock.
pub(crate) struct HostCall {
    call: CountedCall,
    series: SeriesRef,
    started: Instant,
}

impl HostCall {
    /// Starts the call.
    #[inline]
    pub fn begin(call: CountedCall) -> HostCall {
        let identity = SeriesIdentity::function(DeviceId::Host, CacheState::AsFound, call.key);
        let series = locked(&call.thread.recorder).series.begin(call.site, identity);
        HostCall { call, series, started: Instant::now() }
    }

    pub fn end(&self, lost: Option<Lost>) -> CallId {
        let ended = Instant::now();
        let CountedCall { thread, call_id, work, weight, .. } = self.call;
        let outcome = match lost {
            Some(reason) => Err(reason),
            None => {
                let took = ended.saturating_duration_since(self.started);
                let sample = Sample::by_host(took, clock::since_start_ns(ended));
                Ok(sample.weighted(weight))
            }
        };
        locked(&thread.recorder).deliver(self.series, outcome, work);
        call_id
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::{Barrier, mpsc};
    use std::thread;
    use std::time::Duration;

    use crate::call::enter::enter;
    use crate::call::source::{CallDetails, NoDetails};
    use crate::record::stack;
    use crate::site::callsite::{CallSite, SiteConfig};
    use crate::types::attribute::{Clock, ScopeKind, Spec};
    use crate::types::sampling::Sampling;
    use crate::types::workload::Workload;

    const WARMUP: u32 = 2;

    fn site(id: u32) -> &'static CallSite {
        let (clock, scope) = (Clock::Host, ScopeKind::Body);
        let spec = Spec { clock, scope, ..Spec::named("test::host") };
        let site = Box::leak(Box::new(CallSite::new(spec)));
        site.set_id(id);
        site.configure(SiteConfig {
            on: true,
            warmup: WARMUP,
            cold: None,
            hold: None,
            is_recorded: false,
            sampling: Sampling::ALL,
            is_sampled: false,
        });
        site
    }

    /// Asserts that a thread can make a call after its warm-up while this thread holds a lock.
    fn assert_warm_call_ends_under<L>(site: &'static CallSite, lock: impl FnOnce() -> L) {
        let (is_warm, (ended, is_ended)) = (Barrier::new(2), mpsc::channel());
        let call = || drop(enter(site, NoDetails));
        thread::scope(|scope| {
            scope.spawn(|| {
                // The last of these calls finds out that no warm-up call is left.
                (0..=WARMUP).for_each(|_| call());
                is_warm.wait();
                is_warm.wait();
                call();
                ended.send(())
            });
            is_warm.wait();
            let locked = lock();
            is_warm.wait();
            let result = is_ended.recv_timeout(Duration::from_secs(5));
            drop(locked);
            assert_eq!(result, Ok(()), "the call waits for the lock");
        });
    }

    #[test]
    fn warm_call_does_not_lock_the_series() {
        let site = site(28);
        assert_warm_call_ends_under(site, || site.series());
    }

    #[test]
    fn warm_call_does_not_lock_the_warmups() {
        let site = site(29);
        assert_warm_call_ends_under(site, || site.warmups.lock_for_test());
    }

    #[test]
    fn panic_in_a_key_leaves_the_functions_around_on_the_stack() {
        let outer = site(60);
        (0..=WARMUP).for_each(|_| drop(enter(outer, NoDetails)));
        let _outer = enter(outer, NoDetails);
        assert_eq!(stack::innermost_site(), Some(60));
        let key = || panic!("on purpose");
        let details = CallDetails { key, work: || Workload::UNKNOWN };
        let panicked = catch_unwind(AssertUnwindSafe(|| drop(enter(site(61), details))));
        assert!(panicked.is_err());
        assert_eq!(stack::innermost_site(), Some(60));
    }
}
