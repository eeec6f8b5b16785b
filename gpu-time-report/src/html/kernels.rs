//! The kernels of the page's rows. Hundreds of rows may have up to 256 kernels each, and the same
//! kernels are in the rows of a function and of its callers, so the page has each name once, and
//! leaves out the kernels with the shortest totals if there are too many.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;
use serde_json::{Value, json};

use super::digits::shortened;
use crate::largest::sort_by_largest;
use crate::{Elsewhere, Kernel, KernelTimes, Series, Site, Stats, kernel_names};

/// The minimum number of kernels of a row that has as many.
const LEAST: usize = 5;
/// The maximum size of all kernels, in bytes, unless the rows' first ones take more.
const MAX_BYTES: usize = 300_000;
/// The approximate size of a kernel without its name.
const ENTRY_BYTES: usize = 80;
/// The maximum length of a name that is not shortened.
const NAME: usize = 72;

/// The kernels of all rows.
#[derive(Serialize)]
pub struct Kernels {
    names: Vec<String>,
    /// Short forms of the names that are too long, by index.
    short_names: BTreeMap<usize, String>,
    /// Indexed by site, then by series. Null for rows without kernels.
    rows: Vec<Vec<Value>>,
}

/// The indices of kernel names, by first use.
type Indices<'a> = HashMap<&'a str, usize>;

impl Kernels {
    pub fn of<'a>(sites: &'a [Site]) -> Kernels {
        let mut shown = lengths(sites).into_iter();
        let mut indices = Indices::new();
        let mut of_series = |series: &'a Series| {
            let shown = shown.next()?;
            row(series.kernel_times.as_ref()?, shown, &mut indices)
        };
        let mut row = |series: &'a Series| of_series(series).unwrap_or_default();
        let rows = sites.iter().map(|site| site.series.iter().map(&mut row).collect()).collect();
        let mut names: Vec<&str> = indices.keys().copied().collect();
        names.sort_by_key(|name| indices[name]);
        let short = kernel_names::shortened(&names, NAME).into_iter().enumerate();
        let short_names = short.filter(|(at, short)| short != names[*at]).collect();
        Kernels { names: names.into_iter().map(str::to_owned).collect(), short_names, rows }
    }
}

/// Returns the number of kernels that each row shows, in the order of all series: the first ones,
/// and of the others those with the longest totals that fit.
fn lengths<'a>(sites: &'a [Site]) -> Vec<usize> {
    let rows = sites.iter().flat_map(|site| &site.series);
    let rows: Vec<&[Kernel]> = rows.map(Series::kernels).collect();
    let mut shown: Vec<usize> = rows.iter().map(|kernels| kernels.len().min(LEAST)).collect();
    let mut others = Vec::new();
    for (at, kernels) in rows.iter().enumerate() {
        others.extend(kernels[shown[at]..].iter().map(|kernel| (at, kernel)));
    }
    sort_by_largest(&mut others, |(_, kernel)| kernel.total_ns);
    let first = rows.iter().zip(&shown).flat_map(|(kernels, &shown)| &kernels[..shown]);
    let mut seen = HashSet::new();
    let mut size = |kernel: &&'a Kernel| {
        ENTRY_BYTES + if seen.insert(&*kernel.name) { kernel.name.len() } else { 0 }
    };
    let mut bytes: usize = first.map(|kernel| size(&kernel)).sum();
    let fits = |(_, kernel): &(usize, &'a Kernel)| {
        bytes += size(kernel);
        bytes <= MAX_BYTES
    };
    let fitting: Vec<usize> = others.into_iter().take_while(fits).map(|(at, _)| at).collect();
    fitting.into_iter().for_each(|at| shown[at] += 1);
    shown
}

/// Returns this many kernels of a row, the number of those that only the JSON report has with their share, and the work
/// elsewhere. `None` if the series has none.
fn row<'a>(times: &'a KernelTimes, shown: usize, names: &mut Indices<'a>) -> Option<Value> {
    let (shown, left_out) = times.kernels.split_at(shown);
    let elsewhere = times.elsewhere.iter().map(|work| {
        let Elsewhere { name, count, total_ns, why } = work;
        json!([index(names, name), count, shortened(*total_ns), why])
    });
    let elsewhere: Vec<Value> = elsewhere.collect();
    let shown: Vec<Value> = shown.iter().map(|kernel| entry(kernel, names)).collect();
    let share = left_out.iter().fold(0.0, |sum, kernel| sum + kernel.share);
    let more = (left_out.len(), rounded(share));
    let is_empty = shown.is_empty() && elsewhere.is_empty();
    (!is_empty).then(|| json!({ "shown": shown, "more": more, "elsewhere": elsewhere }))
}

/// Returns a kernel: name, grid, block, registers, shared bytes, launches per call, times, total and share. The grid and
/// the block lack trailing ones, and those of a kernel with several are empty.
fn entry<'a>(kernel: &'a Kernel, names: &mut Indices<'a>) -> Value {
    let [grid, block] = [kernel.grid, kernel.block].map(|dimensions| match dimensions {
        [0, 0, 0] => Vec::new(),
        [x, 1, 1] => vec![x],
        [x, y, 1] => vec![x, y],
        all => all.to_vec(),
    });
    let times = |stats: Stats| [stats.median, stats.p5, stats.p95].map(shortened);
    json!([
        index(names, &kernel.name),
        grid,
        block,
        kernel.registers,
        kernel.shared_bytes,
        shortened(kernel.per_call),
        kernel.time_ns.map(times),
        shortened(kernel.total_ns),
        rounded(kernel.share),
    ])
}

fn index<'a>(names: &mut Indices<'a>, name: &'a str) -> usize {
    let next = names.len();
    *names.entry(name).or_insert(next)
}

/// Rounds a share to as many digits as the page shows.
fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    /// Returns functions that have this many kernels each, with shorter totals from one to the next.
    fn with_kernels(functions: usize, kernels: usize) -> Vec<Site> {
        let mut site = fixtures::kernels().sites[1].clone();
        let like = site.series[0].kernel_times.as_ref().unwrap().kernels[0].clone();
        let sites = (0..functions).map(|at| {
            let times = site.series[0].kernel_times.as_mut().unwrap();
            let kernel = |i: usize| Kernel {
                name: format!("kernel_{i}"),
                total_ns: 1e9 / ((at + 1) * (i + 1)) as f64,
                share: 1.0 / kernels as f64,
                ..like.clone()
            };
            times.kernels = (0..kernels).map(kernel).collect();
            site.clone()
        });
        sites.collect()
    }

    fn counts(kernels: &Kernels) -> Vec<(usize, usize)> {
        let rows = kernels.rows.iter().flatten();
        let more = |row: &Value| row["more"][0].as_u64().unwrap() as usize;
        rows.map(|row| (row["shown"].as_array().unwrap().len(), more(row))).collect()
    }

    #[test]
    fn few_kernels_are_all_shown() {
        let kernels = Kernels::of(&with_kernels(10, 256));
        assert_eq!(counts(&kernels), [(256, 0); 10]);
        assert_eq!(kernels.names.len(), 256);
    }

    #[test]
    fn kernels_with_short_totals_are_left_out() {
        let kernels = Kernels::of(&with_kernels(600, 256));
        let counts = counts(&kernels);
        assert!(counts.iter().all(|(shown, more)| *shown >= LEAST && shown + more == 256));
        assert!(counts.is_sorted_by(|one, two| one >= two), "{counts:?}");
        assert!(counts[0].0 > 100 && counts[599].0 == LEAST, "{counts:?}");
        let size = serde_json::to_string(&kernels).unwrap().len();
        assert!(size <= MAX_BYTES, "{size} bytes");
        let share = kernels.rows[599][0]["more"][1].as_f64().unwrap();
        assert!((share - 251.0 / 256.0).abs() < 1e-3, "{share}");
    }

    #[test]
    fn long_names_are_short_in_the_list() {
        let mut sites = with_kernels(2, 3);
        let name = "void ns::kernel<float, float, float, float, float, float, float, float, float, float, 7>()";
        let times = sites[1].series[0].kernel_times.as_mut().unwrap();
        times.kernels[1].name = name.to_owned();
        let kernels = Kernels::of(&sites);
        assert_eq!(kernels.names, ["kernel_0", "kernel_1", "kernel_2", name]);
        assert_eq!(kernels.short_names.keys().copied().collect::<Vec<_>>(), [3]);
    }
}
