//! Measures the time and the peak memory of `gpu-time merge` on many reports.
//!
//! `cargo bench -p gpu-time-cli` writes 1,000 reports of 200 series and merges them five times. For
//! each merge it prints the wall time, the CPU time, which does not depend on the load of the
//! machine, and the peak memory. The times of each series are log-normal, rounded to the step of an
//! event clock. Each process has its own bias, as on a GPU.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;

#[path = "../tests/fixtures.rs"]
mod fixtures;
use fixtures::{gpu, report, series, site};

const REPORTS: u32 = 1_000;
const SITES: u32 = 200;
const SAMPLES: usize = 1_000;
const STEP_NS: f64 = 32.0;
const TARGET_TIME: Duration = Duration::from_secs(2);
const TARGET_MIB: u64 = 200;

fn main() {
    let folder = tempfile::tempdir().expect("create a temporary folder");
    // A fixed seed makes the reports the same in each run.
    let mut random = Rng::with_seed(1);
    let (mut bytes, mut buckets) = (0, 0);
    let files: Vec<_> = (0..REPORTS)
        .map(|pid| {
            let sites = (0..SITES).map(|line| {
                let median = 3e3 * 1.05f64.powi(line as i32 % 72);
                let times: Vec<f64> = (0..SAMPLES).map(|_| time(&mut random, median)).collect();
                let bias = 2_207.0 + STEP_NS * f64::from(pid % 5);
                let series = vec![series("cuda:0", &times, &[], bias)];
                buckets += series[0].histogram.iter().count();
                site(&format!("app::kernel_{line}"), line, series)
            });
            let report = report(pid, vec![gpu("cuda:0", "NVIDIA H200")], sites.collect());
            let path = folder.path().join(format!("report-{pid}.json"));
            let json = report.to_json();
            bytes += json.len();
            fs::write(&path, json).expect("write a report");
            path
        })
        .collect();
    println!(
        "{REPORTS} reports of {SITES} series of {} buckets, {} MB in total",
        buckets / (REPORTS * SITES) as usize,
        bytes / 1_000_000
    );
    for _ in 0..5 {
        let before = cpu_seconds();
        let (took, mib) = merge(&files, &folder.path().join("merged.json"));
        let (took, cpu) = (took.as_secs_f64(), cpu_seconds() - before);
        println!("merged in {took:.2} s, {cpu:.2} s of CPU time, peak memory {mib} MiB");
    }
    println!("target: {} s, {TARGET_MIB} MiB", TARGET_TIME.as_secs());
}

/// Runs `gpu-time merge` and returns its wall time and its peak memory in MiB.
fn merge(files: &[impl AsRef<Path>], output: &Path) -> (Duration, u64) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpu-time"));
    command.arg("merge").args(files.iter().map(AsRef::as_ref)).arg("--output").arg(output);
    let started = Instant::now();
    let mut child = command.stdout(Stdio::null()).spawn().expect("start the tool");
    let status = format!("/proc/{}/status", child.id());
    let mut mib = 0;
    let ended = loop {
        // The kernel keeps the peak of the resident set size.
        let text = fs::read_to_string(&status).unwrap_or_default();
        let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = peak.and_then(|peak| peak.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        mib = mib.max(kib.unwrap_or_default().div_ceil(1024));
        if let Some(status) = child.try_wait().expect("wait for the tool") {
            break status;
        }
        thread::sleep(Duration::from_millis(2));
    };
    assert!(ended.success(), "the merge succeeds");
    (started.elapsed(), mib)
}

/// Returns the CPU time of all child processes that have exited.
fn cpu_seconds() -> f64 {
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // `cutime` and `cstime` are fields 16 and 17. Counting starts after the name, which may contain
    // spaces.
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    let ticks: u64 = fields.skip(13).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    ticks as f64 / TICKS_PER_SECOND
}

/// Draws a log-normal time, rounded to the clock's step.
fn time(random: &mut Rng, median: f64) -> f64 {
    let normal: f64 = (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
    (median * (0.05 * normal).exp() / STEP_NS).round() * STEP_NS
}
