//! The kernels of two programs side by side. Medians of functions do not show that a library has chosen other kernels, or
//! which one became slower.

use std::collections::{BTreeMap, BTreeSet};

use gpu_time_report::judge::Change;
use gpu_time_report::{Clock, Kernel, Measure, Series, Site, Snapshot, shortened_kernels, value};

use super::change::Pair;
use super::comparison::Comparison;
use super::options::Judging;
use super::thresholds::Share;

/// The maximum width of a kernel's name.
const COLUMNS: usize = 60;
/// The standard error of the median of normal values, in that of their mean.
const OF_MEDIAN: f64 = 1.2533;
/// What separates a function from its kernel in the name of a series.
const KEY: &str = ", key ";

/// Returns a report whose series are the kernels of recorded calls, one for each launch shape, as far as they can be
/// compared with those of the other report: both must have recorded calls of the function, and a kernel without an entry
/// of its own may be any.
pub fn view(report: &Snapshot, other: &Snapshot) -> Snapshot {
    let sites = report.sites.iter().map(|site| {
        let others: BTreeSet<&str> = other.site(&site.name).into_iter().flat_map(names).collect();
        let has_all = !others.is_empty() && !others.contains(Kernel::OTHER);
        let is_compared = |name: &str| name != Kernel::OTHER && (has_all || others.contains(name));
        let series = site.series.iter().flat_map(|series| {
            let kernels = series.kernel_times.iter().flat_map(|times| &times.kernels);
            kernels.filter(|kernel| is_compared(&kernel.name)).map(|kernel| times(series, kernel))
        });
        value!(Site { series: series.collect(), ..site.clone() })
    });
    Snapshot::new(report.process.clone(), report.devices.clone(), sites.collect())
}

fn names(site: &Site) -> impl Iterator<Item = &str> {
    let times = site.series.iter().filter_map(|series| series.kernel_times.as_ref());
    times.flat_map(|times| times.kernels.iter().map(|kernel| &*kernel.name))
}

/// Returns the times of a kernel as a series, whose key is its name and shape. Its total is that of a call.
fn times(series: &Series, kernel: &Kernel) -> Series {
    let mean = kernel.total_ns / kernel.count.max(1) as f64;
    // A merged report has no statistics of a kernel that several of its reports have.
    let of_mean = value!(Stats { median: mean, mean });
    let text = |of: [u32; 3]| of.map(|size| size.to_string()).join("×");
    let shape = match kernel.grid {
        [0, 0, 0] => String::new(),
        grid => format!(", grid {}, block {}", text(grid), text(kernel.block)),
    };
    value!(Series {
        key: Some(format!("{}{shape}", kernel.name)),
        cache: series.cache,
        fed: kernel.count,
        raw_ns: Some(kernel.time_ns.unwrap_or(of_mean)),
        ci95_ns: kernel.time_ns.filter(|_| kernel.count > 1).map(|stats| {
            let error = OF_MEDIAN * stats.stddev / (kernel.count as f64).sqrt();
            [-1.96, 1.96].map(|bound| stats.median + bound * error)
        }),
        estimated_total_ns: Some(kernel.per_call * mean),
        ..Series::new(series.device.clone(), Measure::Launch, Clock::Kernels)
    })
}

/// Compares two [views](view). Of kernels with the same verdict, the one whose change is the largest part of its function
/// comes first.
pub fn compared<'a>(
    [base, new]: [&'a Snapshot; 2],
    judging: &Judging,
    change: impl Fn(&str, &Pair, Share) -> Change,
) -> Comparison<'a> {
    let mut all = Comparison::of(base, new, judging, change);
    let change_ns = |pair: &Pair| {
        let [base, new] = pair.series.map(|series| series.estimated_total_ns.unwrap_or_default());
        (new - base).abs()
    };
    all.rows.sort_by(|one, other| {
        let verdicts = one.change.verdict.cmp(&other.change.verdict);
        verdicts.then(change_ns(&other.pair).total_cmp(&change_ns(&one.pair)))
    });
    let series =
        [base, new].into_iter().flat_map(|report| &report.sites).flat_map(|site| &site.series);
    let names: BTreeSet<&str> = series.filter_map(|series| series.key.as_deref()).collect();
    let names: Vec<&str> = names.into_iter().collect();
    let short: BTreeMap<&str, String> =
        names.iter().copied().zip(shortened_kernels(&names, COLUMNS)).collect();
    let rows = all.rows.iter_mut().map(|row| &mut row.name);
    for name in rows.chain(&mut all.missing).chain(&mut all.added) {
        if let Some((function, kernel)) = name.split_once(KEY) {
            *name = format!("{function}: {}", short.get(kernel).map_or(kernel, |short| short));
        }
    }
    all.notes.clear();
    all
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;
    use gpu_time_report::Look;
    use gpu_time_report::judge::Verdict;

    use super::*;
    use crate::ab::paired::Paired;
    use crate::compare::calibration_tests::normal;
    use crate::fixtures::{report, series, site};
    use crate::opened_calls::opened;

    fn judging() -> Judging {
        Judging { thresholds: Vec::new(), fail_on: Vec::new() }
    }

    /// The number of kernels of a program, and of the blocks of an experiment.
    const KERNELS: usize = 130;
    const BLOCKS: usize = 8;

    /// Returns the report of a run. Its kernels take 1 to 100 µs, but for noise and a factor for one of them.
    fn run(random: &mut Rng, slower: usize, factor: f64) -> Snapshot {
        let common = 0.005 * normal(random);
        let names: Vec<String> = (0..KERNELS).map(|at| format!("k{at}")).collect();
        let kernels: Vec<(&str, u64, f64)> = names.iter().map(|name| (&**name, 1, 1.0)).collect();
        let mut times = opened(4, &kernels);
        for (at, kernel) in times.kernels.iter_mut().enumerate() {
            let ns = 1_000.0 * 1.036f64.powi(at as i32) * if at == slower { factor } else { 1.0 };
            let ns = ns * (common + 0.005 * normal(random)).exp();
            kernel.time_ns = kernel.time_ns.map(|_| value!(Stats { median: ns, mean: ns }));
            kernel.total_ns = ns * kernel.count as f64;
        }
        let series =
            value!(Series { kernel_times: Some(times), ..series("cuda:0", &[1e6; 9], &[], 0.0) });
        let report = report(1, vec![], vec![site("f", 1, vec![series])]);
        view(&report, &report)
    }

    /// Calls `judge` with the comparison of an experiment's kernels.
    fn experiment<T>(
        random: &mut Rng,
        slower: usize,
        factor: f64,
        judge: impl Fn(&Comparison) -> T,
    ) -> T {
        let mut paired = Paired::default();
        let mut last = None;
        for _ in 0..BLOCKS {
            let old = [(); 2].map(|()| run(random, slower, 1.0));
            let new = [(); 2].map(|()| run(random, slower, factor));
            paired.add(&old, &new);
            last = Some((old, new));
        }
        let ([old, _], [new, _]) = last.unwrap();
        judge(&compared([&old, &new], &judging(), |name, _, _| {
            paired.change(name, Share(0.01), Look::Last)
        }))
    }

    #[test]
    fn kernel_that_became_slower_ranks_first() {
        let random = &mut Rng::with_seed(3);
        let found = (0..20).filter(|number| {
            let slower = 5 + 6 * number;
            experiment(random, slower, 1.05, |kernels| {
                assert_eq!(kernels.rows.len(), KERNELS);
                let first = &kernels.rows[0];
                first.name.starts_with(&format!("f on cuda:0: k{slower}, "))
                    && first.change.verdict == Verdict::Slower
            })
        });
        let found = found.count();
        assert!(found >= 19, "{found} of 20");
    }

    #[test]
    fn same_program_rarely_has_a_verdict_on_any_kernel() {
        let random = &mut Rng::with_seed(4);
        let found = (0..40).filter(|_| experiment(random, 0, 1.0, |all| all.has_changes()));
        let found = found.count();
        assert!(found <= 2, "{found} of 40");
    }

    #[test]
    fn kernels_of_one_program_are_named_if_the_other_has_none_of_them() {
        let of = |kernels: &[&str]| {
            let kernels: Vec<_> = kernels.iter().map(|name| (*name, 1, 1000.0)).collect();
            let kernel_times = Some(opened(4, &kernels)).filter(|_| !kernels.is_empty());
            let series =
                value!(Series { kernel_times, ..series("cuda:0", &[5000.0; 9], &[], 0.0) });
            report(1, vec![], vec![site("f", 1, vec![series])])
        };
        let only = |base: &[&str], new: &[&str]| {
            let reports = [of(base), of(new)];
            let views = [view(&reports[0], &reports[1]), view(&reports[1], &reports[0])];
            let kernels = compared(views.each_ref(), &judging(), |_, _, _| Change::default());
            [kernels.missing.clone(), kernels.added.clone()]
        };
        let named = |name: &str| vec![format!("f on cuda:0: {name}, grid 8×1×1, block 64×1×1")];
        assert_eq!(only(&["a", "b"], &["c", "a"]), [named("b"), named("c")]);
        assert_eq!(only(&["a", "b"], &["a", "<other>"]), [(); 2].map(|()| Vec::<String>::new()));
        assert_eq!(only(&["a"], &[]), [(); 2].map(|()| Vec::<String>::new()));
    }
}
