//! The figures that renderings derive from a series.

use crate::starved::{self, SampleSum};
use crate::{Clock, Series, Stats};

impl Series {
    /// Returns the number of samples behind the times.
    pub(crate) fn samples(&self) -> u64 {
        if self.clock == Clock::Kernels { self.opened() } else { self.measured }
    }

    /// Returns `true` if the times are GPU time. The clocks `sync` and `host` measure host time,
    /// which includes launching and waiting.
    pub(crate) fn is_gpu_time(&self) -> bool {
        matches!(self.clock, Clock::Events | Clock::Kernels)
    }

    /// Computes the rate as a fraction of the device's peak.
    pub(crate) fn compare_with(&mut self, peak_gb_per_s: Option<f64>) {
        if let Some(bytes) = &mut self.bytes {
            bytes.peak_share = bytes.gb_per_s.zip(peak_gb_per_s).map(|(rate, peak)| rate / peak);
        }
    }

    /// Returns the statistics to show: net if known, otherwise raw.
    pub(crate) fn shown(&self) -> Option<&Stats> {
        self.net_ns.as_ref().or(self.raw_ns.as_ref())
    }

    /// Returns the total time of all calls: net if known, otherwise raw. The time of a call inside
    /// another one of the same function counts once. For graphs, this is the total of the sampled
    /// replays.
    pub(crate) fn total(&self) -> Option<f64> {
        self.sum().map(|sum| sum * self.outer_share.unwrap_or(1.0))
    }

    /// Returns the standard error of [`total`](Series::total), if it is known.
    pub(crate) fn total_error(&self) -> Option<f64> {
        self.estimated_total_error_ns.map(|error| error * self.outer_share.unwrap_or(1.0))
    }

    /// Returns the sum of the times of all calls.
    fn sum(&self) -> Option<f64> {
        self.estimated_total_ns.or(self.net_sum_ns).or(self.raw_ns.map(|raw| raw.sum))
    }

    /// Returns the function's own part of the total. Shares are computed from it, so that nested
    /// functions do not count twice. This is the whole total if neither the call tree nor opened
    /// calls show the part.
    pub(crate) fn own_total(&self) -> Option<f64> {
        let busy = self.busy_and_own().filter(|(busy, _)| busy.sum > 0.0);
        let own = busy.map(|(busy, own)| own.sum / busy.sum);
        self.sum().map(|sum| sum * self.own_share.or(own).unwrap_or(1.0))
    }

    /// Returns `true` if the times are upper bounds: the GPU may have waited for the host in all of
    /// them, or most of them contain other brackets that add an unknown time.
    pub(crate) fn is_bound(&self) -> bool {
        self.upper_bound || self.unknown_nested() > self.measured / 2
    }

    /// Returns `true` if the total is an upper bound: the times are, or starved samples make it one.
    pub(crate) fn is_total_bound(&self) -> bool {
        self.is_bound() || self.is_starved()
    }

    /// Returns `true` if starved samples make the total an upper bound.
    fn is_starved(&self) -> bool {
        let [fed, starved] = [self.fed as f64, self.starved as f64];
        self.raw_ns.is_some_and(|raw| {
            // The sum is that of all samples, and the mean that of the fed ones, if there are any.
            let fed = SampleSum { samples: fed, ns: raw.mean * fed };
            starved::make_bound(fed, SampleSum { samples: starved, ns: raw.sum - fed.ns })
        })
    }

    /// Returns the number of samples that contain other brackets, if the time that these add is
    /// unknown.
    pub(crate) fn unknown_nested(&self) -> u64 {
        if self.inner_brackets.is_some() { 0 } else { self.nested }
    }

    /// Returns `true` if functions around this one count its GPU time in their shares too.
    pub(crate) fn is_counted_twice(&self) -> bool {
        let is_known = self.own_share.is_some() || self.busy_and_own().is_some();
        self.is_gpu_time() && !self.graph && self.total().is_some() && !is_known
    }

    /// Returns the busy and the self busy times if every sample is a recorded call. `None` also for
    /// merged reports that left them out.
    fn busy_and_own(&self) -> Option<(Stats, Stats)> {
        let times = self.kernel_times.as_ref().filter(|_| self.clock == Clock::Kernels)?;
        times.busy_ns.zip(times.self_busy_ns)
    }
}

/// Returns the total time of these series. Starts from +0, because an empty sum of floating-point
/// numbers is -0.
pub(crate) fn total<'a>(all: impl Iterator<Item = &'a Series>) -> f64 {
    all.filter_map(Series::total).fold(0.0, |sum, ns| sum + ns)
}
