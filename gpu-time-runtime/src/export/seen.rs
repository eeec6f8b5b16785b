//! What was published already, so that each publication adds what is new.

use std::collections::BTreeMap;

use metrics::{Label, counter, gauge, histogram};

use crate::collect::counted::{SeriesCounts, SiteCounts};
use crate::export::names;
use crate::site::callsite::CallSite;
use crate::site::registry;
use crate::types::sample::Lost;
use gpu_time_report::Histogram;

/// What was published of every site, by its id, and to whom.
///
/// Invariant: no figure ever falls. A thread that cannot be asked now is asked again.
pub(super) struct Seen {
    pub recorder: usize,
    sites: BTreeMap<u32, Site>,
}

/// A figure as it was published last.
#[derive(Default)]
struct Figure(u64);

/// Calls, and those that warmed up, were skipped, were timed.
struct Site {
    function: Label,
    counts: [Figure; 4],
    series: BTreeMap<Vec<Label>, Series>,
}

#[derive(Default)]
struct Series {
    samples: [Figure; 3],
    lost: [Figure; Lost::ALL.len()],
    fed: Histogram,
    starved: Histogram,
}

impl Seen {
    pub const fn new() -> Seen {
        Seen { recorder: 0, sites: BTreeMap::new() }
    }

    /// Adds what is new of a site and its series.
    pub fn publish(&mut self, counted: &SiteCounts, shown: Vec<SeriesCounts>) {
        let SiteCounts { site, counts, .. } = counted;
        let seen = self.sites.entry(site.id()).or_insert_with(|| Site::of(site));
        let function = &seen.function;
        let figures = [
            (names::CALLS, counts.calls()),
            (names::WARMUP, counts.warmup),
            (names::SKIPPED, counts.all_skipped()),
            (names::TIMED, counts.timed),
        ];
        for (figure, (name, now)) in seen.counts.iter_mut().zip(figures) {
            figure.publish(now, name, || vec![function.clone()]);
        }
        gauge!(names::SAMPLE_RATE, vec![function.clone()]).set(site.sampling().rate());
        for shown in shown {
            let labels = names::labels(function, &shown.info);
            seen.series.entry(labels.clone()).or_default().publish(site, &shown, &labels);
        }
    }
}

impl Site {
    fn of(site: &'static CallSite) -> Site {
        let function = names::function(site, &registry::sites());
        Site { function, counts: Default::default(), series: BTreeMap::new() }
    }
}

impl Figure {
    /// Adds what is more than last time. Answers whether there is any.
    fn publish(
        &mut self,
        now: u64,
        name: &'static str,
        labels: impl FnOnce() -> Vec<Label>,
    ) -> bool {
        let more = now.saturating_sub(self.0);
        if more > 0 {
            counter!(name, labels()).increment(more);
            self.0 = now;
        }
        more > 0
    }
}

impl Series {
    fn publish(&mut self, site: &CallSite, shown: &SeriesCounts, labels: &[Label]) {
        let names = [names::FED, names::STARVED, names::AT_FLOOR];
        let figures = self.samples.iter_mut().zip(shown.tally.samples()).zip(names);
        let mut is_more = figures.map(|((f, now), name)| f.publish(now, name, || labels.to_vec()));
        let (fed, starved) = (is_more.next(), is_more.next());
        is_more.for_each(drop);
        for (figure, (reason, now)) in self.lost.iter_mut().zip(shown.tally.lost().iter()) {
            let reason = Label::from_static_parts("reason", reason.name());
            figure.publish(now, names::LOST, || [labels, &[reason]].concat());
        }
        let removed_ns = shown.tally.removed_ns(shown.info.bias);
        for (fed, is_more, times) in
            [(true, fed, &mut self.fed), (false, starved, &mut self.starved)]
        {
            if is_more != Some(true) {
                continue;
            }
            let now = site.series().get(shown.row).map(|cell| cell.series.times(fed));
            // The row's lock is given up before the recorder is spoken to.
            let before = std::mem::replace(times, now.unwrap_or_default());
            let of_times = names::of_times(fed, removed_ns.is_some());
            let histogram = histogram!(names::SECONDS, [labels, &of_times].concat());
            for (ns, count) in fresh(&before, times) {
                let seconds = (ns - removed_ns.unwrap_or(0.0)).max(0.0) / 1e9;
                histogram.record_many(seconds, count as usize);
            }
        }
    }
}

/// What is new of a histogram, of which nothing that was there before is missing.
fn fresh(before: &Histogram, now: &Histogram) -> impl Iterator<Item = (f64, u64)> {
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
    fn what_is_new_is_what_was_not_there() {
        let histogram = |times: &[(f64, u64)]| times.iter().copied().collect::<Histogram>();
        let new = |before: &[(f64, u64)], now: &[(f64, u64)]| -> Vec<(f64, u64)> {
            fresh(&histogram(before), &histogram(now)).collect()
        };
        assert_eq!(new(&[], &[(5.0, 2), (9.0, 1)]), [(5.0, 2), (9.0, 1)]);
        let before = [(5.0, 2), (9.0, 1)];
        assert_eq!(new(&before, &before), []);
        let now = [(4.0, 7), (5.0, 3), (7.0, 1), (9.0, 1)];
        assert_eq!(new(&before, &now), [(4.0, 7), (5.0, 1), (7.0, 1)]);
        assert_eq!(new(&before, &[(5.0, 2), (9.0, 2)]), [(9.0, 1)]);
    }
}
