//! The result of `compare`.

use std::collections::BTreeMap;
use std::time::Duration;
use std::{fmt, iter};

use crate::base::switches;
use crate::control::active;
use crate::settle::stopping::DEFAULT_STEP_NS;
use gpu_time_report::judge::{Block, Change, RunMedian, Verdict, correct};
use gpu_time_report::{LogRatio, Look, Names, PairedRatios, Site, units};

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
    pairs: PairedRatios,
}

/// The medians of the series in one batch of calls, by name.
pub(super) type Batch = BTreeMap<String, RunMedian>;

/// Returns the medians of a batch of so many calls, and the total of all functions.
pub(super) fn medians(sites: &[Site], calls: u32, step_ns: impl Fn(&str) -> Option<f64>) -> Batch {
    let names: Names = sites.iter().map(|site| site.name.as_str()).collect();
    let mut batch = Batch::new();
    let mut total = RunMedian::default();
    for site in sites {
        let label = names.label(&site.name, &site.file, site.line);
        for series in &site.series {
            let step_ns = step_ns(&series.device).unwrap_or(DEFAULT_STEP_NS);
            let Some(median) = RunMedian::of(series, step_ns) else { continue };
            batch.insert(format!("{label} on {}", series.place()), median);
            if series.launch.is_none() {
                let per_call = (series.measured + series.opened()) as f64 / f64::from(calls);
                total.raw_ns += per_call * median.ns();
                total.step_ns += per_call * median.step_ns;
                total.is_starved |= median.is_starved;
            }
        }
    }
    if total.raw_ns > 0.0 {
        batch.insert(TOTAL.to_owned(), total);
    }
    batch
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

    /// Adds the ratios of a block, from the batches of each closure. The total is of interest only if
    /// the closures call different functions.
    pub(super) fn add(&mut self, [base, new]: [Vec<Batch>; 2]) {
        self.blocks += 1;
        let is_alike = iter::zip(&base, &new).all(|(base, new)| base.keys().eq(new.keys()));
        let mut blocks: BTreeMap<String, Block> = BTreeMap::new();
        for (base, new) in iter::zip(base, new) {
            for (name, base) in base {
                let is_shown = name != TOTAL || !is_alike;
                if let Some(new) = new.get(&name).filter(|_| is_shown) {
                    blocks.entry(name).or_default().add([base, *new]);
                }
            }
        }
        for (name, block) in blocks {
            let known = self.ratios.iter().position(|ratio| ratio.name == name);
            let at = known.unwrap_or_else(|| {
                let pairs = PairedRatios::default();
                self.ratios.push(Ratio { name, upper_bound: false, pairs });
                self.ratios.len() - 1
            });
            let Some(ratio) = self.ratios.get_mut(at) else { continue };
            ratio.upper_bound |= block.is_starved();
            block.record(&mut ratio.pairs);
        }
    }

    pub(super) fn ended(mut self, elapsed: Duration, look: Look) -> Compared {
        self.ratios.iter_mut().for_each(|ratio| ratio.pairs = ratio.pairs.at(look));
        Compared { elapsed, is_timed: switches::is_on() && active::config().is_on, ..self }
    }

    /// Returns `true` if every ratio is known to within the margin, or to a step of the clock.
    pub(super) fn is_precise(&self, margin: f64) -> bool {
        self.ratios.iter().all(|ratio| {
            let margin = margin.max(2.0 * ratio.pairs.resolution());
            ratio.pairs.interval().is_some_and(|[low, high]| (high - low) / 2.0 <= margin)
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
        // Any change up to the limit counts as none.
        let change = |ratio: &Ratio| Change::of_pairs(&ratio.pairs, limit - 1.0, 0.0);
        let mut changes: Vec<Change> = self.ratios.iter().map(change).collect();
        correct(changes.iter_mut());
        let changed = iter::zip(&self.ratios, &changes);
        let slower = changed.filter(|(_, change)| change.verdict == Verdict::Slower);
        let slower: Vec<String> = slower.map(|(ratio, _)| ratio.to_string()).collect();
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
        (self.blocks() > 0).then(|| self.pairs.estimate().exp())
    }

    /// Returns the 95 % interval of the ratio, or `None` with fewer than 4 blocks. It is valid at
    /// whatever time the run stopped. If the GPU may have waited for the host in all samples of a
    /// batch, it is the interval for times that include such waits.
    pub fn interval95(&self) -> Option<[f64; 2]> {
        Some(self.pairs.interval()?.map(f64::exp))
    }

    /// Returns the number of blocks on which the ratio is based.
    pub fn blocks(&self) -> u64 {
        self.pairs.count()
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

    fn median(ns: f64) -> RunMedian {
        RunMedian { raw_ns: ns, step_ns: 0.0002 * ns, ..RunMedian::default() }
    }

    /// Compares closures in 60 blocks in which the second one takes `factor` times as long, to
    /// within 1 %.
    fn compared(base: &[&str], new: &[&str], factor: f64) -> Compared {
        let mut compared = Compared::new(["old", "new"]);
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..60 {
            let mut side = |names: &[&str], factor: f64| {
                let one = |name: &&str| {
                    ((*name).to_owned(), median(factor * (1.0 + 0.01 * random.f64())))
                };
                vec![names.iter().map(one).collect(); 2]
            };
            compared.add([side(base, 1e4), side(new, 1e4 * factor)]);
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
        assert!(message.starts_with("`new` ") && message.contains(" 1.02 times "), "{message}");
        assert!(message.contains(": f: 1.0"), "{message}");
        assert!(slow.is_precise(0.005) && !slow.is_precise(0.0005), "{slow}");
        assert!(slow.is_known());
    }

    /// The second change would be lost among two if the first were not beyond doubt.
    #[test]
    fn certain_change_does_not_hide_another() {
        let ratio = |name: &str, shift: f64| {
            let mut pairs = PairedRatios::default();
            for block in 0..10 {
                let noise = if block % 2 == 0 { 0.01 } else { -0.01 };
                pairs.record([9.0, 9.0 + shift + noise], 0.0);
            }
            Ratio { name: name.to_owned(), upper_bound: false, pairs }
        };
        let ratios = vec![ratio("f", 0.5), ratio("g", 0.0156)];
        let p_value = ratios[1].pairs.p_value(0.0);
        assert!((0.025..0.05).contains(&p_value), "{p_value}");
        let slow = Compared { ratios, ..Compared::new(["old", "new"]) };
        let panic = std::panic::catch_unwind(|| slow.assert_not_slower(1.0)).unwrap_err();
        let message = panic.downcast_ref::<String>().unwrap();
        assert!(message.contains(": f: 1.64") && message.contains("; g: 1.01"), "{message}");
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
