//! What is kept of one launch or call of one site, on one device, in one cache state.

use crate::stats::bias::Bias;
use crate::stats::estimate::Unseen;
use crate::stats::rates::{Rates, Shown};
use crate::stats::sampling::Population;
use crate::types::attribute::Clock;
use crate::types::sample::{CacheState, Losses, Lost, Measure, Sample};
use crate::types::workload::Workload;
use gpu_time_report::{self as report, Course, Distribution, Histogram, Summary};

/// Everything that is kept of the samples of a row, in at most 256 KiB.
///
/// Invariant: `measured = fed + starved + at_floor`, each counted by itself.
#[derive(Debug)]
pub struct Series {
    counts: Counts,
    brackets: Brackets,
    unseen: Unseen,
    rates: Rates,
    // Both are there from the beginning, so that recording never allocates; what is not touched of
    // them takes no memory.
    fed: Times,
    starved: Times,
}

/// Raw times: how many there are of which length, and how that changed while the program ran.
#[derive(Debug)]
struct Times {
    distribution: Distribution,
    course: Course,
}

/// The times of a series at one moment, from which statistics are made while the series goes on.
#[derive(Clone, Debug)]
pub struct Recorded {
    fed: (Summary, Course),
    starved: (Summary, Course),
}

/// What the owner of a series knows of it, and it does not.
#[derive(Clone, Debug)]
pub struct SeriesInfo {
    /// `cuda:N` or `host`.
    pub device: String,
    /// The launch, or `None` for the function.
    pub launch: Option<report::Launch>,
    /// What the times are the times of.
    pub measure: Measure,
    /// The value that splits the site.
    pub key: Option<String>,
    /// What the L2 held.
    pub cache: CacheState,
    /// What told the time.
    pub clock: Clock,
    /// The launch is a node of graphs.
    pub graph: bool,
    /// Brackets begun, or calls for a sum; in graphs, replays that were read and launches that were
    /// lost.
    pub timed: u64,
    /// Of these, the ones neither measured nor lost yet.
    pub in_flight: u64,
    /// The process's start, by the clock that says when samples were.
    pub start_ns: u64,
    /// The calls that the samples were drawn from; `None` where they are no calls.
    pub population: Option<Population>,
    /// A sampled call may have given several samples, so that they do not vary as if each was drawn.
    pub repeats: bool,
    /// What to remove for each bracket; `None` where that is unknown.
    pub bias: Option<Bias>,
}

/// The counters of a series at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    counts: Counts,
    brackets: Brackets,
    unseen: Unseen,
    rates: Rates,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    measured: u64,
    fed: u64,
    starved: u64,
    at_floor: u64,
    queued: u64,
    nested: u64,
    tracked: u64,
    lost: Losses,
}

/// How many brackets the samples in the statistics add up.
#[derive(Clone, Copy, Debug)]
struct Brackets {
    least: u32,
    most: u32,
    sum: u64,
}

impl Series {
    /// A series without samples.
    pub fn new() -> Self {
        Series {
            counts: Counts::default(),
            brackets: Brackets::default(),
            unseen: Unseen::default(),
            rates: Rates::default(),
            fed: Times::new(),
            starved: Times::new(),
        }
    }

    /// Takes in a sample.
    #[inline(always)]
    pub fn record(&mut self, sample: Sample) {
        let counts = &mut self.counts;
        counts.measured += 1;
        counts.nested += u64::from(sample.flags.nested);
        counts.tracked += u64::from(sample.flags.tracked);
        if sample.flags.at_floor {
            counts.at_floor += 1;
            return;
        }
        self.brackets.record(sample.brackets);
        if sample.weight != 1.0 {
            self.unseen.record(sample);
        }
        let (count, times) = if sample.flags.fed {
            (&mut counts.fed, &mut self.fed)
        } else {
            (&mut counts.starved, &mut self.starved)
        };
        *count += 1;
        counts.queued += u64::from(sample.flags.queued);
        times.record(sample);
    }

    /// Takes in the work of a sample that was recorded.
    #[cold]
    pub fn record_work(&mut self, sample: Sample, workload: Workload) {
        if !sample.flags.at_floor {
            self.rates.record(sample, workload);
        }
    }

    /// Counts a bracket that gave no sample.
    pub fn lose(&mut self, reason: Lost) {
        self.counts.lost.add(reason);
    }

    /// What is counted now. It is quick to take, where the statistics are not.
    pub fn tally(&self) -> Tally {
        let Series { counts, brackets, unseen, rates, .. } = *self;
        Tally { counts, brackets, unseen, rates }
    }

    /// The times as they are now: a copy, since whoever records waits for it.
    pub fn recorded(&self) -> Recorded {
        Recorded { fed: self.fed.recorded(), starved: self.starved.recorded() }
    }
}

impl SeriesInfo {
    /// Whether one is of the same row as the other, at another time.
    pub fn is_same(&self, other: &SeriesInfo) -> bool {
        let launch = |info: &SeriesInfo| info.launch.as_ref().map(|launch| launch.index);
        let words = |info: &SeriesInfo| (launch(info), info.graph, info.cache, info.clock);
        words(self) == words(other) && self.device == other.device && self.key == other.key
    }
}

impl Recorded {
    /// The times that an earlier copy did not have, of either kind. How they changed is not told: the slots
    /// of a course may be wider than the time since.
    pub fn since(&self, earlier: &Recorded) -> Recorded {
        let since = |now: &(Summary, Course), earlier: &(Summary, Course)| {
            (now.0.since(&earlier.0), Course::new())
        };
        Recorded {
            fed: since(&self.fed, &earlier.fed),
            starved: since(&self.starved, &earlier.starved),
        }
    }

    /// The row of the report as of a tally. Samples that came since may be in the statistics already.
    ///
    /// A sum of k launches is relieved of k biases. What is kept of a time does not tell its k, so
    /// where k differs from call to call only the sum of all times can be relieved.
    pub fn report(self, row: SeriesInfo, tally: Tally) -> report::Series {
        let Tally { counts, brackets, unseen, rates } = tally;
        let Counts { measured, fed, starved, at_floor, queued, nested, tracked, lost } = counts;
        let Recorded { fed: (all_fed, fed_course), starved: (all_starved, starved_course) } = self;
        let (shown, course) =
            if fed > 0 { (&all_fed, fed_course) } else { (&all_starved, starved_course) };
        let sum = |bias: f64| all_fed.sum(bias) + all_starved.sum(bias);
        let stats = |bias: f64| shown.stats(bias, sum(bias));
        let bias_ns = tally.bias_ns(row.bias);
        let net_ns = tally.removed_ns(row.bias).and_then(stats);
        let net_sum_ns = bias_ns.filter(|_| fed + starved > 0).map(|bias| match &net_ns {
            Some(net) => net.sum,
            None => (sum(0.0) - bias * brackets.sum as f64).max(0.0),
        });
        let estimate = row.population.filter(|_| fed + starved > 0).map(|population| {
            let mean = brackets.sum as f64 / (fed + starved) as f64;
            let (seen_ns, bias_ns) = net_sum_ns.zip(bias_ns).unwrap_or((sum(0.0), 0.0));
            unseen.total(seen_ns, bias_ns, mean, population)
        });
        let rated = Shown {
            fed: fed > 0,
            samples: if fed > 0 { fed } else { starved },
            median_ns: net_ns.map(|net| net.median),
            bias_ns,
        };
        report::Series {
            device: row.device,
            launch: row.launch,
            measure: row.measure,
            key: row.key,
            cache: row.cache,
            clock: row.clock,
            graph: row.graph,
            timed: row.timed,
            measured,
            in_flight: row.in_flight,
            lost,
            fed,
            starved,
            at_floor,
            queued,
            nested,
            tracked,
            upper_bound: fed == 0 && starved > 0,
            launches: (row.measure == Measure::Sum && fed + starved > 0).then_some(
                report::Launches {
                    min: brackets.least,
                    mean: brackets.sum as f64 / (fed + starved) as f64,
                    max: brackets.most,
                },
            ),
            raw_ns: stats(0.0),
            net_ns,
            bias_ns,
            net_sum_ns,
            estimated_total_ns: estimate.map(|estimate| estimate.total_ns),
            estimated_total_error_ns: estimate
                .filter(|_| !row.repeats)
                .map(|estimate| estimate.error_ns),
            ci95_ns: shown.median_interval(),
            timeline: course.timeline(row.start_ns),
            histogram: shown.histogram().clone(),
            net_histogram: Histogram::default(),
            bytes: rates.bytes(rated),
            flops: rates.flops(rated),
        }
    }
}

impl Times {
    fn new() -> Self {
        Times { distribution: Distribution::new(), course: Course::new() }
    }

    #[inline]
    fn record(&mut self, sample: Sample) {
        self.distribution.record(sample.raw_ns());
        self.course.record(sample.at_ns, sample.raw_ns());
    }

    fn recorded(&self) -> (Summary, Course) {
        (self.distribution.summary(), self.course.clone())
    }

    #[cfg(test)]
    fn bytes(&self) -> usize {
        self.distribution.bytes() + self.course.bytes()
    }
}

impl Tally {
    /// What a bracket is relieved of: that of most samples, in whose regime the median is.
    fn bias_ns(&self, bias: Option<Bias>) -> Option<f64> {
        let is_queued = self.counts.queued * 2 > self.counts.fed;
        bias.map(|bias| if is_queued { bias.queued_ns } else { bias.ns })
    }

    /// What every sample is relieved of, unless that differs from one to the other.
    pub fn removed_ns(&self, bias: Option<Bias>) -> Option<f64> {
        let (bias_ns, brackets) = (self.bias_ns(bias)?, self.brackets.same()?);
        Some(bias_ns * f64::from(brackets))
    }

    /// What was counted since an earlier one of the same series.
    pub fn since(self, earlier: Tally) -> Tally {
        Tally {
            counts: self.counts.since(earlier.counts),
            brackets: self.brackets.since(earlier.brackets),
            unseen: self.unseen.since(earlier.unseen),
            rates: self.rates.since(earlier.rates),
        }
    }

    /// How many brackets were measured or lost.
    pub fn ended(&self) -> u64 {
        self.counts.measured + self.counts.lost.total()
    }

    /// Takes in calls that made no launch: nothing ran in them, or they were lost.
    pub fn add_idle(&mut self, other: Tally) {
        let (counts, other) = (&mut self.counts, other.counts);
        counts.measured += other.measured;
        counts.at_floor += other.at_floor;
        counts.lost.add_all(other.lost);
    }
}

impl Counts {
    fn since(self, earlier: Counts) -> Counts {
        let count = |count: fn(&Counts) -> u64| count(&self).saturating_sub(count(&earlier));
        let mut lost = self.lost;
        lost.take_off(earlier.lost);
        Counts {
            measured: count(|counts| counts.measured),
            fed: count(|counts| counts.fed),
            starved: count(|counts| counts.starved),
            at_floor: count(|counts| counts.at_floor),
            queued: count(|counts| counts.queued),
            nested: count(|counts| counts.nested),
            tracked: count(|counts| counts.tracked),
            lost,
        }
    }
}

impl Default for Brackets {
    fn default() -> Self {
        Brackets { least: u32::MAX, most: 0, sum: 0 }
    }
}

impl Brackets {
    fn record(&mut self, brackets: u32) {
        self.least = self.least.min(brackets);
        self.most = self.most.max(brackets);
        self.sum += u64::from(brackets);
    }

    /// Those of later samples, as few and as many as all of them have.
    fn since(self, earlier: Brackets) -> Brackets {
        Brackets { sum: self.sum.saturating_sub(earlier.sum), ..self }
    }

    /// How many every sample adds up, or `None` where that differs or there are no samples.
    fn same(&self) -> Option<u32> {
        (self.least == self.most).then_some(self.most)
    }
}

/// What live export takes, which makes figures of its own.
#[cfg(feature = "metrics")]
mod live {
    use super::{Losses, Series, Tally};
    use gpu_time_report::Histogram;

    impl Series {
        /// The times of fed samples, or of starved ones, with how many there are of each.
        pub fn times(&self, fed: bool) -> Histogram {
            let times = if fed { &self.fed } else { &self.starved };
            times.distribution.summary().histogram().clone()
        }
    }

    impl Tally {
        /// How many samples are fed, starved, and at the floor.
        pub fn samples(&self) -> [u64; 3] {
            [self.counts.fed, self.counts.starved, self.counts.at_floor]
        }

        /// What gave no sample.
        pub fn lost(&self) -> Losses {
            self.counts.lost
        }
    }
}

#[cfg(test)]
mod tests;
