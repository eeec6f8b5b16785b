//! The functions' own GPU times, and their shares of all GPU time. All renderings use these
//! figures.

use std::collections::HashMap;
use std::fmt;
use std::ops::Add;

use crate::largest::sort_by_largest;
use crate::marks::{Mark, Printed};
use crate::units::percent;
use crate::{Node, Series, Site, Snapshot, Source};

/// The GPU time of a function, without the time of the functions that it calls.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OwnTime<'a> {
    pub name: &'a str,
    /// It is that of [helper threads](Node::HELPER_THREADS), of all functions together.
    pub is_of_helpers: bool,
    pub ns: f64,
    /// The part of the time that is an upper bound.
    pub bound_ns: f64,
    /// A part of the time is known better than by an upper bound.
    pub is_partly_known: bool,
    /// At most the standard error of the time, as an estimate from sampled calls. Infinite if it is unknown.
    pub error_ns: f64,
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
    /// A function's share per nanosecond in its rows, whose times may include the functions that it
    /// calls.
    per_ns: HashMap<&'a str, f64>,
    /// The functions' own times.
    own: HashMap<&'a str, OwnTime<'a>>,
    /// The paths of functions whose calls are known only in parts, so that no row has their time.
    in_parts: HashMap<&'a str, Vec<&'a Node>>,
    all_ns: f64,
    windows_only: Vec<&'a Node>,
    helpers: Option<OwnTime<'a>>,
    /// `None` if no part of any function's own time is more than an upper bound.
    bound: Option<Bound>,
}

/// A share of all GPU time, or of a device's time. Displayed as a percentage with its mark.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    pub of_all: f64,
    pub bound: Bound,
}

/// The degree to which a share is known. Of a sum, it is the largest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bound {
    Exact,
    /// It is an estimate from sampled calls or phases, with an error that matters.
    Estimate,
    #[cfg_attr(
        not(feature = "html"),
        expect(dead_code, reason = "only the page divides a device's time")
    )]
    AtLeast,
    #[cfg_attr(
        not(feature = "html"),
        expect(dead_code, reason = "only the page divides a device's time")
    )]
    AtMost,
    /// It may be too large or too small.
    Uncertain,
}

/// The own times of functions by name, according to their rows.
pub type Rows<'a> = HashMap<&'a str, OwnTime<'a>>;

/// Returns the functions' own times on one device, or on all devices, longest first. The helper threads of all functions
/// are like one more. `all_rows` are the times according to the rows of all devices.
///
/// They come from the call tree if there is one, because it counts the time of nested functions
/// once.
pub fn of<'a>(
    snapshot: &'a Snapshot,
    device: Option<&str>,
    all_rows: &Rows<'a>,
) -> Vec<OwnTime<'a>> {
    let times = of_tree(snapshot, device, all_rows).unwrap_or_else(|| {
        let rows = rows(snapshot, device).into_iter();
        rows.map(|(name, time)| OwnTime { name, ..time }).collect()
    });
    let mut times: Vec<OwnTime> = times.into_iter().filter(|time| time.ns > 0.0).collect();
    times.sort_unstable_by_key(|time| time.name);
    sort_by_largest(&mut times, |time| time.ns);
    times
}

/// Returns the sum of these own times.
pub fn sum(times: &[OwnTime]) -> f64 {
    times.iter().fold(0.0, |sum, time| sum + time.ns)
}

/// Returns the functions' own times according to the call tree. `None` if there is no tree, or if
/// it does not distinguish devices, as in reports of earlier versions.
fn of_tree<'a>(
    snapshot: &'a Snapshot,
    device: Option<&str>,
    all_rows: &Rows<'a>,
) -> Option<Vec<OwnTime<'a>>> {
    let is_only = snapshot.gpus().count() <= 1;
    let device = device.filter(|_| !is_only);
    let mut times: HashMap<(&str, bool), OwnTime> = HashMap::new();
    for node in snapshot.tree.iter().filter(|node| node.source != Source::Windows) {
        let ns = match device {
            Some(id) if !node.self_ns_by_device.is_empty() => {
                node.self_ns_by_device.get(id).copied().unwrap_or(0.0)
            }
            Some(_) if node.self_ns > 0.0 => return None,
            _ => node.self_ns,
        };
        if ns > 0.0 {
            let time = times.entry((&node.name, node.is_of_helpers())).or_default();
            time.add(ns, node.upper_bound, !node.upper_bound);
            time.error_ns += error_ns(node) * ns / node.self_ns;
        }
    }
    // A path does not tell whether all of its samples are starved, but the rows do.
    for (name, row) in all_rows {
        let time = times.entry((name, false));
        time.and_modify(|time| time.is_partly_known |= row.is_partly_known);
    }
    let named = times.into_iter();
    let named = named.map(|((name, is_of_helpers), time)| OwnTime { name, is_of_helpers, ..time });
    let times: Vec<OwnTime> = named.collect();
    (!times.is_empty()).then_some(times)
}

/// Returns the functions' own times according to their rows.
pub fn rows<'a>(snapshot: &'a Snapshot, device: Option<&str>) -> Rows<'a> {
    let mut times: HashMap<&str, OwnTime> = HashMap::new();
    for site in &snapshot.sites {
        let is_here = |series: &&Series| device.is_none_or(|id| series.device == id);
        for series in site.series.iter().filter(is_here).filter(|series| series.launch.is_none()) {
            if let Some(ns) = series.own_gpu_time() {
                let time = times.entry(&site.name).or_default();
                time.add(ns, series.is_total_bound(), !series.is_bound());
                time.error_ns += series.total_error().unwrap_or(f64::INFINITY);
            }
        }
    }
    times
}

/// Returns the standard error of a path's self time, infinite if it is unknown.
fn error_ns(node: &Node) -> f64 {
    node.self_error_ns.unwrap_or(f64::INFINITY)
}

impl OwnTime<'_> {
    /// Returns `true` if the time is an upper bound.
    pub fn is_bound(&self) -> bool {
        self.bound_ns > 0.0
    }

    /// Returns the part of the time that is no upper bound.
    pub fn known_ns(&self) -> f64 {
        (self.ns - self.bound_ns).max(0.0)
    }

    /// Returns `true` if the time is an estimate with an error that matters.
    pub fn is_estimate(&self) -> bool {
        self.error_ns > EXACT * self.ns
    }

    fn add(&mut self, ns: f64, is_bound: bool, is_partly_known: bool) {
        self.ns += ns;
        self.bound_ns += if is_bound { ns } else { 0.0 };
        self.is_partly_known |= is_partly_known;
    }
}

impl Bound {
    /// Returns the mark of a share, if it needs one.
    pub fn mark(self) -> Option<Mark> {
        match self {
            Bound::Exact => None,
            Bound::Estimate => Some(Mark::Estimate),
            Bound::AtLeast => Some(Mark::AtLeast),
            Bound::AtMost => Some(Mark::AtMost),
            Bound::Uncertain => Some(Mark::Uncertain),
        }
    }
}

impl Share {
    /// Returns the share with its mark, which counts as printed.
    pub fn text(self, printed: &Printed) -> String {
        printed.print(Mark::Share);
        self.bound.mark().map(|mark| printed.print(mark));
        self.to_string()
    }
}

impl Add for Share {
    type Output = Share;

    fn add(self, other: Share) -> Share {
        Share { of_all: self.of_all + other.of_all, bound: self.bound.max(other.bound) }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (share, mark) = (percent(self.of_all), self.bound.mark().map_or("", Mark::text));
        match self.bound {
            Bound::Uncertain => write!(f, "{share}{mark}"),
            _ => write!(f, "{mark}{share}"),
        }
    }
}

impl<'a> Shares<'a> {
    /// Returns the shares of these own times, beside the times according to all rows. With `is_partial`, some devices or
    /// merged processes lack the phases that others have.
    pub fn of(
        snapshot: &'a Snapshot,
        times: &[OwnTime<'a>],
        rows: &Rows<'a>,
        is_partial: bool,
    ) -> Shares<'a> {
        let is_found = |node: &&Node| node.source == Source::Windows && node.self_ns > 0.0;
        let windows_only: Vec<_> = snapshot.tree.iter().filter(is_found).collect();
        let all_ns = sum(times) + windows_only.iter().map(|node| node.self_ns).sum::<f64>();
        let functions = times.iter().filter(|time| !time.is_of_helpers);
        let per_ns = functions.filter_map(|time| {
            let rows = rows.get(time.name).filter(|rows| rows.ns > 0.0)?;
            Some((time.name, time.ns / all_ns / rows.ns))
        });
        let of_functions = times.iter().map(|time| time.error_ns);
        let errors = of_functions.chain(windows_only.iter().map(|node| error_ns(node)));
        let is_estimate = errors.fold(0.0, f64::max) > EXACT * all_ns;
        let bound = if !times.iter().any(OwnTime::is_bound) {
            Some(if is_estimate { Bound::Estimate } else { Bound::Exact })
        } else {
            times.iter().any(|time| time.is_partly_known).then_some(Bound::Uncertain)
        };
        let is_partial = is_partial && !windows_only.is_empty();
        let bound = bound.map(|bound| if is_partial { Bound::Uncertain } else { bound });
        let mut per_ns: HashMap<_, _> = per_ns.collect();
        let mut in_parts = HashMap::<_, Vec<&Node>>::new();
        for node in snapshot.tree.iter().filter(|node| node.source != Source::Windows) {
            if !per_ns.contains_key(node.name.as_str()) && node.self_ns > 0.0 {
                in_parts.entry(node.name.as_str()).or_default().push(node);
            }
        }
        // Functions that only call others.
        let functions = snapshot.tree.iter().filter(|node| node.site.is_some());
        for name in functions.map(|node| node.name.as_str()) {
            if !in_parts.contains_key(name) {
                per_ns.entry(name).or_insert(0.0);
            }
        }
        let helpers = times.iter().find(|time| time.is_of_helpers).copied();
        let own = times.iter().filter(|time| !time.is_of_helpers);
        let own = own.map(|time| (time.name, *time)).collect();
        Shares { per_ns, own, in_parts, all_ns, windows_only, helpers, bound }
    }

    /// Returns `true` if a part of any function's own time is more than an upper bound, or if there
    /// is none.
    pub fn are_known(&self) -> bool {
        self.bound.is_some()
    }

    /// Returns the share of a row. `None` if its clock does not measure GPU time, for a graph node,
    /// if the call tree contains no own time of the function, or if shares are not known.
    pub fn of_row(&self, site: &Site, series: &Series) -> Option<Share> {
        let of_samples = || Some(series.own_gpu_time()? * self.per_ns.get(site.name.as_str())?);
        let of_parts = || Some(self.parts(site, series)?.iter().map(|node| node.share).sum());
        self.share(of_samples().or_else(of_parts)?)
    }

    /// Returns the path of a row without samples, if the function is known in parts and has only one path.
    pub fn path_in_parts(&self, site: &Site, series: &Series) -> Option<&'a Node> {
        match self.parts(site, series)? {
            [path] => Some(path),
            _ => None,
        }
    }

    /// Returns the paths of a function that is known only in parts, for its first row.
    fn parts(&self, site: &Site, series: &Series) -> Option<&[&'a Node]> {
        let mut rows = site.series.iter().filter(|row| row.launch.is_none() && row.is_gpu_time());
        let is_first = rows.next().is_some_and(|first| std::ptr::eq(first, series));
        self.in_parts.get(site.name.as_str()).filter(|_| is_first).map(Vec::as_slice)
    }

    /// Returns the share of a function's own time. `None` if shares are not known.
    pub fn of_own(&self, time: &OwnTime) -> Option<Share> {
        self.share(time.ns / self.all_ns)
    }

    /// Returns the share of a path's self time. `None` if shares are not known.
    pub fn of_path(&self, node: &Node) -> Option<Share> {
        self.share(node.share)
    }

    /// Returns a function's own time, if it has any.
    pub fn own(&self, name: &str) -> Option<&OwnTime<'a>> {
        self.own.get(name)
    }

    /// Returns the time of which this is the share.
    pub fn ns(&self, share: Share) -> f64 {
        share.of_all * self.all_ns
    }

    fn share(&self, of_all: f64) -> Option<Share> {
        self.bound.map(|bound| Share { of_all, bound })
    }

    /// Returns the time of helper threads, if there is any.
    pub fn helpers(&self) -> Option<&OwnTime<'a>> {
        self.helpers.as_ref()
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
