//! `loader PLUGIN…` loads, calls and unloads each plugin, prints the plugins that are still in memory, and
//! exits at the end of stdin. It has no annotated functions of its own.

use std::io::{self, Read};
use std::path::Path;
use std::thread;
use std::time::Duration;

use gpu_time_plugins::load_call_unload;

fn main() {
    let plugins: Vec<String> = std::env::args().skip(1).collect();
    plugins.iter().for_each(|plugin| load_call_unload(Path::new(plugin)));
    // Gives the threads started by the plugins time to start running.
    thread::sleep(Duration::from_millis(5));
    let memory = std::fs::read_to_string("/proc/self/maps").expect("a list of mapped files");
    let loaded = plugins.iter().filter(|plugin| memory.contains(plugin.as_str()));
    loaded.for_each(|plugin| println!("{plugin}"));
    io::stdin().read_to_end(&mut Vec::new()).expect("stdin is readable");
}
