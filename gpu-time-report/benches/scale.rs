//! Measures the reports of a very large program: 10,000 functions, a tenth of them with 64 keys,
//! and a call tree of 16,384 paths, nested 50 deep.
//!
//! ```text
//! cargo bench -p gpu-time-report --features html --bench scale
//! ```
//!
//! Prints the size of each format, the time to write it, and the peak memory of the process. Fails
//! if the page or the brief table, the two formats for people, is too large.

#[allow(dead_code, reason = "another bench uses the rest")]
#[path = "../tests/support/synthetic.rs"]
mod synthetic;

use std::time::Instant;

use gpu_time_report::{Detail, Snapshot, Terminal};

const FUNCTIONS: usize = 10_000;
const KEYS: usize = 64;
const PATHS: usize = 16_384;
const DEPTH: usize = 50;
/// The maximum size of the page, in bytes.
const PAGE: usize = 3_000_000;
/// The maximum size of the brief table, in bytes.
const BRIEF: usize = 16 << 10;

fn main() {
    let snapshot = synthetic::many(FUNCTIONS, KEYS);
    let series: usize = snapshot.sites.iter().map(|site| site.series.len()).sum();
    println!("{FUNCTIONS} functions, {series} series, {PATHS} paths {DEPTH} deep");
    let before = peak_kib();
    let began = Instant::now();
    let snapshot = synthetic::with_deep_tree(snapshot, PATHS, DEPTH);
    println!("{:<8} {:>37} ms", "tree", began.elapsed().as_millis());
    let page = written("page", &snapshot, Snapshot::to_html);
    let to = Terminal { most_functions: Some(Terminal::MOST_FUNCTIONS), ..Terminal::default() };
    let brief = written("brief", &snapshot, |snapshot| snapshot.to_table(to, Detail::Brief));
    written("table", &snapshot, Snapshot::to_string);
    written("JSON", &snapshot, Snapshot::to_json);
    written("CSV", &snapshot, Snapshot::to_csv);
    written("folded", &snapshot, Snapshot::to_folded);
    println!("peak memory {} MiB, of which the report {}", peak_kib() >> 10, before >> 10);
    assert!(page <= PAGE, "a page of {page} bytes");
    assert!(brief <= BRIEF, "a table of {brief} bytes without its detail");
}

/// Renders one format, prints its size and the time, and returns the size.
fn written(name: &str, snapshot: &Snapshot, write: impl Fn(&Snapshot) -> String) -> usize {
    let began = Instant::now();
    let size = write(snapshot).len();
    println!("{name:<8} {size:>12} bytes {:>18} ms", began.elapsed().as_millis());
    size
}

/// Returns the peak memory of the process in KiB, or 0 if the system does not report it.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.and_then(|kib| kib.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}
