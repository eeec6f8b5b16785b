//! How long `gpu-time merge` takes over many reports, and how much memory at most.
//!
//! `cargo bench -p gpu-time-cli` makes 1,000 reports of 200 series, merges them five times, and prints
//! both, and the time of all cores together, which does not depend on what else runs. The times of each
//! series are log-normal to the step of an event clock; every process has a bias of its own, as on a GPU.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;

#[path = "../tests/made.rs"]
mod made;
use made::{gpu, report, series, site};

const REPORTS: u32 = 1_000;
const SITES: u32 = 200;
const SAMPLES: usize = 1_000;
const STEP_NS: f64 = 32.0;
const BOUND: (Duration, u64) = (Duration::from_secs(2), 200);

fn main() {
    let folder = tempfile::tempdir().expect("a folder for the reports");
    // The reports are the same every time.
    let mut random = Rng::with_seed(1);
    let (mut bytes, mut buckets) = (0, 0);
    let files: Vec<_> = (0..REPORTS)
        .map(|pid| {
            let sites = (0..SITES).map(|line| {
                let median = 3e3 * 1.05f64.powi(line as i32 % 72);
                let times: Vec<f64> = (0..SAMPLES).map(|_| time(&mut random, median)).collect();
                let bias = 2_207.0 + STEP_NS * f64::from(pid % 5);
                let series = vec![series("cuda:0", &times, &[], bias)];
                buckets += series[0].histogram().iter().count();
                site(&format!("app::kernel_{line}"), line, series)
            });
            let report = report(pid, vec![gpu("cuda:0", "NVIDIA H200")], sites.collect());
            let path = folder.path().join(format!("report-{pid}.json"));
            let json = report.to_json();
            bytes += json.len();
            fs::write(&path, json).expect("a report is written");
            path
        })
        .collect();
    println!(
        "{REPORTS} reports of {SITES} series of {} buckets, {} MB in all",
        buckets / (REPORTS * SITES) as usize,
        bytes / 1_000_000
    );
    for _ in 0..5 {
        let before = cpu_seconds();
        let (took, mib) = merge(&files, &folder.path().join("merged.json"));
        let (took, cpu) = (took.as_secs_f64(), cpu_seconds() - before);
        println!("merged in {took:.2} s, {cpu:.2} s of all cores, at most {mib} MiB");
    }
    println!("wanted: {} s, {} MiB", BOUND.0.as_secs(), BOUND.1);
}

/// How long it took, and the most memory that was seen.
fn merge(files: &[impl AsRef<Path>], output: &Path) -> (Duration, u64) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpu-time"));
    command.arg("merge").args(files.iter().map(AsRef::as_ref)).arg("--output").arg(output);
    let started = Instant::now();
    let mut child = command.stdout(Stdio::null()).spawn().expect("the tool starts");
    let status = format!("/proc/{}/status", child.id());
    let mut mib = 0;
    let ended = loop {
        // The most so far, as the kernel keeps it.
        let text = fs::read_to_string(&status).unwrap_or_default();
        let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = peak.and_then(|peak| peak.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        mib = mib.max(kib.unwrap_or_default().div_ceil(1024));
        if let Some(ended) = child.try_wait().expect("it is our child") {
            break ended;
        }
        thread::sleep(Duration::from_millis(2));
    };
    assert!(ended.success(), "the tool ends well");
    (started.elapsed(), mib)
}

/// What the children that have ended took of the cores.
fn cpu_seconds() -> f64 {
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Fields are counted after the name, which may hold spaces: the 16th and 17th of all.
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    let ticks: u64 = fields.skip(13).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    ticks as f64 / TICKS_PER_SECOND
}

/// A time near the median, longer ones more often far from it.
fn time(random: &mut Rng, median: f64) -> f64 {
    let normal: f64 = (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
    (median * (0.05 * normal).exp() / STEP_NS).round() * STEP_NS
}
