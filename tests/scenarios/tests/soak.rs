//! Tests that in a long run, memory use stays constant and counts stay exact.

use std::time::Duration;

use crate::harness::{SMALL_L2, is_real, scenario};

/// `SOAK=50000000 cargo test -p gpu-time-scenarios --test scenarios soak` sets the length: a number
/// of calls, or a duration such as `600s`.
#[test]
fn long_run() {
    let length = std::env::var("SOAK").unwrap_or_else(|_| "150000".to_owned());
    let soak = scenario("soak/run", &[&length]).untraced().timeout(Duration::from_secs(1_800));
    let soak = if is_real() { soak } else { soak.simulated(|sim| sim.model(SMALL_L2)) };
    let run = soak.run();
    for site in &run.report().sites {
        if !site.series.is_empty() {
            assert!(site.timed > 0 && site.calls > 0, "{site:?}");
            // At most 64 keys, plus one for all remaining keys.
            let keys = site.rows(None).filter(|row| row.cache == "as-found").count();
            assert!(keys <= 65, "{}: {keys}", site.name);
        }
    }
    assert_eq!(run.site("soak::all").unsampled, 0);
}
