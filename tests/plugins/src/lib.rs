//! Loading, calling and unloading plugins.
#![allow(unsafe_code)] // calls through symbols

use std::path::Path;
use std::thread;

use libloading::Library;

/// Loads a plugin, calls it once on a new thread, and unloads it.
///
/// # Panics
///
/// Panics if the plugin cannot be loaded or has no function `call`.
pub fn load_call_unload(plugin: &Path) {
    // SAFETY: the initialisers of this package's plugins have no preconditions.
    let library = unsafe { Library::new(plugin) }.expect("the plugin can be loaded");
    // SAFETY: each plugin exports `call` with this signature.
    let call = unsafe { library.get::<extern "C" fn()>("call") }.expect("the plugin has `call`");
    // The call has a thread of its own, because destructors of thread-local values keep the plugin
    // loaded until their thread ends.
    thread::scope(|s| s.spawn(|| call()).join()).expect("the call returns");
    library.close().expect("the plugin can be unloaded");
}
