//! The rows of functions in the table and on the page.

use crate::figure::{Bound, Figure};
use crate::own_times::{OwnTime, Shares};
use crate::{Kernel, Launches, Node, Series, Site, Stats, series};

/// A row of a function, of one of its keys, launches or kernels, or of a sum. What does not apply is empty.
#[derive(Default)]
pub struct Row<'a> {
    pub label: String,
    /// `true` for the row of a function, and `false` for one with a detail or a sum.
    pub is_function: bool,
    /// A sentence as wide as the table, below the row.
    pub below: Option<String>,
    /// The row's only series.
    pub series: Option<&'a Series>,
    /// A series with the row's device, clock and cache state.
    pub place: Option<&'a Series>,
    /// The number of launches per call, which follows the label.
    pub launches: Option<Launches>,
    pub kernel: Option<&'a Kernel>,
    /// The launch configuration, which follows the name of an ambiguous kernel.
    pub configuration: String,
    pub calls: Option<u64>,
    pub samples: Option<u64>,
    /// Some calls have no sample, because they were in warm-up, lost or in flight.
    pub is_missing_some: bool,
    pub stats: Option<&'a Stats>,
    /// The function's own time, without that of the functions that it calls.
    pub own: Option<Figure>,
    /// The time of all calls.
    pub total: Option<Figure>,
    /// The share of all GPU time.
    pub share: Option<Figure>,
    /// The share of the function's kernel time.
    pub kernel_share: Option<f64>,
}

impl<'a> Row<'a> {
    /// Creates the row of these series of a function.
    pub fn of(site: &Site, all: &[&'a Series], label: String) -> Row<'a> {
        let series = if let [only] = all { Some(*only) } else { None };
        let samples = all.iter().map(|series| series.samples());
        let is_missing = |series: &&Series| series.lost.total() > 0 || series.in_flight > 0;
        Row {
            label,
            series,
            place: all.first().copied(),
            samples: (!all.is_empty()).then(|| series::saturating_sum(samples)),
            is_missing_some: site.warmup > 0 || all.iter().any(is_missing),
            stats: series.and_then(Series::shown),
            total: total(site, all),
            ..Row::default()
        }
    }

    /// Creates the row of one series of the function with this index, with its share.
    pub fn of_series(
        (at, site): (usize, &Site),
        series: &'a Series,
        shares: &Shares,
        label: String,
    ) -> Row<'a> {
        let row = Row::of(site, &[series], label);
        let total = row.total.or_else(|| shares.path_in_parts(at, series).map(of_path));
        Row { total, ..row }.with_share(shares, at, shares.of_row(at, series))
    }

    /// Adds the share of the function with this index, and the time of which that is the share.
    pub fn with_share(self, shares: &Shares, at: usize, share: Option<Figure>) -> Row<'a> {
        let most_ns = self.total.map_or(f64::INFINITY, |total| total.value);
        let time = shares.own(at).map_or(Figure::new(0.0, Bound::Exact), OwnTime::figure);
        // The total is that of the samples, and may be a little less than the path in the tree.
        let own = share.map(|share| Figure { value: shares.ns(share).min(most_ns), ..time });
        Row { share, own, ..self }
    }

    /// Creates the row of a kernel. Its total is left out, because kernels are known only for recorded calls, but totals
    /// cover all calls.
    pub fn of_kernel(kernel: &'a Kernel, is_ambiguous: bool) -> Row<'a> {
        let configuration =
            Some(kernel.configuration()).filter(|text| is_ambiguous && !text.is_empty());
        Row {
            kernel: Some(kernel),
            configuration: configuration.map(|all| format!(", {all}")).unwrap_or_default(),
            samples: Some(kernel.count),
            stats: kernel.time_ns.as_ref(),
            kernel_share: Some(kernel.share),
            ..Row::default()
        }
    }

    /// Returns the rows of all GPU time that is not in the rows of functions.
    pub fn beside_functions(shares: &Shares) -> Vec<Row<'a>> {
        let row = |label: &str, total: Figure, share| {
            let (label, total) = (label.to_owned(), Some(total));
            Row { label, own: total, total, share, ..Row::default() }
        };
        let helpers =
            shares.helpers().map(|time| row(time.name, time.figure(), shares.of_ns(time.ns)));
        let windows = shares.windows_only().iter();
        let windows = windows.map(|node| row(node.label(), of_path(node), shares.of_path(node)));
        helpers.into_iter().chain(windows).collect()
    }
}

/// Returns the time of all calls of these series.
fn total(site: &Site, all: &[&Series]) -> Option<Figure> {
    // The samples of different keys are independent.
    let error = |sum: f64, series: &&Series| Some(sum.hypot(series.total_error()?));
    let is_estimated = all.iter().any(|series| series.estimated_total_ns.is_some());
    let is_estimate = site.is_sampled() && is_estimated;
    all.iter().any(|series| series.shown().is_some()).then(|| Figure {
        value: series::total(all.iter().copied()),
        error: if is_estimate { all.iter().try_fold(0.0, error) } else { Some(0.0) },
        bound: Bound::at_most(all.iter().any(|series| series.is_total_bound())),
    })
}

/// Returns the time of a path with the paths inside.
fn of_path(node: &Node) -> Figure {
    Figure {
        value: node.inclusive_ns,
        error: node.inclusive_error_ns,
        bound: Bound::at_most(node.upper_bound),
    }
}
