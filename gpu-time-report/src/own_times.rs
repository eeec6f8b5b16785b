//! The functions' own GPU times, and their shares of all GPU time. All renderings use these
//! figures.

use std::collections::HashMap;

use crate::figure::{Bound, Figure};
use crate::largest::{sort_by_largest, sort_by_name};
use crate::tree::Owner;
use crate::{Node, Series, Snapshot, Source};

/// The GPU time of a function, without the time of the functions that it calls, or that of all helper threads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OwnTime<'a> {
    pub owner: Owner,
    pub name: &'a str,
    pub ns: f64,
    /// The part of the time that is an upper bound.
    pub bound_ns: f64,
    /// A part of the time is known better than by an upper bound.
    pub is_partly_known: bool,
    /// At most the standard error of the time, as an estimate from sampled calls. Infinite if it is unknown.
    pub error_ns: f64,
    /// The time according to the rows of all devices, which may include the functions that it calls.
    rows_ns: f64,
}

/// The maximum error of shares that are printed without a mark, as a part of all GPU time.
pub const EXACT: f64 = 0.01;

/// The shares of all GPU time. The shares of all functions and of the work that only phases found
/// add up to 1.
///
/// An upper bound divided by a sum of upper bounds is not a bound: a wait in one function lowers
/// the shares of all others. With a bound among the functions' own times, all shares are therefore
/// uncertain, and with nothing but bounds there are none. They are uncertain as well where phases found
/// work that has no time, but not on every device.
pub struct Shares<'a> {
    snapshot: &'a Snapshot,
    /// The own times of functions, 0 for those that only call others, and of helper threads.
    times: Rows<'a>,
    windows_only: Vec<&'a Node>,
    /// The time that all shares are of, as precise as a share is. `None` if no part of any function's own time is more than
    /// an upper bound.
    all: Option<Figure>,
}

/// Own times, such as those according to the rows of functions.
pub type Rows<'a> = HashMap<Owner, OwnTime<'a>>;

/// Returns the own times on one device, or on all devices, longest first. `all_rows` are the times according to the rows
/// of all devices.
///
/// They come from the call tree if there is one, because it counts the time of nested functions
/// once.
pub fn of<'a>(
    snapshot: &'a Snapshot,
    device: Option<&str>,
    all_rows: &Rows<'a>,
) -> Vec<OwnTime<'a>> {
    let times = of_tree(snapshot, device, all_rows);
    let times = times.unwrap_or_else(|| rows(snapshot, device)).into_values();
    let mut times: Vec<OwnTime> = times.filter(|time| time.ns > 0.0).collect();
    sort_by_name(&mut times, |time| time.name);
    sort_by_largest(&mut times, |time| time.ns);
    times
}

/// Returns the sum of these own times.
pub fn sum(times: &[OwnTime]) -> f64 {
    times.iter().fold(0.0, |sum, time| sum + time.ns)
}

/// Returns the own times according to the call tree. `None` if there is no tree, or if
/// it does not distinguish devices, as in reports of earlier versions.
fn of_tree<'a>(
    snapshot: &'a Snapshot,
    device: Option<&str>,
    all_rows: &Rows<'a>,
) -> Option<Rows<'a>> {
    let is_only = snapshot.gpus().count() <= 1;
    let device = device.filter(|_| !is_only);
    let mut times = Rows::new();
    for node in snapshot.tree.iter().filter(|node| node.source != Source::Windows) {
        let ns = match device {
            Some(id) if !node.self_ns_by_device.is_empty() => {
                node.self_ns_by_device.get(id).copied().unwrap_or(0.0)
            }
            Some(_) if node.self_ns > 0.0 => return None,
            _ => node.self_ns,
        };
        if ns > 0.0 {
            let owner = node.owner();
            let time = times.entry(owner).or_insert_with(|| OwnTime::none(owner, node.label()));
            time.add(ns, node.upper_bound, !node.upper_bound);
            time.error_ns += error_ns(node) * ns / node.self_ns;
        }
    }
    // A path does not tell whether all of its samples are starved, but the rows do.
    for time in times.values_mut() {
        if let Some(row) = all_rows.get(&time.owner) {
            time.is_partly_known |= row.is_partly_known;
            time.rows_ns = row.ns;
        }
    }
    (!times.is_empty()).then_some(times)
}

/// Returns the functions' own times according to their rows.
pub fn rows<'a>(snapshot: &'a Snapshot, device: Option<&str>) -> Rows<'a> {
    let mut times = Rows::new();
    for (at, site) in snapshot.sites.iter().enumerate() {
        let is_here = |series: &&Series| device.is_none_or(|id| series.device == id);
        for series in site.heads().filter(is_here) {
            if let Some(ns) = series.own_gpu_time() {
                let owner = Owner::Function(at);
                let time = times.entry(owner).or_insert(OwnTime::none(owner, &site.name));
                time.add(ns, series.is_total_bound(), !series.is_bound());
                time.error_ns += series.total_error().unwrap_or(f64::INFINITY);
                time.rows_ns = time.ns;
            }
        }
    }
    times
}

/// Returns the standard error of a path's self time, infinite if it is unknown.
fn error_ns(node: &Node) -> f64 {
    node.self_error_ns.unwrap_or(f64::INFINITY)
}

impl<'a> OwnTime<'a> {
    fn none(owner: Owner, name: &'a str) -> OwnTime<'a> {
        let [ns, bound_ns, error_ns, rows_ns] = [0.0; 4];
        OwnTime { owner, name, ns, bound_ns, is_partly_known: false, error_ns, rows_ns }
    }

    /// Returns `true` if the time is an upper bound.
    pub fn is_bound(&self) -> bool {
        self.bound_ns > 0.0
    }

    /// Returns the part of the time that is no upper bound.
    pub fn known_ns(&self) -> f64 {
        (self.ns - self.bound_ns).max(0.0)
    }

    /// Returns the time, with its error if that matters.
    pub fn figure(&self) -> Figure {
        let matters = self.error_ns > EXACT * self.ns;
        let error_ns = if matters { self.error_ns } else { 0.0 };
        let error = Some(error_ns).filter(|ns| ns.is_finite());
        Figure { value: self.ns, error, bound: Bound::at_most(self.is_bound()) }
    }

    fn add(&mut self, ns: f64, is_bound: bool, is_partly_known: bool) {
        self.ns += ns;
        self.bound_ns += if is_bound { ns } else { 0.0 };
        self.is_partly_known |= is_partly_known;
    }
}

impl<'a> Shares<'a> {
    /// Returns the shares of these own times. With `is_partial`, some devices or merged processes lack the phases that
    /// others have.
    pub fn of(snapshot: &'a Snapshot, times: &[OwnTime<'a>], is_partial: bool) -> Shares<'a> {
        let is_found = |node: &&Node| node.source == Source::Windows && node.self_ns > 0.0;
        let windows_only: Vec<_> = snapshot.tree.iter().filter(is_found).collect();
        let all_ns = sum(times) + windows_only.iter().map(|node| node.self_ns).sum::<f64>();
        let errors = times.iter().map(|time| time.error_ns);
        let errors = errors.chain(windows_only.iter().map(|node| error_ns(node)));
        let is_estimate = errors.fold(0.0, f64::max) > EXACT * all_ns;
        let has_bound = times.iter().any(OwnTime::is_bound);
        let is_known = !has_bound || times.iter().any(|time| time.is_partly_known);
        let is_uncertain = has_bound || (is_partial && !windows_only.is_empty());
        let all = Figure {
            value: all_ns,
            error: if is_estimate { None } else { Some(0.0) },
            bound: if is_uncertain { Bound::Uncertain } else { Bound::Exact },
        };
        let paths = snapshot.tree.iter().filter(|node| node.source != Source::Windows);
        let of_paths = paths.filter(|node| node.owner() != Owner::HelperThreads);
        let of_paths = of_paths.map(|node| OwnTime::none(node.owner(), &node.name));
        let times = of_paths.chain(times.iter().copied()).map(|time| (time.owner, time)).collect();
        Shares { snapshot, times, windows_only, all: is_known.then_some(all) }
    }

    /// Returns `true` if a part of any function's own time is more than an upper bound, or if there
    /// is none.
    pub fn are_known(&self) -> bool {
        self.all.is_some()
    }

    /// Returns the share of a row of the function with this index. `None` if its clock does not measure GPU time, for a
    /// graph node, if the call tree contains no own time of the function, or if shares are not known.
    pub fn of_row(&self, site: usize, series: &Series) -> Option<Figure> {
        let all = self.all?;
        let of_samples = || {
            let time = self.own(site)?;
            let per_ns = match time.ns {
                0.0 => 0.0,
                ns => Some(ns / all.value / time.rows_ns).filter(|_| time.rows_ns > 0.0)?,
            };
            Some(series.own_gpu_time()? * per_ns)
        };
        let of_parts = || {
            let parts = self.parts(site, series);
            (!parts.is_empty()).then(|| parts.iter().map(|node| node.share).sum())
        };
        Some(Figure { value: of_samples().or_else(of_parts)?, ..all })
    }

    /// Returns the path of a row without samples, if the function is known in parts and has only one path.
    pub fn path_in_parts(&self, site: usize, series: &Series) -> Option<&'a Node> {
        match self.parts(site, series)[..] {
            [path] => Some(path),
            _ => None,
        }
    }

    /// Returns the paths of a function whose calls are known only in parts, so that no row has their time, for its first
    /// row.
    fn parts(&self, site: usize, series: &Series) -> Vec<&'a Node> {
        let mut rows = self.snapshot.sites.get(site).into_iter().flat_map(|site| site.heads());
        let is_first =
            rows.find(|row| row.is_gpu_time()).is_some_and(|first| std::ptr::eq(first, series));
        let in_parts = |time: &OwnTime| time.ns > 0.0 && time.rows_ns == 0.0;
        if !is_first || !self.own(site).is_some_and(in_parts) {
            return Vec::new();
        }
        let is_part = |node: &&Node| node.owner() == Owner::Function(site) && node.self_ns > 0.0;
        self.snapshot.tree.iter().filter(is_part).collect()
    }

    /// Returns the share of a part of all GPU time. `None` if shares are not known.
    pub fn of_ns(&self, ns: f64) -> Option<Figure> {
        self.all.map(|all| Figure { value: ns / all.value, ..all })
    }

    /// Returns the share of a path's self time. `None` if shares are not known.
    pub fn of_path(&self, node: &Node) -> Option<Figure> {
        self.all.map(|all| Figure { value: node.share, ..all })
    }

    /// Returns the own time of the function with this index, if it is in the tree or has any.
    pub fn own(&self, site: usize) -> Option<&OwnTime<'a>> {
        self.times.get(&Owner::Function(site))
    }

    /// Returns the time of which this is the share.
    pub fn ns(&self, share: Figure) -> f64 {
        share.value * self.all.map_or(0.0, |all| all.value)
    }

    /// Returns the time of helper threads, if there is any.
    pub fn helpers(&self) -> Option<&OwnTime<'a>> {
        self.times.get(&Owner::HelperThreads)
    }

    /// Returns the paths of the work that only phases found.
    pub fn windows_only(&self) -> &[&'a Node] {
        &self.windows_only
    }
}

impl Series {
    /// Returns the part of the total that is the function's own GPU time. `None` if the clock does
    /// not measure GPU time, and for graph nodes: their time belongs to no function, and not every
    /// replay is sampled.
    fn own_gpu_time(&self) -> Option<f64> {
        self.own_total().filter(|_| self.is_gpu_time() && !self.graph)
    }
}
