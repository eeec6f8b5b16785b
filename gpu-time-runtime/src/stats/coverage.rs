//! The share of wall time that devices are busy, estimated from windows of recording.
//!
//! CUPTI records the work that is enqueued while recording is on, no matter when that work runs. A
//! window therefore does not show how busy the GPU was during it: work enqueued before the window
//! may still run, unrecorded, and with a deep queue nothing else may run. The end of that earlier
//! work cannot be detected without disturbing the program.
//!
//! The estimate uses the GPU time of all work enqueued in a window, which is known. The pauses
//! between windows are random, so every launch is equally likely to fall into a window. Therefore,
//!
//! > GPU time of the work enqueued in all windows / total time of the windows
//!
//! is an unbiased estimate of the busy share, however deep the queues are. The ratio of a single
//! window may exceed 1. If launches come in bursts, windows differ more, and the error grows
//! accordingly.
//!
//! # The error
//!
//! The error is the standard error of a ratio of two sums across windows. It is widened in two
//! ways, so that the true share is within two errors of the estimate in 19 of 20 runs: by Student's
//! t for few windows, and by Johnson's correction for skewed ones. Windows are skewed if only some
//! of them catch a burst of launches. A run that catches few bursts underestimates both the share
//! and the spread.
//!
//! Windows that are incomplete or missed differ from the others: one without launches lacks no records, and code is
//! loaded while the GPU idles. Nothing is known of the share in them, so the error allows for any from 0 to 1.
//!
//! # Several streams
//!
//! The GPU time of a window is the union of the intervals in which its work ran. Work that ran at
//! the same time on several streams therefore counts once, but only if it was enqueued in the same
//! window, or in two that follow each other and are not random. The estimate is an upper bound for a
//! program that keeps several streams busy at once and enqueues their work further apart than that.

use std::collections::{BTreeMap, HashMap};

use crate::types::site_time::SiteTime;
use gpu_time_report::student_t::two_sided_quantile;
use gpu_time_report::{self as report, Distribution, PhaseKernel, value};

/// The minimum number of windows for an error estimate.
const FEWEST: u64 = 5;
/// The largest part of the run that windows leave out if the whole run is recorded.
const LEFT_OUT: f64 = 0.05;
/// With many windows, the true share is more than `ERRORS` standard errors away with the probability `MISS`.
const MISS: f64 = 0.05;
const ERRORS: f64 = 1.96;
/// By so much the times of records may be off the host's clock.
const SLACK_NS: u64 = 1_000_000;

/// A piece of work that was enqueued in a window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowWork {
    pub device: u32,
    pub start_ns: u64,
    pub end_ns: u64,
    pub name: &'static str,
    /// The id of the site of the innermost annotated function that enqueued it, or that of helper threads, if any.
    pub site: Option<u32>,
}

/// Sums over all windows.
#[derive(Debug, Default)]
pub(crate) struct CoverageSums {
    /// Those at times that were drawn, which stand for the rest of the time.
    drawn: WindowsOfOneKind,
    /// Those that stand for themselves: a phase without an end, and requested ones.
    others: WindowsOfOneKind,
    /// The work of the last window of `others`, of which some may run as long as that of the next one.
    last: Vec<WindowWork>,
}

#[derive(Debug, Default)]
struct WindowsOfOneKind {
    windows: u64,
    /// The number of windows that are left out of all sums, because some of their records are missing.
    incomplete: u64,
    /// The number of planned windows that could not open.
    missed: u64,
    /// The total length of the windows that are incomplete or missed.
    unknown_s: f64,
    length_s: f64,
    square_length: f64,
    cube_length: f64,
    /// The sums by device ordinal. A window in which a device had no work adds zeros.
    devices: BTreeMap<u32, DeviceSums>,
}

#[derive(Debug, Default)]
struct DeviceSums {
    busy: WindowSums,
    attributed: WindowSums,
    /// The time for which only work outside of annotated functions ran.
    outside: WindowSums,
    /// The time for which work of each annotated function ran, by the id of its site.
    sites: BTreeMap<u32, WindowSums>,
    /// The times of all work, by name, and `true` for that of annotated functions. The number of names is bounded, because
    /// the reader of CUPTI's records distinguishes a limited number of kernels.
    kernels: HashMap<(&'static str, bool), Distribution>,
}

/// Sums of one time per window, in seconds.
#[derive(Clone, Copy, Debug, Default)]
struct WindowSums {
    time_s: f64,
    square: f64,
    cube: f64,
    /// The sums of products of the time and the window's length.
    product: f64,
    square_by_length: f64,
    by_square_length: f64,
}

impl WindowSums {
    fn add(&mut self, time_s: f64, length_s: f64) {
        self.time_s += time_s;
        self.square += time_s * time_s;
        self.cube += time_s * time_s * time_s;
        self.product += time_s * length_s;
        self.square_by_length += time_s * time_s * length_s;
        self.by_square_length += time_s * length_s * length_s;
    }
}

impl CoverageSums {
    fn kind(&mut self, is_drawn: bool) -> &mut WindowsOfOneKind {
        if is_drawn { &mut self.drawn } else { &mut self.others }
    }

    /// Keeps the work of the last window of those that stand for themselves, which ended at `end_ns`, as far as it may run
    /// as long as that of the next one, which is enqueued later.
    pub fn keep_running(&mut self, mut works: Vec<WindowWork>, end_ns: u64) {
        works.retain(|work| work.end_ns.saturating_add(SLACK_NS) > end_ns);
        works.shrink_to_fit();
        self.last = works;
    }

    /// Counts a window whose records are not all known.
    pub fn add_incomplete(&mut self, length_ns: u64, is_drawn: bool) {
        let kind = self.kind(is_drawn);
        kind.incomplete += 1;
        kind.unknown_s += length_ns as f64 / 1e9;
    }

    /// Counts a planned window that could not open.
    pub fn add_missed(&mut self, length_ns: u64) {
        self.drawn.missed += 1;
        self.drawn.unknown_s += length_ns as f64 / 1e9;
    }

    /// Adds a window with all the work that was enqueued in it.
    pub fn add(&mut self, length_ns: u64, is_drawn: bool, works: &mut [WindowWork]) {
        if is_drawn {
            self.drawn.add(length_ns, works, &[]);
        } else {
            self.others.add(length_ns, works, &self.last);
        }
    }

    /// Returns the figures of a device. The windows stand for a time of `covered_s`. `None` without windows.
    pub fn report(&self, device: u32, covered_s: f64) -> Option<report::Coverage> {
        let [others_s, drawn_s] = self.covered_by_kind(covered_s);
        let mut coverage =
            match (self.others.report(device, others_s), self.drawn.report(device, drawn_s)) {
                // Nothing is known of those that are incomplete.
                (Some(others), Some(drawn)) if others.windows == 0 => {
                    let incomplete = drawn.incomplete + others.incomplete;
                    value!(Coverage { incomplete, ..drawn })
                }
                (Some(others), Some(drawn)) => {
                    others.pooled(&drawn, [others_s, drawn_s].map(|s| 1e9 * s))
                }
                (others, drawn) => others.or(drawn)?,
            };
        coverage.bound_kernels();
        Some(coverage)
    }

    /// Returns the times for which the works of annotated functions ran on a device, as [`report`](Self::report) does.
    pub fn site_times(&self, device: u32, covered_s: f64) -> Vec<SiteTime> {
        let [others_s, drawn_s] = self.covered_by_kind(covered_s);
        let others = self.others.site_times(device, others_s, false);
        let mut times: BTreeMap<u32, SiteTime> = others.map(|time| (time.site, time)).collect();
        for time in self.drawn.site_times(device, drawn_s, true) {
            times.entry(time.site).and_modify(|of| of.add(time)).or_insert(time);
        }
        times.into_values().collect()
    }

    /// Returns the times that the windows of each kind stand for: those not drawn for themselves, unless there are no
    /// others.
    fn covered_by_kind(&self, covered_s: f64) -> [f64; 2] {
        if self.drawn.is_empty() {
            return [covered_s, 0.0];
        }
        let others_s = self.others.length_s + self.others.unknown_s;
        [others_s, (covered_s - others_s).max(0.0)]
    }
}

impl WindowsOfOneKind {
    fn is_empty(&self) -> bool {
        self.windows + self.incomplete + self.missed == 0
    }

    /// Adds a window with all the work that was enqueued in it. Work that ran at the same time as that of the window
    /// `before` does not count again. Sorts the work by device and start.
    fn add(&mut self, length_ns: u64, works: &mut [WindowWork], before: &[WindowWork]) {
        let length_s = length_ns as f64 / 1e9;
        self.windows += 1;
        self.length_s += length_s;
        self.square_length += length_s * length_s;
        self.cube_length += length_s * length_s * length_s;
        works.sort_unstable_by_key(|work| (work.device, work.start_ns));
        for works in works.chunk_by(|one, other| one.device == other.device) {
            let Some(first) = works.first() else { continue };
            let sums = self.devices.entry(first.device).or_default();
            let is_at_once =
                |of: &&WindowWork| of.device == first.device && of.end_ns > first.start_ns;
            let before = || before.iter().filter(is_at_once);
            let is_attributed = |of: &&WindowWork| of.site.is_some();
            let busy_s = added_s(before().collect(), works.iter());
            let attributed = works.iter().filter(is_attributed);
            let attributed_s = added_s(before().filter(is_attributed).collect(), attributed);
            sums.busy.add(busy_s, length_s);
            sums.attributed.add(attributed_s, length_s);
            sums.outside.add(busy_s - attributed_s, length_s);
            let mut by_site = BTreeMap::<u32, [Vec<&WindowWork>; 2]>::new();
            let works_before = before().map(|work| (0, work));
            for (kind, work) in works_before.chain(works.iter().map(|work| (1, work))) {
                let site = work.site.map(|site| by_site.entry(site).or_default());
                site.into_iter().for_each(|of_site| of_site[kind].push(work));
            }
            for (site, [before, works]) in by_site {
                let time_s = added_s(before, works.into_iter());
                sums.sites.entry(site).or_default().add(time_s, length_s);
            }
            let of_one = |one: &WindowWork, other: &WindowWork| {
                std::ptr::eq(one.name, other.name) && one.site.is_some() == other.site.is_some()
            };
            for works in works.chunk_by(of_one) {
                let Some(first) = works.first() else { continue };
                let times = sums.kernels.entry((first.name, first.site.is_some())).or_default();
                for work in works {
                    times.record(work.end_ns.saturating_sub(work.start_ns) as f64);
                }
            }
        }
    }

    /// Returns the times of annotated functions on a device. The windows stand for a time of `covered_s`.
    fn site_times(
        &self,
        device: u32,
        covered_s: f64,
        is_drawn: bool,
    ) -> impl Iterator<Item = SiteTime> {
        let covered_ns = 1e9 * covered_s;
        self.devices.get(&device).into_iter().flat_map(move |sums| {
            let scale = self.scale(sums);
            sums.sites.iter().map(move |(site, of)| {
                let (share, error) = self.share(*of, scale, covered_s);
                let error_ns = error.map(|error| error * covered_ns);
                SiteTime { site: *site, ns: share * covered_ns, error_ns, is_drawn }
            })
        })
    }

    /// Returns the factor for all shares of a device. The sum of its windows may exceed their length. Its parts then keep
    /// their proportions.
    fn scale(&self, sums: &DeviceSums) -> f64 {
        if sums.busy.time_s > self.length_s { self.length_s / sums.busy.time_s } else { 1.0 }
    }

    /// Returns the figures of a device. The windows stand for a time of `covered_s`. `None` without windows.
    fn report(&self, device: u32, covered_s: f64) -> Option<report::Coverage> {
        if self.is_empty() {
            return None;
        }
        let none = DeviceSums::default();
        let sums = self.devices.get(&device).unwrap_or(&none);
        let total_ns = 1e9 * self.length_s;
        let scale = self.scale(sums);
        let (busy, error) = self.share(sums.busy, scale, covered_s);
        let (attributed, attributed_error) = self.share(sums.attributed, scale, covered_s);
        let (_, not_annotated_error) = self.share(sums.outside, scale, covered_s);
        let kernel = |(&(name, annotated), times): (&(&'static str, bool), &Distribution)| {
            let summary = times.summary();
            let stats = summary.stats(0.0, summary.sum(0.0))?;
            Some(value!(PhaseKernel {
                name: name.to_owned(),
                annotated,
                count: summary.count(),
                total_ns: stats.sum,
                median_ns: Some(stats.median),
            }))
        };
        let kernels = sums.kernels.iter().filter_map(kernel).collect();
        Some(report::value!(Coverage {
            windows: self.windows,
            incomplete: self.incomplete,
            missed: self.missed,
            total_ns,
            busy,
            busy_error: error,
            // Without a complete window nothing is known.
            idle: if self.windows > 0 { 1.0 - busy } else { 0.0 },
            idle_error: error,
            attributed,
            attributed_error,
            not_annotated_error,
            not_timed: 0.0,
            not_timed_error: Some(0.0),
            kernels: PhaseKernel::sorted(kernels, 1e9 * sums.busy.time_s, total_ns),
        }))
    }

    /// Returns a share of wall time and its error, both multiplied by `scale`.
    fn share(&self, sums: WindowSums, scale: f64, covered_s: f64) -> (f64, Option<f64>) {
        if self.length_s <= 0.0 {
            return (0.0, None);
        }
        let ratio = sums.time_s / self.length_s;
        let share = (scale * ratio).min(1.0);
        // What the windows leave out. Nothing, if the whole run is recorded.
        let rest = (1.0 - (self.length_s + self.unknown_s) / covered_s).clamp(0.0, 1.0);
        let error = if rest < LEFT_OUT {
            Some(self.error_of_unknown(share) + rest * share.max(1.0 - share) / ERRORS)
        } else if self.windows >= FEWEST {
            let of_known = rest.sqrt() * scale * self.error_s(sums, ratio) / self.length_s;
            Some(of_known + self.error_of_unknown(share))
        } else {
            None
        };
        (share, error)
    }

    /// Returns the part of a share's error that is due to windows of which nothing is known: the true share lies
    /// within two of it, whatever the share in these windows.
    fn error_of_unknown(&self, share: f64) -> f64 {
        let unknown = self.unknown_s / (self.length_s + self.unknown_s);
        unknown * share.max(1.0 - share) / ERRORS
    }

    /// Returns the error of a sum of times, in seconds. `share` is the ratio of that sum to the
    /// total length of the windows.
    fn error_s(&self, sums: WindowSums, share: f64) -> f64 {
        let windows = self.windows as f64;
        // The sums of the squares and cubes of each window's deviation from the average share.
        let squares = sums.square - 2.0 * share * sums.product + share * share * self.square_length;
        let cubes = sums.cube - 3.0 * share * sums.square_by_length
            + 3.0 * share * share * sums.by_square_length
            - share * share * share * self.cube_length;
        let degrees = windows - 1.0;
        let variance = squares / degrees;
        if variance <= 0.0 {
            return 0.0;
        }
        let t = two_sided_quantile(MISS, degrees);
        let skew = cubes.abs() / windows / (6.0 * variance) * (1.0 + 2.0 * t * t);
        (t * (windows * variance).sqrt() + skew) / ERRORS
    }
}

/// Returns the time for which these works ran, but none of those `before`, in seconds. Both must be sorted by start.
fn added_s<'a>(before: Vec<&'a WindowWork>, works: impl Iterator<Item = &'a WindowWork>) -> f64 {
    if before.is_empty() {
        return union_s(works);
    }
    let before_s = union_s(before.iter().copied());
    let mut all: Vec<&WindowWork> = before.into_iter().chain(works).collect();
    all.sort_unstable_by_key(|work| work.start_ns);
    union_s(all.into_iter()) - before_s
}

/// Returns the length of the union of the intervals, in seconds. `works` must be sorted by start.
fn union_s<'a>(works: impl Iterator<Item = &'a WindowWork>) -> f64 {
    let (mut covered, mut until) = (0, 0);
    for work in works {
        covered += work.end_ns.saturating_sub(work.start_ns.max(until));
        until = until.max(work.end_ns);
    }
    covered as f64 / 1e9
}

#[cfg(test)]
mod tests;
