//! The rows of functions in the table and on the page.

use crate::own_times::{OwnTime, Share, Shares};
use crate::{Kernel, Launches, Node, Series, Site, Stats, series};

/// A row of a function, of one of its keys, launches or kernels, or of a sum. What does not apply is empty.
#[derive(Default)]
pub struct Row<'a> {
    pub label: String,
    /// `true` for the row of a function, and `false` for one with a detail or a sum.
    pub is_function: bool,
    /// A sentence as wide as the table, in place of the cells.
    pub sentence: Option<String>,
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
    pub stats: Option<&'a Stats>,
    /// The function's own time, without that of the functions that it calls.
    pub own: Option<Total>,
    pub total: Option<Total>,
    /// The share of all GPU time.
    pub share: Option<Share>,
    /// The share of the function's kernel time.
    pub kernel_share: Option<f64>,
}

/// The total time of all calls.
#[derive(Clone, Copy)]
pub struct Total {
    pub ns: f64,
    pub is_bound: bool,
    /// It is extrapolated from a sample of the calls.
    pub is_estimate: bool,
    /// The standard error, or `None` if it is unknown.
    pub error_ns: Option<f64>,
}

impl<'a> Row<'a> {
    /// Creates the row of these series of a function.
    pub fn of(site: &Site, all: &[&'a Series], label: String) -> Row<'a> {
        let series = if let [only] = all { Some(*only) } else { None };
        let samples = all.iter().map(|series| series.samples());
        Row {
            label,
            series,
            place: all.first().copied(),
            samples: (!all.is_empty()).then(|| series::saturating_sum(samples)),
            stats: series.and_then(Series::shown),
            total: Total::of(site, all),
            ..Row::default()
        }
    }

    /// Creates the row of one series of a function, with its share.
    pub fn of_series(site: &Site, series: &'a Series, shares: &Shares, label: String) -> Row<'a> {
        let row = Row::of(site, &[series], label);
        let total = row.total.or_else(|| shares.path_in_parts(site, series).map(Total::of_path));
        Row { total, ..row }.with_share(shares, &site.name, shares.of_row(site, series))
    }

    /// Adds the share of the function with this name, and the time of which that is the share.
    pub fn with_share(self, shares: &Shares, name: &str, share: Option<Share>) -> Row<'a> {
        let most_ns = self.total.map_or(f64::INFINITY, |total| total.ns);
        let time = shares.own(name);
        let own = share.map(|share| Total {
            // The total is that of the samples, and may be a little less than the path in the tree.
            ns: shares.ns(share).min(most_ns),
            is_bound: time.is_some_and(OwnTime::is_bound),
            is_estimate: time.is_some_and(OwnTime::is_estimate),
            error_ns: None,
        });
        Row { share, own, ..self }
    }

    /// Returns the rows of all GPU time that is not in the rows of functions.
    pub fn beside_functions(shares: &Shares) -> Vec<Row<'a>> {
        let helpers = shares.helpers().map(|time| Row::of_helpers(time, shares.of_own(time)));
        let windows = shares.windows_only().iter();
        let windows = windows.map(|node| Row::of_windows(node, shares.of_path(node)));
        helpers.into_iter().chain(windows).collect()
    }

    /// Creates the row of the work of helper threads.
    fn of_helpers(time: &OwnTime, share: Option<Share>) -> Row<'a> {
        let total = Total {
            ns: time.ns,
            is_bound: time.is_bound(),
            is_estimate: time.error_ns > 0.0,
            error_ns: Some(time.error_ns).filter(|ns| ns.is_finite()),
        };
        let label = Node::HELPER_THREADS.to_owned();
        let total = Some(total);
        Row { label, own: total, total, share, ..Row::default() }
    }

    /// Creates the row of work that only phases found.
    fn of_windows(node: &Node, share: Option<Share>) -> Row<'a> {
        let (label, total) = (node.windows_name().to_owned(), Some(Total::of_path(node)));
        Row { label, own: total, total, share, ..Row::default() }
    }
}

impl Total {
    /// Returns the time of a path as phases tell.
    fn of_path(node: &Node) -> Total {
        Total {
            ns: node.inclusive_ns,
            is_bound: node.upper_bound,
            is_estimate: true,
            error_ns: node.inclusive_error_ns,
        }
    }

    fn of(site: &Site, all: &[&Series]) -> Option<Total> {
        // The samples of different keys are independent.
        let error = |sum: f64, series: &&Series| Some(sum.hypot(series.total_error()?));
        let is_estimated = all.iter().any(|series| series.estimated_total_ns.is_some());
        all.iter().any(|series| series.shown().is_some()).then(|| Total {
            ns: series::total(all.iter().copied()),
            is_bound: all.iter().any(|series| series.is_total_bound()),
            is_estimate: site.is_sampled() && is_estimated,
            error_ns: all.iter().try_fold(0.0, error),
        })
    }
}
