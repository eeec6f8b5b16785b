//! The result of `compare`.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::base::switches;
use crate::control::active;
use crate::settle::stopping::DEFAULT_STEP_NS;
use gpu_time_report::{self as report, Look, Names, PairedRatios, Series, Site, units};

/// The probability with which an interval may miss the truth.
const ALPHA: f64 = 0.05;
/// The name of the row for all functions together.
const TOTAL: &str = "total";

/// The ratios of the times of two closures that took turns, from [`compare`](crate::compare).
///
/// `Display` prints a line for the run and one for each ratio.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Compared {
    /// The names of the two closures.
    pub names: [String; 2],
    /// The ratio of each function and launch that both closures call. If one closure calls functions
    /// that the other does not, the ratio `total` compares the time of all functions together; a
    /// function inside another counts twice there. Empty if nothing was measured.
    pub ratios: Vec<Ratio>,
    /// The number of blocks, of four batches of calls each.
    pub blocks: u64,
    /// The wall-clock time of the run.
    pub elapsed: Duration,
    /// Timing was on at the end of the run.
    is_timed: bool,
}

/// The ratio of a function's time in the second closure to its time in the first.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Ratio {
    /// The function's name, its device, and anything else that distinguishes the series from the
    /// function's other series; `total` for all functions together.
    pub name: String,
    /// The GPU may have waited for the host in all samples of a batch, so that the ratio compares
    /// upper bounds.
    pub upper_bound: bool,
    logs: PairedRatios,
    /// Half a step of the clock, relative to the time.
    half_step: f64,
    /// The look at which the run ended, early or last, which affects the width of the interval.
    look: Look,
}

/// The times of one block, in which each closure ran two batches.
#[derive(Default)]
pub(super) struct Block([BTreeMap<String, Figures>; 2]);

/// The medians of a series in the batches of one closure.
#[derive(Clone, Copy, Default)]
struct Figures {
    /// The sum of the medians' logarithms.
    logs: f64,
    batches: u32,
    half_step: f64,
    is_starved: bool,
}

impl Block {
    /// Adds a batch of calls of one closure.
    pub fn add(
        &mut self,
        arm: usize,
        sites: &[Site],
        calls: u32,
        step_ns: impl Fn(&str) -> Option<f64>,
    ) {
        let Some(figures) = self.0.get_mut(arm) else { return };
        let names: Names = sites.iter().map(|site| site.name.as_str()).collect();
        let mut total = 0.0;
        let mut total_half_step = 0.0;
        let mut is_starved = false;
        for site in sites {
            let label = names.label(&site.name, &site.file, site.line);
            for series in &site.series {
                let step_ns = step_ns(&series.device).unwrap_or(DEFAULT_STEP_NS);
                let Some((ns, half_step)) = median(series, step_ns) else { continue };
                let own = figures.entry(format!("{label} on {}", series.place())).or_default();
                own.add(ns, half_step, series.upper_bound);
                if series.launch.is_none() {
                    let samples = series.measured + series.opened();
                    let per_call = samples as f64 / f64::from(calls);
                    total += ns * per_call;
                    total_half_step = half_step.max(total_half_step);
                    is_starved |= series.upper_bound;
                }
            }
        }
        if total > 0.0 {
            let own = figures.entry(TOTAL.to_owned()).or_default();
            own.add(total, total_half_step, is_starved);
        }
    }
}

impl Figures {
    fn add(&mut self, ns: f64, half_step: f64, is_starved: bool) {
        self.logs += ns.ln();
        self.batches += 1;
        self.half_step = self.half_step.max(half_step);
        self.is_starved |= is_starved;
    }

    fn mean(&self) -> f64 {
        self.logs / f64::from(self.batches)
    }
}

/// Returns the median of a series (the net one if known), and half a step of the clock relative to
/// it.
fn median(series: &Series, step_ns: f64) -> Option<(f64, f64)> {
    let raw = series.raw_ns?;
    let ns = series.net_ns.unwrap_or(raw).median;
    let step_ns = step_ns.max(report::step_ns(raw.median));
    (ns > 0.0).then(|| (ns, step_ns / 2.0 / ns))
}

impl Compared {
    pub(super) fn new(names: [&str; 2]) -> Compared {
        Compared {
            names: names.map(str::to_owned),
            ratios: Vec::new(),
            blocks: 0,
            elapsed: Duration::ZERO,
            is_timed: true,
        }
    }

    /// Adds the ratios of a block. The total is of interest only if the closures call different
    /// functions.
    pub(super) fn add(&mut self, block: Block) {
        self.blocks += 1;
        let Block([base, new]) = block;
        let is_alike = base.keys().eq(new.keys());
        for (name, base) in base {
            let Some(new) = new.get(&name) else { continue };
            if name == TOTAL && is_alike {
                continue;
            }
            let known = self.ratios.iter().position(|ratio| ratio.name == name);
            let at = known.unwrap_or_else(|| {
                let logs = PairedRatios::default();
                let look = Look::Early;
                self.ratios.push(Ratio { name, upper_bound: false, logs, half_step: 0.0, look });
                self.ratios.len() - 1
            });
            let Some(ratio) = self.ratios.get_mut(at) else { continue };
            ratio.upper_bound |= base.is_starved || new.is_starved;
            // If only some of the batches call a function, a drift of the clock would not cancel out.
            if (base.batches, new.batches) == (2, 2) {
                ratio.half_step = ratio.half_step.max(base.half_step).max(new.half_step);
                ratio.logs.record(new.mean() - base.mean());
            }
        }
    }

    pub(super) fn ended(mut self, elapsed: Duration, look: Look) -> Compared {
        self.ratios.iter_mut().for_each(|ratio| ratio.look = look);
        Compared { elapsed, is_timed: switches::is_on() && active::config().is_on, ..self }
    }

    /// Returns `true` if every ratio is known to within the margin, or to a step of the clock.
    pub(super) fn is_precise(&self, margin: f64) -> bool {
        self.ratios.iter().all(|ratio| {
            let interval = ratio.interval(ALPHA);
            let margin = margin.max(2.0 * ratio.half_step);
            interval.is_some_and(|[low, high]| (high / low).ln() / 2.0 <= margin)
        })
    }

    /// Returns `true` if there are ratios, and each has an [interval](Ratio::interval95), however wide.
    pub fn is_known(&self) -> bool {
        let is_known = |ratio: &Ratio| ratio.interval95().is_some();
        !self.ratios.is_empty() && self.ratios.iter().all(is_known)
    }

    /// Panics if any function takes more than `limit` times as long in the second closure as in the
    /// first, for example `1.02`.
    ///
    /// A panic is statistically significant: if the closures are equal, at most one run in twenty panics, for
    /// any number of functions. A ratio whose interval reaches down to the limit, or that has no interval,
    /// does not cause a panic. If that matters, give the run more time and check
    /// [`is_known`](Compared::is_known) and [`interval95`](Ratio::interval95). A ratio of
    /// [upper bounds](Ratio::upper_bound) counts like any other.
    ///
    /// # Panics
    ///
    /// If the whole interval of a ratio lies above the limit. Also if nothing was compared, although
    /// timing is on, because a test that compares nothing should not pass.
    #[track_caller]
    pub fn assert_not_slower(&self, limit: f64) {
        let [base, new] = &self.names;
        let is_compared = self.ratios.iter().any(|ratio| ratio.blocks() > 0);
        assert!(
            is_compared || !self.is_timed,
            "`{new}` was not compared with `{base}`: no timed function ran in both closures"
        );
        let alpha = ALPHA / self.ratios.len().max(1) as f64;
        let is_slower = |ratio: &&Ratio| {
            let interval = ratio.interval(alpha);
            interval.is_some_and(|[low, _]| low > limit)
        };
        let slower: Vec<String> =
            self.ratios.iter().filter(is_slower).map(Ratio::to_string).collect();
        assert!(
            slower.is_empty(),
            "`{new}` takes more than {limit} times as long as `{base}`: {}",
            slower.join("; ")
        );
    }
}

impl Ratio {
    /// Returns the geometric mean of the ratios of all blocks, or `None` if there are no blocks.
    pub fn ratio(&self) -> Option<f64> {
        (self.logs.count() > 0).then(|| self.logs.mean().exp())
    }

    /// Returns the 95 % interval of the ratio, or `None` with fewer than 4 blocks. It is valid at
    /// whatever time the run stopped. If the GPU may have waited for the host in all samples of a
    /// batch, it is the interval for times that include such waits.
    pub fn interval95(&self) -> Option<[f64; 2]> {
        self.interval(ALPHA)
    }

    /// Returns the number of blocks on which the ratio is based.
    pub fn blocks(&self) -> u64 {
        self.logs.count()
    }

    fn interval(&self, alpha: f64) -> Option<[f64; 2]> {
        Some(self.logs.interval(alpha, self.half_step, self.look)?.map(f64::exp))
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", units::printable(&self.name))?;
        match self.ratio() {
            Some(ratio) => write!(f, "{ratio:.4} times")?,
            None => f.write_str("unknown")?,
        }
        if let Some([low, high]) = self.interval95() {
            write!(f, ", 95% interval {low:.4} to {high:.4}")?;
        }
        f.write_str(if self.upper_bound { ", computed from upper bounds" } else { "" })
    }
}

impl fmt::Display for Compared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [base, new] = self.names.each_ref().map(|name| units::printable(name));
        let seconds = self.elapsed.as_secs_f64();
        writeln!(f, "`{new}` compared with `{base}`, {} blocks in {seconds:.1} s", self.blocks)?;
        self.ratios.iter().try_for_each(|ratio| writeln!(f, "  {ratio}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(ns: f64) -> Figures {
        Figures { logs: 2.0 * ns.ln(), batches: 2, half_step: 0.0001, is_starved: false }
    }

    /// Compares closures in 60 blocks in which the second one takes `factor` times as long, to
    /// within 1 %.
    fn compared(base: &[&str], new: &[&str], factor: f64) -> Compared {
        let mut compared = Compared::new(["old", "new"]);
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..60 {
            let mut side = |names: &[&str], factor: f64| {
                let one = |name: &&str| {
                    ((*name).to_owned(), figures(factor * (1.0 + 0.01 * random.f64())))
                };
                names.iter().map(one).collect()
            };
            compared.add(Block([side(base, 1e4), side(new, 1e4 * factor)]));
        }
        compared
    }

    #[test]
    fn slower_closure_panics() {
        let slow = compared(&["f", TOTAL], &["f", TOTAL], 1.05);
        let [ratio] = &slow.ratios[..] else { panic!("{slow}") };
        let [low, high] = ratio.interval95().unwrap();
        assert!(low < 1.05 && 1.05 < high && ratio.blocks() == 60, "{slow}");
        slow.assert_not_slower(1.06);
        let panic = std::panic::catch_unwind(|| slow.assert_not_slower(1.02)).unwrap_err();
        let message = panic.downcast_ref::<String>().unwrap();
        assert!(message.starts_with("`new` takes more than 1.02 times as long as `old`: f: 1.0"));
        assert!(slow.is_precise(0.005) && !slow.is_precise(0.0005), "{slow}");
        assert!(slow.is_known());
    }

    /// A run that is ended by the margin stops at a time that depends on its ratios.
    #[test]
    fn timeout_gives_a_narrower_interval() {
        let width = |look| {
            let compared = compared(&["f"], &["f"], 1.0).ended(Duration::ZERO, look);
            let [low, high] = compared.ratios[0].interval95().unwrap();
            high - low
        };
        assert!(width(Look::Last) < 0.8 * width(Look::Early));
    }

    #[test]
    fn equal_closures_do_not_panic() {
        for names in [&["f"][..], &["f", "g", "h"]] {
            compared(names, names, 1.0).assert_not_slower(1.0);
        }
    }

    #[test]
    fn different_functions_are_compared_by_their_total() {
        let compared = compared(&["common", "f", TOTAL], &["common", "g", TOTAL], 1.1);
        let names: Vec<&str> = compared.ratios.iter().map(|ratio| &*ratio.name).collect();
        assert_eq!(names, ["common", TOTAL]);
    }
}
