//! Reports keys that contradict each other or async code.

use crate::enabled::args::{Args, CLOCKS, Clock, Scope};
use crate::enabled::errors::Errors;

/// The keys that a clock excludes, and why.
const EXCLUDED: [(&str, &str, &str); 17] = [
    ("host", "scope", "times the whole body"),
    ("host", "launch", "times the whole body"),
    ("host", "stream", "uses no stream"),
    ("host", "cold", "does not involve an L2"),
    ("host", "sleep", "uses no stream"),
    ("host", "graph", "uses no events"),
    ("host", "helpers", "records no work"),
    ("kernels", "scope", "times the whole body"),
    ("kernels", "launch", "times the whole body"),
    ("kernels", "stream", "times the work on all streams"),
    ("kernels", "cold", "has no stream to flush the L2 on"),
    ("kernels", "sleep", "holds no stream"),
    ("kernels", "graph", "uses no events"),
    ("sync", "scope", "times the whole body"),
    ("sync", "launch", "times the whole body"),
    ("sync", "sleep", "waits for the stream"),
    ("sync", "graph", "uses no events"),
];

/// Reports keys that contradict each other.
pub fn conflicts(args: &Args, errors: &mut Errors) {
    let clock = CLOCKS.iter().find(|(_, clock)| args.clock == Some(*clock));
    let clock = clock.map_or("", |(name, _)| name);
    for (_, name, why) in EXCLUDED.into_iter().filter(|(excluding, ..)| *excluding == clock) {
        let what = match name {
            "scope" if args.scope != Some(Scope::Launches) => continue,
            "scope" => "scope = \"launches\"",
            name => name,
        };
        if let Some(key) = args.key(name) {
            let message = format!("`{what}` conflicts with `clock = \"{clock}\"`, which {why}");
            errors.about(&[name, "clock"], key, message);
        }
    }
    if args.sample.is_some() && args.every.is_some() {
        let message = "`every` conflicts with `sample`: give one of them";
        errors.about(&["every", "sample"], args.key("every"), message);
    }
    if !args.launch.is_empty() && args.scope == Some(Scope::Body) {
        let message = "`launch` conflicts with `scope = \"body\"`, which times the whole body";
        errors.about(&["launch", "scope"], args.key("launch"), message);
    }
}

/// Reports keys that would block an executor.
pub fn not_async(args: &Args, errors: &mut Errors) {
    let mut error = |name, what, why| {
        if let Some(key) = args.key(name) {
            let message = format!("`{what}` cannot be used on async code: {why}");
            errors.about(&[name], key, message);
        }
    };
    error("sleep", "sleep", "it would hold the stream across an await");
    if args.clock == Some(Clock::Sync) {
        error("clock", "clock = \"sync\"", "its barriers would block the executor");
    }
}
