//! Publishes the increments of all metrics since the previous publication.

use std::collections::BTreeMap;

use metrics::{Label, counter, gauge, histogram};

use crate::collect::devices::Biases;
use crate::collect::state::{SeriesView, SiteState};
use crate::export::names;
use crate::site::callsite::CallSite;
use crate::site::registry;
use crate::types::sample::Lost;
use gpu_time_report::{Clock, Histogram};

/// The values published so far.
///
/// Invariant: a counter never decreases. Brackets of a thread that is busy during a publication are
/// published by a later one.
pub(super) struct Publisher {
    /// The address of the recorder that received the last publication.
    pub recorder: usize,
    sites: BTreeMap<u32, SiteMetrics>,
}

/// The published metrics of a function. `calls` has the published counts of all, warm-up, skipped and timed calls.
struct SiteMetrics {
    function: Label,
    calls: [u64; 4],
    series: BTreeMap<Vec<Label>, SeriesMetrics>,
}

#[derive(Default)]
struct SeriesMetrics {
    /// Fed, starved, at the floor, opened.
    measured: [u64; 4],
    lost: [u64; Lost::ALL.len()],
    fed: Histogram,
    starved: Histogram,
}

impl Publisher {
    pub const fn new() -> Publisher {
        Publisher { recorder: 0, sites: BTreeMap::new() }
    }

    /// Publishes the increments of a site and its series.
    pub fn publish(&mut self, state: &SiteState, biases: &Biases) {
        let SiteState { site, calls, .. } = state;
        let published = self.sites.entry(site.id()).or_insert_with(|| SiteMetrics::new(site));
        let function = &published.function;
        let counts = [
            (names::CALLS, calls.calls()),
            (names::WARMUP, calls.warmup),
            (names::SKIPPED, calls.all_skipped()),
            (names::TIMED, calls.timed),
        ];
        for (counter, (name, now)) in published.calls.iter_mut().zip(counts) {
            publish(counter, now, name, || vec![function.clone()]);
        }
        gauge!(names::SAMPLE_RATE, vec![function.clone()]).set(site.timed_share());
        for view in state.views(biases) {
            let labels = names::labels(function, &view.info);
            published.series.entry(labels.clone()).or_default().publish(site, &view, &labels);
        }
    }
}

impl SiteMetrics {
    fn new(site: &'static CallSite) -> SiteMetrics {
        let function = names::function(site, &registry::sites());
        SiteMetrics { function, calls: Default::default(), series: BTreeMap::new() }
    }
}

/// Publishes the increment of a counter up to `now`. Returns `true` if it is above 0.
fn publish(
    published: &mut u64,
    now: u64,
    name: &'static str,
    labels: impl FnOnce() -> Vec<Label>,
) -> bool {
    let more = now.saturating_sub(*published);
    if more > 0 {
        counter!(name, labels()).increment(more);
        *published = now;
    }
    more > 0
}

impl SeriesMetrics {
    fn publish(&mut self, site: &CallSite, view: &SeriesView<'_>, labels: &[Label]) {
        let names = [names::FED, names::STARVED, names::AT_FLOOR, names::OPENED];
        let mut has_more = [false; 4];
        let counts = view.tally.counts;
        let measured = [counts.fed, counts.starved, counts.at_floor, counts.opened];
        let counters = self.measured.iter_mut().zip(measured).zip(names);
        for (more, ((counter, now), name)) in has_more.iter_mut().zip(counters) {
            *more = publish(counter, now, name, || labels.to_vec());
        }
        let [fed, starved, _, opened] = has_more;
        for (counter, (reason, now)) in self.lost.iter_mut().zip(counts.lost.iter()) {
            let reason = Label::from_static_parts("reason", reason.name());
            publish(counter, now, names::LOST, || [labels, &[reason]].concat());
        }
        let removed_ns = view.tally.removed_ns(view.info.bias);
        // Samples timed by kernels are opened calls, which are recorded as fed.
        let fed = fed || opened && view.info.clock == Clock::Kernels;
        for (fed, has_more, times) in
            [(true, fed, &mut self.fed), (false, starved, &mut self.starved)]
        {
            if !has_more {
                continue;
            }
            let now =
                site.series().get(view.state.id.index()).map(|cell| cell.series.histogram(fed));
            // The lock of the series has been released, so the recorder's code may run.
            let before = std::mem::replace(times, now.unwrap_or_default());
            let of_times = names::of_times(fed, removed_ns.is_some());
            let histogram = histogram!(names::SECONDS, [labels, &of_times].concat());
            for (ns, count) in increments(&before, times) {
                let seconds = (ns - removed_ns.unwrap_or(0.0)).max(0.0) / 1e9;
                histogram.record_many(seconds, count as usize);
            }
        }
    }
}

/// Returns the increments from one state of a histogram to a later one.
fn increments(before: &Histogram, now: &Histogram) -> impl Iterator<Item = (f64, u64)> {
    let mut before = before.iter().peekable();
    now.iter().filter_map(move |(ns, count)| {
        let had = before.next_if(|(same, _)| *same == ns).map_or(0, |(_, had)| had);
        (count > had).then(|| (ns, count - had))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn increments_exclude_earlier_counts() {
        let histogram = |times: &[(f64, u64)]| times.iter().copied().collect::<Histogram>();
        let new = |before: &[(f64, u64)], now: &[(f64, u64)]| -> Vec<(f64, u64)> {
            increments(&histogram(before), &histogram(now)).collect()
        };
        assert_eq!(new(&[], &[(5.0, 2), (9.0, 1)]), [(5.0, 2), (9.0, 1)]);
        let before = [(5.0, 2), (9.0, 1)];
        assert_eq!(new(&before, &before), []);
        let now = [(4.0, 7), (5.0, 3), (7.0, 1), (9.0, 1)];
        assert_eq!(new(&before, &now), [(4.0, 7), (5.0, 1), (7.0, 1)]);
        assert_eq!(new(&before, &[(5.0, 2), (9.0, 2)]), [(9.0, 1)]);
    }
}
