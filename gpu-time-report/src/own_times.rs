//! The functions' own GPU times, and their shares of all GPU time. Every rendering takes both from here.

use std::collections::HashMap;

use crate::{Device, Node, Series, Site, Snapshot};

/// The GPU time of a function, without that of the functions inside.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OwnTime<'a> {
    pub name: &'a str,
    pub ns: f64,
    /// The time is at most as long.
    pub is_bound: bool,
}

/// The shares of all GPU time. Those of the functions' rows and of the work that is not annotated add
/// up to 1.
pub struct Shares<'a> {
    /// The share of a nanosecond in a function's rows, whose times may include the functions inside.
    per_ns: HashMap<&'a str, f64>,
    not_annotated: Option<&'a Node>,
}

/// The part of the run for which a device's functions account.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Accounted {
    pub share: f64,
    /// The time of any function is at most as long.
    pub is_bound: bool,
    /// The times of all functions are.
    pub is_all_bound: bool,
}

/// Returns the own times, longest first: on one device, or on all.
///
/// They come from the call tree where there is one, because it counts the time of nested functions
/// once. It does not tell devices apart, so their shares of a function come from its rows.
pub fn own_times<'a>(snapshot: &'a Snapshot, device: Option<&str>) -> Vec<OwnTime<'a>> {
    let mut times = rows(snapshot, device);
    if !snapshot.tree.is_empty() {
        let everywhere = rows(snapshot, None);
        let mut of_tree: HashMap<&str, OwnTime> = HashMap::new();
        for node in snapshot.tree.iter().filter(|node| node.name != Node::NOT_ANNOTATED) {
            of_tree.entry(&node.name).or_default().add(node.self_ns, node.upper_bound);
        }
        let is_only = snapshot.devices.iter().filter(|device| device.id != "host").count() <= 1;
        for (name, time) in &mut of_tree {
            let here = times.get(name).zip(everywhere.get(name));
            let here = here.map_or(0.0, |(here, all)| here.ns / all.ns);
            time.ns *= if is_only || device.is_none() { 1.0 } else { here };
        }
        times = of_tree;
    }
    let named = times.into_iter().map(|(name, time)| OwnTime { name, ..time });
    let mut times: Vec<OwnTime> = named.filter(|time| time.ns > 0.0).collect();
    times.sort_by(|one, other| other.ns.total_cmp(&one.ns).then(one.name.cmp(other.name)));
    times
}

/// Returns the sum of the own times.
pub fn sum(times: &[OwnTime]) -> f64 {
    times.iter().fold(0.0, |sum, time| sum + time.ns)
}

/// Returns the functions' own times by their rows.
fn rows<'a>(snapshot: &'a Snapshot, device: Option<&str>) -> HashMap<&'a str, OwnTime<'a>> {
    let mut times: HashMap<&str, OwnTime> = HashMap::new();
    for site in &snapshot.sites {
        let is_here = |series: &&Series| device.is_none_or(|id| series.device == id);
        for series in site.series.iter().filter(is_here).filter(|series| series.launch.is_none()) {
            if let Some(ns) = series.own_gpu_time() {
                times.entry(&site.name).or_default().add(ns, series.is_bound());
            }
        }
    }
    times
}

impl OwnTime<'_> {
    fn add(&mut self, ns: f64, is_bound: bool) {
        self.ns += ns;
        self.is_bound |= is_bound;
    }
}

impl<'a> Shares<'a> {
    pub fn of(snapshot: &'a Snapshot) -> Shares<'a> {
        let not_annotated = snapshot
            .tree
            .iter()
            .find(|node| node.name == Node::NOT_ANNOTATED && node.self_ns > 0.0);
        let (times, rows) = (own_times(snapshot, None), rows(snapshot, None));
        let all_ns = sum(&times) + not_annotated.map_or(0.0, Node::self_ns);
        let per_ns = times.iter().filter_map(|time| {
            let rows = rows.get(time.name).filter(|rows| rows.ns > 0.0)?;
            Some((time.name, time.ns / all_ns / rows.ns))
        });
        Shares { per_ns: per_ns.collect(), not_annotated }
    }

    /// Returns the share of a row. `None` for times of another clock than the GPU's, and for a function
    /// whose time the call tree has as that of the functions around it.
    pub fn of_row(&self, site: &Site, series: &Series) -> Option<f64> {
        Some(series.own_gpu_time()? * self.per_ns.get(site.name())?)
    }

    /// Returns the work outside of all annotated functions, if windows know it.
    pub fn not_annotated(&self) -> Option<&'a Node> {
        self.not_annotated
    }
}

impl Accounted {
    /// Returns the part of the run. `None` for the host, if windows know the device's time, and without any.
    pub fn of(snapshot: &Snapshot, device: &Device) -> Option<Accounted> {
        let times = own_times(snapshot, Some(&device.id));
        let is_known = device.id != "host" && device.coverage.is_none() && !times.is_empty();
        is_known.then(|| Accounted {
            // Work of several streams may overlap.
            share: (sum(&times) / (snapshot.process.wall_ns as f64).max(1.0)).min(1.0),
            is_bound: times.iter().any(|time| time.is_bound),
            is_all_bound: times.iter().all(|time| time.is_bound),
        })
    }
}

impl Series {
    /// Returns the part of the total that is GPU time and the function's own. `None` for times of another clock
    /// than the GPU's, and for nodes of graphs: their time belongs to no function, and not every replay
    /// was sampled.
    fn own_gpu_time(&self) -> Option<f64> {
        self.own_total().filter(|_| self.is_gpu_time() && !self.graph)
    }
}
