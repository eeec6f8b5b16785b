//! Colours of functions, the same in the bars of device time and in the call tree.

use std::collections::HashMap;

use crate::{Node, Series, Snapshot};

/// The number of functions with a colour of their own.
pub const MOST: usize = 7;

/// The stylesheet class of every other function.
pub const OTHERS: &str = "c7";

/// The functions with the most GPU time, in order, each with its stylesheet class.
pub struct Colours<'a>(HashMap<&'a str, String>);

impl<'a> Colours<'a> {
    pub fn of(snapshot: &'a Snapshot) -> Colours<'a> {
        let longest = functions(snapshot, None);
        let classes = longest.iter().take(MOST).enumerate();
        Colours(classes.map(|(at, &(name, _))| (name, format!("c{at}"))).collect())
    }

    /// Returns the stylesheet class of a function.
    pub fn class(&self, name: &str) -> &str {
        match self.0.get(name) {
            Some(class) => class,
            None if name == Node::NOT_ANNOTATED => "not-annotated",
            None => OTHERS,
        }
    }
}

/// Returns the functions' own GPU times, longest first: on one device, or on all.
///
/// They come from the call tree where there is one, because it counts the time of nested functions
/// once. It does not tell devices apart, so their shares of a function come from its rows.
pub fn functions<'a>(snapshot: &'a Snapshot, device: Option<&str>) -> Vec<(&'a str, f64)> {
    let mut times = rows(snapshot, device);
    if !snapshot.tree.is_empty() {
        let everywhere = rows(snapshot, None);
        let mut of_tree: HashMap<&str, f64> = HashMap::new();
        for node in snapshot.tree.iter().filter(|node| node.name != Node::NOT_ANNOTATED) {
            *of_tree.entry(&node.name).or_default() += node.self_ns;
        }
        let is_only = snapshot.devices.iter().filter(|device| device.id != "host").count() <= 1;
        for (name, ns) in &mut of_tree {
            let here = times.get(name).zip(everywhere.get(name)).map(|(here, all)| here / all);
            *ns *= if is_only || device.is_none() { 1.0 } else { here.unwrap_or(0.0) };
        }
        times = of_tree;
    }
    let mut times: Vec<_> = times.into_iter().filter(|(_, ns)| *ns > 0.0).collect();
    times.sort_by(|(one, ns), (other, other_ns)| other_ns.total_cmp(ns).then(one.cmp(other)));
    times
}

/// Returns the functions' own GPU times by their rows.
fn rows<'a>(snapshot: &'a Snapshot, device: Option<&str>) -> HashMap<&'a str, f64> {
    let mut times: HashMap<&str, f64> = HashMap::new();
    for site in &snapshot.sites {
        let is_here = |series: &&Series| device.is_none_or(|id| series.device == id);
        let own = site.series.iter().filter(is_here).filter_map(Series::own_gpu_time);
        *times.entry(&site.name).or_default() += own.fold(0.0, |sum, ns| sum + ns);
    }
    times
}

impl Series {
    /// Returns the total GPU time that is the function's own. `None` for launches, for nodes of
    /// graphs and for times of another clock than the GPU's.
    fn own_gpu_time(&self) -> Option<f64> {
        let is_function = self.launch.is_none() && !self.graph && self.is_gpu_time();
        self.own_total().filter(|_| is_function)
    }
}
