//! The work of annotated functions without a time: those whose calls are longer than phases, or all in warm-up. Phases
//! tell how long it ran.

use gpu_time_report::{Device, Node, Source, value};

use crate::collect::state::SiteState;
use crate::record::phase::controller;
use crate::site::callsite::CallSite;
use crate::types::site_time::SiteTime;

/// Adds the work to the functions' paths in the tree. A function without a path gets one. With several paths, it is
/// unknown which of them enqueued the work, so it becomes a share of the device.
pub(super) fn add(devices: &mut [Device], tree: &mut Vec<Node>, states: &[SiteState]) {
    for device in devices {
        let ordinal = device.id.strip_prefix("cuda:").and_then(|ordinal| ordinal.parse().ok());
        let Some(coverage) = device.coverage.as_mut() else { continue };
        let times = ordinal.map(controller::site_times).unwrap_or_default();
        for SiteTime { site, ns, error_ns } in times {
            let at = (site as usize).wrapping_sub(1);
            let Some(state) = states.get(at).filter(|state| !state.has_gpu_times()) else {
                continue;
            };
            if let Some(path) = only_path(tree, at, state.site) {
                path.calls = state.calls.calls() as f64;
                path.self_ns += ns;
                path.self_error_ns =
                    path.self_error_ns.zip(error_ns).map(|(one, other)| one.hypot(other));
                path.inclusive_error_ns = path.self_error_ns;
                path.self_ns_by_device.insert(device.id.clone(), ns);
            } else {
                coverage.not_timed += ns / coverage.covered_ns;
                let error = error_ns.map(|ns| ns / coverage.covered_ns);
                coverage.not_timed_error =
                    coverage.not_timed_error.zip(error).map(|(one, other)| one + other);
            }
        }
    }
}

/// Returns the path of a function, which may be new. `None` if it has several.
fn only_path<'a>(tree: &'a mut Vec<Node>, at: usize, site: &CallSite) -> Option<&'a mut Node> {
    let mut paths = tree.iter().enumerate().filter(|(_, node)| node.site == Some(at));
    let place = match (paths.next(), paths.next()) {
        (Some(_), Some(_)) => return None,
        (Some((place, _)), None) => place,
        (None, _) => {
            let (name, site) = (site.name().to_owned(), Some(at));
            tree.push(value!(Node { name, site, ..Node::of(Source::Opened) }));
            tree.len() - 1
        }
    };
    tree.get_mut(place)
}
