//! Shows build costs: where the time goes when the first example is built, and what each feature
//! adds to an application's build.
//!
//! ```text
//! cargo run -p gpu-time-tests --example build_cost
//! ```
//!
//! Builds everything from scratch in a temporary folder, which takes minutes. Needs Linux and
//! `size`, which comes with the C compiler. Compare processor time between runs, because elapsed
//! time also depends on other load on the machine.

use std::error::Error;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The number of crates listed by name.
const SLOWEST: usize = 12;

/// One build from scratch.
struct Build {
    /// The number of packages compiled.
    crates: usize,
    elapsed: Duration,
    /// Processor time used by cargo and everything that it started.
    busy: Duration,
    executable: PathBuf,
}

fn main() -> Outcome<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = tempfile::tempdir()?;
    let cores = std::thread::available_parallelism()?;
    println!("on {cores} cores, downloads excluded, release profile\n");

    let quickstart = build(&root, target.path(), &["--example", "quickstart", "--timings"])?;
    println!(
        "the example `quickstart`: {} crates, {:.1} s, {:.1} s of processor time",
        quickstart.crates,
        quickstart.elapsed.as_secs_f64(),
        quickstart.busy.as_secs_f64()
    );
    let mut units = units(&target.path().join("cargo-timings/cargo-timing.html"))?;
    units.sort_by(|one, other| other.1.total_cmp(&one.1));
    for (name, seconds) in units.iter().take(SLOWEST) {
        println!("  {seconds:5.1} s  {name}");
    }
    let rest: f64 = units.iter().skip(SLOWEST).map(|(_, seconds)| seconds).sum();
    println!("  {rest:5.1} s  {} others", units.len().saturating_sub(SLOWEST));

    println!("\nan application with cudarc, serde, serde_json, tempfile and thiserror:");
    println!("{:10}{:>8}{:>10}{:>16}{:>15}", "", "crates", "elapsed", "processor time", ".text");
    let application = root.join("tests/rebuilds");
    for (name, features) in [("off", ""), ("`enabled`", "gpu-time"), ("`full`", "gpu-time-full")] {
        let target = tempfile::tempdir()?;
        let build = build(&application, target.path(), &["--features", features])?;
        println!(
            "{name:10}{:8}{:8.1} s{:14.1} s{:9} bytes",
            build.crates,
            build.elapsed.as_secs_f64(),
            build.busy.as_secs_f64(),
            text_bytes(&build.executable)?
        );
    }
    Ok(())
}

/// Builds a package from scratch.
fn build(package: &Path, target: &Path, arguments: &[&str]) -> Outcome<Build> {
    let cargo = || {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.current_dir(package).env("CARGO_TARGET_DIR", target);
        cargo.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
        cargo
    };
    succeed(cargo().args(["fetch", "--locked", "--quiet"]))?;
    let (begin, busy) = (Instant::now(), busy_of_children()?);
    let mut command = cargo();
    command.args(["build", "--release", "--locked", "--quiet", "--message-format=json"]);
    let output = succeed(command.args(arguments))?;
    let (elapsed, busy) = (begin.elapsed(), busy_of_children()? - busy);

    let messages: Vec<Value> =
        output.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let built = messages.iter().filter(|message| message["reason"] == "compiler-artifact");
    let mut packages: Vec<&str> =
        built.filter_map(|message| message["package_id"].as_str()).collect();
    packages.sort_unstable();
    packages.dedup();
    let executable = messages.iter().find_map(|message| message["executable"].as_str());
    let executable = executable.ok_or("cargo built no executable")?.into();
    Ok(Build { crates: packages.len(), elapsed, busy, executable })
}

/// Returns the name of each unit built by cargo and the seconds that it took, from the page written
/// by `--timings`.
fn units(page: &Path) -> Outcome<Vec<(String, f64)>> {
    let page = fs::read_to_string(page)?;
    let data = page.split_once("const UNIT_DATA = ").ok_or("cargo's timings have changed")?.1;
    let units = serde_json::Deserializer::from_str(data).into_iter::<Vec<Value>>().next();
    let units = units.ok_or("cargo's timings are empty")??;
    let unit = |unit: &Value| {
        let (name, target) = (unit["name"].as_str()?, unit["target"].as_str()?);
        Some((format!("{name}{target}"), unit["duration"].as_f64()?))
    };
    units.iter().map(unit).collect::<Option<_>>().ok_or("cargo's timings have changed".into())
}

/// Returns the size of a program's machine code.
fn text_bytes(program: &Path) -> Outcome<u64> {
    let sections = succeed(Command::new("size").args([OsStr::new("-A"), program.as_os_str()]))?;
    let mut words = sections.lines().map(str::split_whitespace);
    let text = words.find_map(|mut words| (words.next() == Some(".text")).then(|| words.next()));
    Ok(text.flatten().ok_or("`size` shows no `.text`")?.parse()?)
}

/// Returns the processor time of all ended processes started by this one.
fn busy_of_children() -> Outcome<Duration> {
    let status = fs::read_to_string("/proc/self/stat")?;
    // The name in parentheses may contain spaces. `cutime` and `cstime` are fields 16 and 17.
    let (_, fields) = status.rsplit_once(") ").ok_or("no name in `/proc/self/stat`")?;
    let ticks = fields.split(' ').skip(13).take(2).map(str::parse::<u64>);
    // Linux counts in hundredths of a second.
    Ok(Duration::from_millis(10 * ticks.sum::<Result<u64, _>>()?))
}

fn succeed(command: &mut Command) -> Outcome<String> {
    let output = command.output()?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
