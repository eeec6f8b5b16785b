//! Measures the HTML page of 500 synthetic series and a call tree of 2,000 paths: the time to write
//! it, its size and, if Chromium is installed, the time until it shows text. Fails if the page is
//! too large or shows text too late. Run it with `cargo bench -p gpu-time-report --features html`.
//! A folder after `--` receives this page and the pages of some made-up programs.

#[path = "../tests/support/chromium.rs"]
mod chromium;
#[allow(dead_code, reason = "another bench uses the rest")]
#[path = "../tests/support/synthetic.rs"]
mod synthetic;

use std::time::Instant;

const SERIES: usize = 500;
const PATHS: usize = 2000;
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
    let snapshot = synthetic::large(SERIES, PATHS);
    let mut rendered: Vec<_> = (0..RUNS)
        .map(|_| {
            let begin = Instant::now();
            let page = snapshot.to_html();
            let target = tempfile::NamedTempFile::new().expect("a temporary file");
            std::fs::write(target.path(), page).expect("it is written");
            begin.elapsed()
        })
        .collect();
    rendered.sort();
    let page = snapshot.to_html();
    println!(
        "{SERIES} series, {PATHS} paths: {} bytes, written in {:?}",
        page.len(),
        rendered[RUNS / 2]
    );
    assert!(page.len() <= LARGEST, "a page of {} bytes", page.len());
    if let Some(folder) = folder {
        let keep = |name: &str, page: &str| {
            let path = std::path::Path::new(&folder).join(name).with_extension("html");
            std::fs::write(path, page).expect("the page is kept");
        };
        keep("bench", &page);
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
    let mut painted: Vec<f64> = (0..RUNS)
        .map(|_| {
            let seen = chromium::ask(&page, [1440, 900], PAINTED);
            assert!(seen.console.is_empty(), "{:?}", seen.console);
            let times: Vec<f64> = serde_json::from_value(seen.answer).expect("times");
            times.into_iter().fold(0.0, f64::max)
        })
        .collect();
    painted.sort_by(f64::total_cmp);
    let median = painted[RUNS / 2];
    println!("first text painted after {median:.0} ms, median of {painted:.0?}");
    assert!(median <= LATEST, "first text after {median} ms");
}
