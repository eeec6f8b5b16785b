//! The program's own book: how often each annotated function ran, and what came of it. A test
//! compares it with the report.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde_json::Value;

/// What is printed, as one line of JSON.
#[derive(Serialize)]
struct Tally {
    /// How often the body of each annotated function was entered, by its name in the report.
    runs: BTreeMap<String, u64>,
    /// Whatever else the test is to know.
    facts: BTreeMap<String, Value>,
    /// The handle of each kernel that one launch only uses, and which launch that is:
    /// `path`, or `path#index` for one of several.
    kernels: BTreeMap<u64, String>,
}

static TALLY: Mutex<Tally> =
    Mutex::new(Tally { runs: BTreeMap::new(), facts: BTreeMap::new(), kernels: BTreeMap::new() });

fn tally() -> MutexGuard<'static, Tally> {
    TALLY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The first statement of every annotated function.
macro_rules! ran {
    () => {{
        fn here() {}
        $crate::tally::count_run(std::any::type_name_of_val(&here))
    }};
    // A function that has a name of its own.
    ($name:literal) => {
        $crate::tally::count_run($name)
    };
}
pub(crate) use ran;

/// Counts a run of the function in which an item of this path stands.
pub fn count_run(path: &str) {
    let path = path.strip_suffix("::here").unwrap_or(path).replace("::{{closure}}", "");
    count_runs(&path, 1);
}

/// Counts so many runs of the function that is called so in the report.
pub fn count_runs(name: &str, runs: u64) {
    *tally().runs.entry(name.to_owned()).or_default() += runs;
}

/// Notes something, or adds to a number noted before.
pub fn fact(name: &str, value: impl Into<Value>) {
    tally().facts.insert(name.to_owned(), value.into());
}

/// Adds one to a number.
pub fn count(name: &str) {
    let mut tally = tally();
    let number = tally.facts.entry(name.to_owned()).or_insert_with(|| 0.into());
    *number = (number.as_u64().unwrap_or_default() + 1).into();
}

/// Notes that the kernel of this handle is launched at one place only.
pub fn kernel(handle: u64, place: &str) {
    let is_path = place.contains("::");
    let place = if is_path { format!("scenario::{place}") } else { place.to_owned() };
    tally().kernels.insert(handle, place);
}

/// Prints the book, once all work is done.
pub fn print() {
    let line = serde_json::to_string(&*tally()).expect("plain data");
    println!("{line}");
}
