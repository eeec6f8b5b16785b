//! The site registry: sites collected by the linker, plus any others once they are called.

use std::sync::OnceLock;

use crate::base::lock::{Mutex, Rank, locked};
use crate::site::callsite::CallSite;

/// An entry in the list that the linker collects.
pub struct SiteRef(
    /// The site.
    pub &'static CallSite,
);

inventory::collect!(SiteRef);

fn registry() -> &'static Mutex<Vec<&'static CallSite>> {
    static REGISTRY: OnceLock<Mutex<Vec<&'static CallSite>>> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        let mut sites: Vec<_> = inventory::iter::<SiteRef>.into_iter().map(|s| s.0).collect();
        // The linker's order can differ between builds.
        sites.sort_by_key(|s| (s.spec.file, s.spec.line, s.spec.column));
        for (index, site) in sites.iter().enumerate() {
            site.set_id(index as u32 + 1);
        }
        Mutex::new(Rank::Registry, sites)
    })
}

/// Ensures that the site has an id. Adds a site that the linker did not collect, which can happen
/// in static libraries.
pub(crate) fn register(site: &'static CallSite) {
    let mut sites = locked(registry());
    if site.id() == 0 {
        sites.push(site);
        site.set_id(sites.len() as u32);
    }
}

/// Returns the number of sites.
pub(crate) fn len() -> usize {
    locked(registry()).len()
}

/// Returns the site with this id.
pub(crate) fn site(id: u32) -> Option<&'static CallSite> {
    locked(registry()).get((id as usize).checked_sub(1)?).copied()
}

/// Returns all sites, ordered by id.
pub(crate) fn sites() -> Vec<&'static CallSite> {
    locked(registry()).clone()
}
