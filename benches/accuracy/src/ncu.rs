//! What Nsight Compute says: of the copies after it has emptied the caches, and of what a kernel that only
//! reads causes to be written back; clocks left alone.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use gpu_time_kernels::workloads;

use crate::Failure;
use crate::case::{CASES, Case};
use crate::child;
use crate::figure::Figure;
use crate::gpu::Gpu;
use crate::work::Work;

/// What it adds to the duration of every kernel, in nanoseconds: it reads spins of 1 to 50 µs as 0.70
/// to 0.73 µs longer than CUPTI does.
pub const EXTRA_NS: f64 = 700.0;

const LAUNCHES: usize = 15;
const DURATION: &str = "gpu__time_duration.sum";
const WRITTEN: &str = "dram__bytes_write.sum";
/// The units that it prints, in ours.
const UNITS: &[(&str, f64)] = &[
    ("ns", 1.0),
    ("nsecond", 1.0),
    ("us", 1e3),
    ("usecond", 1e3),
    ("ms", 1e6),
    ("msecond", 1e6),
    ("byte", 1.0),
    ("Kbyte", 1e3),
    ("Mbyte", 1e6),
];
const LIMIT: Duration = Duration::from_secs(30);

/// The cases that it can say something of.
fn cases() -> impl Iterator<Item = &'static Case> {
    CASES.iter().filter(|case| case.is_cold())
}

/// What runs under it: each case in turn, and nothing else from the same kernel.
pub fn plain() -> Result<(), Failure> {
    let gpu = Gpu::new()?;
    gpu.ramp()?;
    for case in cases() {
        let mut work = Work::new(&gpu, case.kind)?;
        for _ in 0..LAUNCHES {
            work.launch(&gpu.stream)?;
        }
        gpu.stream.synchronize()?;
    }
    Ok(())
}

/// Duration of each case, as it says it. `Ok(None)` without ncu on this machine.
pub fn measure(folder: &Path) -> Result<Option<Vec<(&'static str, Figure)>>, Failure> {
    let expected = cases().count() * LAUNCHES;
    let watched = Watched { metric: DURATION, caches: "all", kernel: workloads::COPY_F4 };
    let Some(durations) = watched.values(folder, expected)? else { return Ok(None) };
    let figures = durations.chunks(LAUNCHES).map(|case| Figure::of(case.to_vec()));
    Ok(Some(cases().map(|case| case.name).zip(figures.flatten()).collect()))
}

/// The bytes that memory was written while each of so many reads ran, caches left alone. `Ok(None)`
/// without ncu on this machine.
pub fn dram_writes(folder: &Path, expected: usize) -> Result<Option<Vec<f64>>, Failure> {
    Watched { metric: WRITTEN, caches: "none", kernel: workloads::READ_F4 }.values(folder, expected)
}

/// What it is asked for.
struct Watched {
    metric: &'static str,
    caches: &'static str,
    kernel: &'static str,
}

impl Watched {
    /// The metric of each launch of the kernel that this program makes in its role `plain`.
    fn values(&self, folder: &Path, expected: usize) -> Result<Option<Vec<f64>>, Failure> {
        let Some(ncu) = find() else { return Ok(None) };
        let log = folder.join("ncu.csv");
        let mut command = Command::new(ncu);
        command.args(["--csv", "--page", "raw", "--print-units", "base", "--metrics", self.metric]);
        command.args(["--cache-control", self.caches, "--clock-control", "none"]);
        command.args(["--kernel-name", self.kernel, "--log-file"]).arg(&log);
        command.arg(std::env::current_exe()?).arg("plain");
        child::run(&mut command, LIMIT)?;
        let values = values(&std::fs::read_to_string(log)?, self.metric)?;
        if values.len() != expected {
            return Err(format!("ncu saw {} launches, not {expected}", values.len()).into());
        }
        Ok(Some(values))
    }
}

fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/local/cuda/bin".into()])
        .map(|folder| folder.join("ncu"))
        .find(|file| file.is_file())
}

/// The metric's values in nanoseconds or bytes, in the order of the launches, from a page of raw CSV:
/// names, then units, then a line for each launch, among lines of ncu's own that begin with `==`.
fn values(text: &str, metric: &str) -> Result<Vec<f64>, Failure> {
    let table: String =
        text.lines().filter(|line| line.starts_with('"')).flat_map(|line| [line, "\n"]).collect();
    let mut reader = csv::ReaderBuilder::new().from_reader(table.as_bytes());
    let column = reader.headers()?.iter().position(|name| name == metric);
    let column = column.ok_or_else(|| format!("ncu printed no `{metric}`: {text}"))?;
    let mut lines = reader.records();
    let units = lines.next().ok_or("ncu printed no units")??;
    let printed = units.get(column).unwrap_or_default();
    let known = UNITS.iter().find(|(name, _)| *name == printed);
    let (_, unit) = known.ok_or_else(|| format!("ncu printed `{metric}` in `{printed}`"))?;
    lines
        .map(|line| {
            let line = line?;
            let value = line.get(column).unwrap_or_default().replace(',', "");
            let value: f64 = value.parse().map_err(|_| format!("ncu printed `{value}`"))?;
            Ok(value * unit)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(unit: &str, values: [&str; 2]) -> String {
        let [first, second] = values;
        format!(
            "==PROF== Connected to process 1234 (/tmp/accuracy)\n\
             ==PROF== Profiling \"copy_f4\" - 0: 0%....100% - 1 pass\n\
             ==PROF== Disconnected from process 1234\n\
             \"ID\",\"Process ID\",\"Kernel Name\",\"Grid Size\",\"{DURATION}\"\n\
             \"\",\"\",\"\",\"\",\"{unit}\"\n\
             \"0\",\"1234\",\"copy_f4\",\"(528, 1, 1)\",\"{first}\"\n\
             \"1\",\"1234\",\"copy_f4\",\"(528, 1, 1)\",\"{second}\"\n"
        )
    }

    fn durations(text: &str) -> Result<Vec<f64>, Failure> {
        values(text, DURATION)
    }

    #[test]
    fn durations_are_read_in_the_unit_that_stands_above_them() {
        assert_eq!(durations(&page("ns", ["9,970", "10016"])).unwrap(), [9_970.0, 10_016.0]);
        assert_eq!(durations(&page("us", ["9.97", "10.016"])).unwrap(), [9_970.0, 10_016.0]);
    }

    #[test]
    fn what_is_not_such_a_page_is_an_error() {
        assert!(durations("==ERROR== no permission\n").is_err());
        assert!(durations(&page("cycle", ["1", "2"])).is_err());
        assert!(durations(&page("ns", ["1", "n/a"])).is_err());
    }
}
