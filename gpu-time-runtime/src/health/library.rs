//! The NVML library.

use std::sync::OnceLock;

use nvml_wrapper::Nvml;

use crate::base::background;

/// Returns the library. It is loaded on the first call and never unloaded, because exit handlers
/// use it.
pub(super) fn nvml() -> Result<&'static Nvml, &'static str> {
    // Boxed where it is loaded, because it is too large for a small stack.
    static NVML: OnceLock<Result<Box<Nvml>, String>> = OnceLock::new();
    let load = || Nvml::init().map(Box::new).map_err(|error| error.to_string());
    let nvml = NVML.get_or_init(|| background::aside(load));
    nvml.as_deref().map_err(String::as_str)
}
