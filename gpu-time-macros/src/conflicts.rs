//! Reports keys that contradict each other or async code.

use crate::args::Args;
use crate::errors::Errors;
use crate::values::{Clock, Scope};

/// A key that a clock excludes, and why.
type Excluded = (&'static str, &'static str);

/// The clocks that exclude other keys, with their names.
const EXCLUDED: [(Clock, &str, &[Excluded]); 3] = [
    (
        Clock::Host,
        "host",
        &[
            ("scope", "times the whole body"),
            ("launch", "times the whole body"),
            ("stream", "uses no stream"),
            ("cold", "does not involve an L2"),
            ("sleep", "uses no stream"),
            ("graph", "uses no events"),
        ],
    ),
    (
        Clock::Kernels,
        "kernels",
        &[
            ("scope", "times the whole body"),
            ("launch", "times the whole body"),
            ("stream", "times the work on all streams"),
            ("cold", "has no stream to flush the L2 on"),
            ("sleep", "holds no stream"),
            ("graph", "uses no events"),
        ],
    ),
    (
        Clock::Sync,
        "sync",
        &[
            ("scope", "times the whole body"),
            ("launch", "times the whole body"),
            ("sleep", "waits for the stream"),
            ("graph", "uses no events"),
        ],
    ),
];

/// Reports keys that contradict each other.
pub fn conflicts(args: &Args, errors: &mut Errors) {
    for (clock, clock_name, excluded) in EXCLUDED {
        if args.has_clock(clock) {
            excluded_by(clock_name, excluded, args, errors);
        }
    }
    if let (Some(_), Some(every)) = (&args.sample, &args.every) {
        let message = "`every` conflicts with `sample`: give one of them";
        errors.about(&["every", "sample"], &every.key, message);
    }
    if let (Some(launch), true) = (&args.launch, args.has_scope(Scope::Body)) {
        let message = "`launch` conflicts with `scope = \"body\"`, which times the whole body";
        errors.about(&["launch", "scope"], &launch.key, message);
    }
}

fn excluded_by(clock: &str, excluded: &[Excluded], args: &Args, errors: &mut Errors) {
    for (name, why) in excluded {
        let what = match *name {
            "scope" if !args.has_scope(Scope::Launches) => continue,
            "scope" => "scope = \"launches\"",
            name => name,
        };
        if let Some(key) = args.key(name) {
            let message = format!("`{what}` conflicts with `clock = \"{clock}\"`, which {why}");
            errors.about(&[name, "clock"], key, message);
        }
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
    if args.has_clock(Clock::Sync) {
        error("clock", "clock = \"sync\"", "its barriers would block the executor");
    }
}
