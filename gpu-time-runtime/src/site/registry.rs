//! The site registry: sites collected by the linker, plus any others once they are called.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::base::lock::{Mutex, Rank, locked};
use crate::base::pin;
use crate::site::callsite::CallSite;

/// An entry in the list that the linker collects.
pub struct SiteRef(
    /// The site.
    pub &'static CallSite,
);

inventory::collect!(SiteRef);

static REGISTRY: OnceLock<Mutex<Vec<&'static CallSite>>> = OnceLock::new();
/// A site has been called.
static HAVE_CALLS: AtomicBool = AtomicBool::new(false);

fn registry() -> &'static Mutex<Vec<&'static CallSite>> {
    if let Some(registry) = REGISTRY.get() {
        return registry;
    }
    let mut sites: Vec<_> = inventory::iter::<SiteRef>.into_iter().map(|s| s.0).collect();
    // Done without the lock, because a thread that loads a library may wait for the registry.
    sites.iter().copied().for_each(pin::pin);
    REGISTRY.get_or_init(|| {
        // The linker's order differs between builds.
        sites.sort_by_key(|s| (s.spec.file, s.spec.line, s.spec.column));
        for (index, site) in sites.iter().enumerate() {
            site.set_id(index as u32 + 1);
        }
        Mutex::new(Rank::Registry, sites)
    })
}

/// Ensures that the site, which is called for the first time, has an id.
pub(crate) fn register(site: &'static CallSite) {
    HAVE_CALLS.store(true, Relaxed);
    add(site);
}

/// Returns `true` once any site has been called.
pub(crate) fn have_calls() -> bool {
    HAVE_CALLS.load(Relaxed)
}

/// Adds a site that the linker did not collect, as in some static libraries. When a plugin is unloaded, its sites stay in
/// the registry, so they are pinned in memory.
fn add(site: &'static CallSite) {
    pin::pin(site);
    let mut sites = locked(registry());
    if site.id() == 0 {
        sites.push(site);
        site.set_id(sites.len() as u32);
    }
}

/// Adds the sites that the linker had not collected yet when a constructor of the program made the first call. Must be
/// called before the program can unload a library.
pub(crate) fn complete() {
    if REGISTRY.get().is_some() {
        inventory::iter::<SiteRef>.into_iter().for_each(|site| add(site.0));
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

/// Returns the version of the crate that the program is named after, if it has an annotated function.
pub(crate) fn version_of(program: &str) -> Option<String> {
    let root = program.replace('-', "_");
    let of = |site: &CallSite| {
        let path = (site.spec.path)();
        (path.split("::").next() == Some(&root)).then_some(site.spec.version).flatten()
    };
    locked(registry()).iter().find_map(|site| of(site)).map(str::to_owned)
}

/// Returns all sites, ordered by id.
pub(crate) fn sites() -> Vec<&'static CallSite> {
    locked(registry()).clone()
}
