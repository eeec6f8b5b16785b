//! The NVML library.

use std::sync::OnceLock;

use nvml_wrapper::Nvml;

/// Returns the library. It is loaded on the first call and never unloaded, because exit handlers
/// use it.
pub(super) fn nvml() -> Result<&'static Nvml, &'static str> {
    static NVML: OnceLock<Result<Nvml, String>> = OnceLock::new();
    let nvml = NVML.get_or_init(|| Nvml::init().map_err(|error| error.to_string()));
    nvml.as_ref().map_err(String::as_str)
}
