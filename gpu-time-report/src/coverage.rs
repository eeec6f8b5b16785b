//! Estimates of how busy a device was, from phases in which all work of the process was recorded.

use serde::{Deserialize, Serialize};

use crate::largest::sort_by_largest;
use crate::units::{self, listed, percent_with_error};

/// The minimum share of the phases that are in no figure for a warning.
const MANY_UNKNOWN: f64 = 0.02;

/// The minimum share of the run that phases cover if all of it was recorded.
const WHOLE_RUN: f64 = 0.95;

/// The number of standard errors by which phases contradict what is known.
pub(crate) const FAR: f64 = 3.0;

/// The share of wall time that a device was busy, estimated from phases.
///
/// The shares are means over the phases; in a merged report, over the times that the phases of the processes
/// [cover](Self::covered_ns). Their errors are standard errors across the phases,
/// widened if there are few or if some are [incomplete](Self::incomplete) or [missed](Self::missed), so that the
/// interval of two errors on either side contains the true share in 19 of 20 runs. They are `None` with fewer than five phases.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Coverage {
    /// The number of complete phases. Without any, nothing is known, and all shares are 0. A phase without an end
    /// counts as one for each fifth of a second.
    pub windows: u64,
    /// The number of further phases, which no figure includes because some of their records are
    /// missing.
    pub incomplete: u64,
    /// The number of planned phases that could not begin: other threads were loading code all the
    /// time, or too many windows waited for records.
    pub missed: u64,
    /// The total time of the phases, in nanoseconds.
    pub total_ns: f64,
    /// The wall time that the phases stand for, in nanoseconds: the run without the time in which
    /// phases were wanted and could not begin yet, before there was a CUDA context and while CUPTI
    /// was loaded. In a merged report, this is a sum.
    pub covered_ns: f64,
    /// The share of wall time during which a kernel, a copy or a memset of the process ran on the
    /// device.
    pub busy: f64,
    /// The error of the busy share.
    pub busy_error: Option<f64>,
    /// The share of wall time during which nothing of the process ran on the device.
    pub idle: f64,
    /// The error of the idle share, which equals that of the busy share.
    pub idle_error: Option<f64>,
    /// The share of wall time during which work ran that annotated functions enqueued.
    pub attributed: f64,
    /// The error of the attributed share.
    pub attributed_error: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    /// The error of the share that is not annotated. It is smaller than those of the two shares of
    /// which it is the difference, because both are of the same phases.
    pub not_annotated_error: Option<f64>,
    /// The share of wall time during which work of annotated functions ran that have no time, because each of their calls
    /// was in the warm-up or too long for a phase, and several paths in the tree, of which the right one is unknown.
    pub not_timed: f64,
    /// The error of the share of functions without a time.
    pub not_timed_error: Option<f64>,
    /// The kernels, copies and memsets in the phases, largest share first. There are at most 16 of annotated functions, and
    /// 16 others.
    pub kernels: Vec<PhaseKernel>,
}

impl Coverage {
    /// The largest number of [kernels](Coverage::kernels) of annotated functions, and of others.
    const MAX_KERNELS: usize = 16;

    /// Returns the share of wall time during which only work outside of annotated functions ran.
    pub fn not_annotated(&self) -> f64 {
        (self.busy - self.attributed).max(0.0)
    }

    /// Returns the figures of two reports together. Shares and rates are weighted by the times that the phases cover,
    /// because one process may have had more phases than the other.
    /// There may be more kernels than in a report, because those of a third one can move up one that is far down now:
    /// [`bound_kernels`](Self::bound_kernels) leaves the largest.
    #[doc(hidden)]
    #[must_use]
    pub fn pooled(&self, other: &Coverage, covered_ns: [f64; 2]) -> Coverage {
        let all_ns = covered_ns[0] + covered_ns[1];
        let weights = if all_ns > 0.0 { covered_ns.map(|ns| ns / all_ns) } else { [0.5; 2] };
        let mean = |[one, two]: [f64; 2]| weights[0] * one + weights[1] * two;
        let error = |one: Option<f64>, two: Option<f64>| {
            let of = |error: Option<f64>, weight: f64| match weight {
                0.0 => Some(0.0),
                weight => Some(weight * error?),
            };
            Some(of(one, weights[0])?.hypot(of(two, weights[1])?))
        };
        let busy = mean([self.busy, other.busy]);
        let mut kernels: Vec<PhaseKernel> = Vec::new();
        for (of, weight) in [self, other].into_iter().zip(weights) {
            let of_busy = if busy > 0.0 { weight * of.busy / busy } else { 0.0 };
            for kernel in &of.kernels {
                let (share, per_s) = (of_busy * kernel.share, weight * kernel.per_s);
                let is_same = |known: &&mut PhaseKernel| {
                    (&known.name, known.annotated) == (&kernel.name, kernel.annotated)
                };
                match kernels.iter_mut().find(is_same) {
                    Some(known) => {
                        // Percentiles cannot be combined.
                        known.median_ns = None;
                        known.count = known.count.saturating_add(kernel.count);
                        known.total_ns += kernel.total_ns;
                        known.share += share;
                        known.per_s += per_s;
                    }
                    None => kernels.push(PhaseKernel { share, per_s, ..kernel.clone() }),
                }
            }
        }
        sort_by_largest(&mut kernels, |kernel| kernel.share);
        Coverage {
            windows: self.windows.saturating_add(other.windows),
            incomplete: self.incomplete.saturating_add(other.incomplete),
            missed: self.missed.saturating_add(other.missed),
            total_ns: self.total_ns + other.total_ns,
            covered_ns: all_ns,
            busy,
            busy_error: error(self.busy_error, other.busy_error),
            idle: mean([self.idle, other.idle]),
            idle_error: error(self.idle_error, other.idle_error),
            attributed: mean([self.attributed, other.attributed]),
            attributed_error: error(self.attributed_error, other.attributed_error),
            not_annotated_error: error(self.not_annotated_error, other.not_annotated_error),
            not_timed: mean([self.not_timed, other.not_timed]),
            not_timed_error: error(self.not_timed_error, other.not_timed_error),
            kernels,
        }
    }

    /// Leaves the largest kernels.
    #[doc(hidden)]
    pub fn bound_kernels(&mut self) {
        let mut rooms = [Coverage::MAX_KERNELS; 2];
        self.kernels.retain(|kernel| {
            let room = &mut rooms[usize::from(kernel.annotated)];
            let has_room = *room > 0;
            *room = room.saturating_sub(1);
            has_room
        });
    }

    /// Returns `true` if everything was recorded, as by one phase for the whole run.
    pub(crate) fn is_whole_run(&self) -> bool {
        let is_whole = self.total_ns >= WHOLE_RUN * self.covered_ns && self.covered_ns > 0.0;
        is_whole && self.unknown() == 0
    }

    /// Returns the time that the shares are of, on a GPU that was in use for `in_use_ns`: what is recorded throughout stands
    /// for itself.
    pub(crate) fn stands_for_ns(&self, in_use_ns: f64) -> f64 {
        if self.is_whole_run() { self.total_ns } else { in_use_ns }
    }

    /// Returns the number of phases and their time in words.
    pub(crate) fn windows_words(&self) -> String {
        if self.is_whole_run() {
            return "all of it recorded".to_owned();
        }
        let total = units::time(self.total_ns);
        match self.windows {
            1 => format!("1 phase of {total}"),
            phases => format!("{} phases of {total} in total", units::count(phases)),
        }
    }

    /// Returns the number of phases that are in no figure.
    fn unknown(&self) -> u64 {
        self.incomplete.saturating_add(self.missed)
    }

    /// Returns the numbers of phases that are in no figure, in words.
    fn unknown_words(&self, incomplete: &str) -> String {
        listed(&[(self.incomplete, incomplete), (self.missed, "missed")]).unwrap_or_default()
    }

    /// Returns a warning if many windows are in no figure.
    pub(crate) fn warning(&self) -> Option<String> {
        let (unknown, all) = (self.unknown(), self.unknown().saturating_add(self.windows));
        let are_many =
            unknown > 1 && self.windows > 0 && unknown as f64 >= MANY_UNKNOWN * all as f64;
        let allowance = if self.busy_error.is_some() { ", for which the errors allow" } else { "" };
        are_many.then(|| {
            format!(
                "{unknown} of {all} phases are incomplete or missed: the GPU may have been busier or idler in \
                 them{allowance}"
            )
        })
    }

    /// Returns the shares in words. `of` says what they are of.
    pub(crate) fn sentence(&self, of: &str) -> String {
        if self.windows == 0 {
            return format!("no phase is complete: {}", self.unknown_words("incomplete"));
        }
        let few = if self.busy_error.is_none() { ", too few for errors" } else { "" };
        let unknown = match self.unknown() {
            0 => String::new(),
            _ => format!(", {}", self.unknown_words("more incomplete")),
        };
        format!(
            "busy {}, idle {}, annotated functions {} of {of} ({}{few}{unknown})",
            percent_with_error(self.busy, self.busy_error),
            percent_with_error(self.idle, self.idle_error),
            percent_with_error(self.attributed, self.attributed_error),
            self.windows_words(),
        )
    }
}

/// Work in phases: all kernels with one name, a kind of copy, or memsets, either those of annotated functions or all
/// others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PhaseKernel {
    /// The demangled name, or a name in brackets for a copy or a memset.
    pub name: String,
    /// Annotated functions enqueued the work.
    pub annotated: bool,
    /// The number of times that the work was enqueued in all phases.
    pub count: u64,
    /// The total time of the work in all phases, in nanoseconds.
    pub total_ns: f64,
    /// The median time, in nanoseconds. `None` in a merged report, if several of its reports have the work.
    pub median_ns: Option<f64>,
    /// The work's time as a share of the busy time.
    pub share: f64,
    /// The number of times per second that the work is enqueued.
    pub per_s: f64,
}

impl PhaseKernel {
    /// Sorts the kernels by their totals, largest first, and computes their shares of the busy time of all phases.
    #[doc(hidden)]
    pub fn sorted(mut all: Vec<PhaseKernel>, busy_ns: f64, total_ns: f64) -> Vec<PhaseKernel> {
        sort_by_largest(&mut all, |kernel| kernel.total_ns);
        for kernel in &mut all {
            kernel.share = if busy_ns > 0.0 { kernel.total_ns / busy_ns } else { 0.0 };
            kernel.per_s =
                if total_ns > 0.0 { kernel.count as f64 / (total_ns / 1e9) } else { 0.0 };
        }
        all
    }
}

#[cfg(test)]
mod tests;
