//! Measurements with Nsight Compute, without its clock control: the durations of copies with its
//! cache flush, and the bytes written back during a read-only kernel.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use gpu_time_kernels::workloads;

use crate::case::{CASES, Case};
use crate::child;
use crate::failure::Failure;
use crate::figure::Figure;
use crate::gpu::Gpu;
use crate::work::Work;

const LAUNCHES: usize = 15;
const DURATION: &str = "gpu__time_duration.sum";
const WRITTEN: &str = "dram__bytes_write.sum";
/// The units printed by ncu, in nanoseconds or bytes.
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

/// The case that shows how much ncu adds to each kernel's duration, which depends on the machine: on an H200, spins of
/// 1 to 50 µs read 0.70 to 0.73 µs more than CUPTI says, and an empty kernel as much.
pub const REFERENCE: &str = "empty";

/// Returns the cases that ncu can measure, which are the cold ones, and the [`REFERENCE`].
fn cases() -> impl Iterator<Item = &'static Case> {
    CASES.iter().filter(|case| case.is_cold() || case.name == REFERENCE)
}

/// Runs under ncu: each case in turn, without any other launch of the same kernel.
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

/// Measures the duration of each case. Returns `Ok(None)` if ncu is not installed.
pub fn measure(folder: &Path) -> Result<Option<Vec<(&'static str, Figure)>>, Failure> {
    let expected = cases().count() * LAUNCHES;
    let kernels = format!("regex:^({}|{})$", workloads::EMPTY, workloads::COPY_F4);
    let query = Query { role: &["plain"], metric: DURATION, caches: "all", kernels: &kernels };
    let Some(durations) = query.run(folder, expected)? else { return Ok(None) };
    let figures = durations.chunks(LAUNCHES).map(|case| Figure::of(case.to_vec()));
    Ok(Some(cases().map(|case| case.name).zip(figures.flatten()).collect()))
}

/// Measures the bytes written to memory during each of `expected` reads, without ncu's cache
/// control. Returns `Ok(None)` if ncu is not installed.
pub fn dram_writes(folder: &Path, expected: usize) -> Result<Option<Vec<f64>>, Failure> {
    let role = &["flush-methods", "plain"];
    Query { role, metric: WRITTEN, caches: "none", kernels: workloads::READ_F4 }
        .run(folder, expected)
}

/// A metric for some kernels of this program in a role, with ncu's setting for the caches.
struct Query<'a> {
    role: &'a [&'a str],
    metric: &'a str,
    caches: &'a str,
    /// A name, or `regex:` and an expression.
    kernels: &'a str,
}

impl Query<'_> {
    /// Runs the program under ncu. Returns the metric for each launch of the kernels.
    fn run(&self, folder: &Path, expected: usize) -> Result<Option<Vec<f64>>, Failure> {
        let Some(ncu) = find() else { return Ok(None) };
        let log = folder.join("ncu.csv");
        let mut command = Command::new(ncu);
        command.args(["--csv", "--page", "raw", "--print-units", "base", "--metrics", self.metric]);
        command.args(["--cache-control", self.caches, "--clock-control", "none"]);
        command.args(["--kernel-name", self.kernels, "--log-file"]).arg(&log);
        command.arg(std::env::current_exe()?).args(self.role);
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

/// Parses ncu's raw CSV: names, units, then one line per launch, among messages that start with
/// `==`. Returns the metric's values in nanoseconds or bytes, in launch order.
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
    fn values_are_converted_from_printed_unit() {
        assert_eq!(durations(&page("ns", ["9,970", "10016"])).unwrap(), [9_970.0, 10_016.0]);
        assert_eq!(durations(&page("us", ["9.97", "10.016"])).unwrap(), [9_970.0, 10_016.0]);
    }

    #[test]
    fn invalid_pages_are_errors() {
        assert!(durations("==ERROR== no permission\n").is_err());
        assert!(durations(&page("cycle", ["1", "2"])).is_err());
        assert!(durations(&page("ns", ["1", "n/a"])).is_err());
    }
}
