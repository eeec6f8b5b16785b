//! Finds and loads the tool's library, and lets it attach.

use std::error::Error;
use std::ffi::{c_int, c_void};
use std::path::Path;

use libloading::os::unix::{Library, RTLD_LAZY};

use crate::base::{console, environment, switches};
use crate::nvtx::table;

/// The variable in which a tool names its library.
#[cfg(target_pointer_width = "64")]
const VARIABLE: &str = "NVTX_INJECTION64_PATH";
#[cfg(target_pointer_width = "32")]
const VARIABLE: &str = "NVTX_INJECTION32_PATH";

/// `InitializeInjectionNvtx2`.
type Initialize = unsafe extern "C" fn(extern "C" fn(u32) -> *const c_void) -> c_int;

/// Lets the tool that is named in the environment attach. From then on, calls are ranges. Must be called
/// only once. Prints a line if the tool cannot attach, or if `is_expected` and there is no tool.
pub(crate) fn attach(is_expected: bool) {
    match environment::var(VARIABLE).filter(|path| !path.is_empty()) {
        Some(path) => match load(Path::new(&path)) {
            Ok(()) => switches::begin_listening(),
            Err(why) => console::complain(format!("no NVTX ranges: {why}")),
        },
        None if is_expected => console::complain(format!(
            "no NVTX ranges: `GPU_TIME_NVTX` is `on`, but no tool has set `{VARIABLE}`"
        )),
        None => {}
    }
}

/// Loads the library and lets it attach. The library is never unloaded, because the runtime may call it until
/// the process ends.
fn load(path: &Path) -> Result<(), String> {
    let named = format!("`{}`, which `{VARIABLE}` names,", path.display());
    // SAFETY: the user runs the program under this tool, whose initializers are made for that. A program
    // with more privileges than its user ignores the environment and does not get here.
    let library = unsafe { Library::open(Some(path), RTLD_LAZY) }
        .map_err(|error| format!("{named} cannot be loaded: {}", cause(&error)))?;
    // SAFETY: the protocol gives the function this type.
    let initialize: Initialize = unsafe { library.get(b"InitializeInjectionNvtx2") }
        .map(|symbol| *symbol)
        .map_err(|_| format!("{named} is not an NVTX injection library"))?;
    let _: &Library = Box::leak(Box::new(library));
    // SAFETY: the tables passed to it are static and have the layout that the protocol defines.
    let is_attached = unsafe { initialize(table::export_table) } != 0;
    is_attached.then_some(()).ok_or_else(|| format!("{named} refused to attach"))
}

/// Returns the loader's message, which is not part of the error's own message.
fn cause(error: &dyn Error) -> &dyn Error {
    error.source().unwrap_or(error)
}
