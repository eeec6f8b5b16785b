//! The program's own tally of its calls: how often each annotated function ran, and values for the
//! test, which compares them with the report.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde_json::Value;

/// The tally, printed as one line of JSON.
#[derive(Serialize)]
struct Tally {
    /// The number of times the body of each annotated function was entered, by its name in the
    /// report.
    runs: BTreeMap<String, u64>,
    /// Other values for the test.
    facts: BTreeMap<String, Value>,
    /// The launch that uses each kernel, by the kernel's handle: `path`, or `path#index` if there
    /// are several launches. Each kernel is used by only one launch.
    kernels: BTreeMap<u64, String>,
}

static TALLY: Mutex<Tally> =
    Mutex::new(Tally { runs: BTreeMap::new(), facts: BTreeMap::new(), kernels: BTreeMap::new() });

fn tally() -> MutexGuard<'static, Tally> {
    TALLY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts a run of the enclosing annotated function. Used as the first statement in its body.
macro_rules! ran {
    () => {{
        fn here() {}
        $crate::tally::count_run(std::any::type_name_of_val(&here))
    }};
    // For a function with `name = "…"`.
    ($name:literal) => {
        $crate::tally::count_run($name)
    };
}
pub(crate) use ran;

/// Counts a run of the function that contains the item with this path.
pub fn count_run(path: &str) {
    let path = path.strip_suffix("::here").unwrap_or(path).replace("::{{closure}}", "");
    count_runs(&path, 1);
}

/// Adds `runs` to the count of the function with this name in the report.
pub fn count_runs(name: &str, runs: u64) {
    *tally().runs.entry(name.to_owned()).or_default() += runs;
}

/// Records a value under `name`, replacing any earlier one.
pub fn fact(name: &str, value: impl Into<Value>) {
    tally().facts.insert(name.to_owned(), value.into());
}

/// Increments the number recorded under `name`.
pub fn count(name: &str) {
    let mut tally = tally();
    let number = tally.facts.entry(name.to_owned()).or_insert_with(|| 0.into());
    *number = (number.as_u64().unwrap_or_default() + 1).into();
}

/// Records that the kernel with this handle is launched only at `place`.
pub fn kernel(handle: u64, place: &str) {
    let is_path = place.contains("::");
    let place = if is_path { format!("scenario::{place}") } else { place.to_owned() };
    tally().kernels.insert(handle, place);
}

/// Returns the number of calls and brackets in flight.
pub fn in_flight() -> u64 {
    let snapshot = gpu_time::snapshot();
    snapshot.sites.iter().flat_map(|site| &site.series).map(|series| series.in_flight).sum()
}

/// Prints the tally. The program calls this once all work is done.
pub fn print() {
    let line = serde_json::to_string(&*tally()).expect("the tally serializes");
    println!("{line}");
}
