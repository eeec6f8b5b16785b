use super::*;
use crate::site::counters::Lease;
use crate::types::attribute::Spec;
use crate::types::device::DeviceId;

const CONTEXT: usize = 7;

fn query(calls: u32) -> StreamQuery {
    let site: &'static CallSite = Box::leak(Box::new(CallSite::new(Spec::named("leases"))));
    let counters: &'static CallCounters = Box::leak(Box::default());
    let lease = Lease { device: DeviceId::Cuda(0), calls };
    counters.skip_warmup(lease, CONTEXT, site.rate.epoch());
    StreamQuery { leases: Some((site, counters)) }
}

/// Describes a stream of this context. Returns `true` if the call goes on, and how many of the two
/// closures ran.
fn described(context: usize, query: StreamQuery) -> (bool, u32) {
    let (mut tracked, mut guards) = (0, 0);
    let is_tracked = || {
        tracked += 1;
        true
    };
    let source = query.stream(0x70, context, is_tracked, || guards += 1);
    (source.is_some(), tracked + guards)
}

#[test]
fn leased_call_finds_out_nothing_about_its_stream() {
    let query = query(2);
    assert_eq!(described(CONTEXT, query), (false, 0));
    assert_eq!(described(CONTEXT + 1, query), (true, 2), "another context");
    assert_eq!(described(0, query), (true, 2), "a raw handle");
    assert_eq!(described(CONTEXT, StreamQuery::WITHOUT_LEASES), (true, 2));
    assert_eq!(described(CONTEXT, query), (false, 0));
    assert_eq!(described(CONTEXT, query), (true, 2), "all are used up");
}
