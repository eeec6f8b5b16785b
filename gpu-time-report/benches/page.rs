//! Measures the HTML page of 500 synthetic series and a call tree of 2,000 paths, without kernels,
//! with 20 kernels in the row of each function, and with the most: the time to write it, its size
//! and, if Chromium is installed, the time until it shows text. Fails if a page is too large or
//! shows text too late. Run it with `cargo bench -p gpu-time-report --features html`.
//! A folder after `--` receives this page and the pages of some made-up programs.

#[path = "../tests/support/chromium.rs"]
mod chromium;
#[allow(dead_code, reason = "another bench uses the rest")]
#[path = "../tests/support/synthetic.rs"]
mod synthetic;

use std::time::Instant;

use gpu_time_report::Snapshot;

const SERIES: usize = 500;
const PATHS: usize = 2000;
/// The numbers of kernels in the row of each function.
const KERNELS: [usize; 3] = [0, 20, 256];
const RUNS: usize = 5;
/// The maximum size of the page, in bytes.
const LARGEST: usize = 3_000_000;
/// The maximum time to the first text, in ms.
const LATEST: f64 = 1000.0;

/// A script that returns the times of the first paint and of the first text, in ms since the page
/// was opened.
const PAINTED: &str = r#"
    for (let waited = 0; waited < 1000; waited++) {
        const paints = performance.getEntriesByType("paint");
        if (paints.length > 1) return paints.map((paint) => paint.startTime);
        await new Promise((resolve) => setTimeout(resolve, 10));
    }
"#;

fn main() {
    // Skips `--bench`, which Cargo passes.
    let folder = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let large = synthetic::large(SERIES, PATHS);
    let pages = KERNELS.map(|kernels| (kernels, written(&large, kernels)));
    if let Some(folder) = folder {
        let keep = |name: &str, page: &str| {
            let path = std::path::Path::new(&folder).join(name).with_extension("html");
            std::fs::write(path, page).expect("the page is kept");
        };
        for (kernels, page) in &pages {
            keep(&format!("bench-{kernels}"), page);
        }
        for (name, program) in synthetic::programs() {
            let page = program.to_html();
            println!("{name}: {} bytes", page.len());
            assert!(page.len() <= LARGEST, "{name}: a page of {} bytes", page.len());
            keep(name, &page);
        }
    }
    let is_installed = std::process::Command::new("chromium").arg("--version").output().is_ok();
    if !is_installed {
        return println!("no Chromium to show it in");
    }
    for (kernels, page) in &pages {
        let median = painted(page);
        println!("{kernels} kernels: first text painted after {median:.0} ms");
        assert!(median <= LATEST, "{kernels} kernels: first text after {median} ms");
    }
}

/// Returns the page with this many kernels in the row of each function, if it is not too large.
fn written(large: &Snapshot, kernels: usize) -> String {
    let with_kernels = (kernels > 0).then(|| synthetic::with_kernels(large, kernels));
    let snapshot = with_kernels.as_ref().unwrap_or(large);
    let mut times: Vec<_> = (0..RUNS)
        .map(|_| {
            let begin = Instant::now();
            let page = snapshot.to_html();
            let target = tempfile::NamedTempFile::new().expect("a temporary file");
            std::fs::write(target.path(), page).expect("it is written");
            begin.elapsed()
        })
        .collect();
    times.sort();
    let (page, median) = (snapshot.to_html(), times[RUNS / 2]);
    let bytes = page.len();
    println!("{SERIES} series, {PATHS} paths, {kernels} kernels: {bytes} bytes in {median:?}");
    assert!(bytes <= LARGEST, "{kernels} kernels: a page of {bytes} bytes");
    page
}

/// Returns the median time to the first text in Chromium, in ms.
fn painted(page: &str) -> f64 {
    let mut times: Vec<f64> = (0..RUNS)
        .map(|_| {
            let seen = chromium::ask(page, [1440, 900], PAINTED);
            assert!(seen.console.is_empty(), "{:?}", seen.console);
            let times: Vec<f64> = serde_json::from_value(seen.answer).expect("times");
            times.into_iter().fold(0.0, f64::max)
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("{times:.0?}");
    times[RUNS / 2]
}
