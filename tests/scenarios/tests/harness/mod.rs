//! Runs a scenario as a child process and checks everything that must hold for every run: the
//! process ends as expected, it writes a single complete report, and the report agrees with the
//! program's own tally.
//!
//! The child runs on the simulated driver or, with `GPU_TIME_TEST_DRIVER=real`, on this machine's
//! GPU. Tests that need the simulation are in modules named `simulated`, so that
//! `--skip simulated::` excludes them on a GPU and the test runner counts them as filtered out.

mod child;
pub mod chrome_trace;
mod driver;
pub mod report;
mod run;
pub mod timeline;
pub mod tree;

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use gpu_time_sim_cupti::SimCupti;
use gpu_time_sim_driver::SimDriver;
use gpu_time_sim_driver::trace::{Call, Trace};
use gpu_time_sim_nvml::{Script, SimNvml};
use gpu_time_sim_nvtx::{Event, SimNvtx};

use child::finish;
use chrome_trace::ChromeTrace;
pub use driver::{cupti_dir, is_real};
use driver::{install, sim};
use report::{Report, Series};
pub use run::Run;
use run::Tally;
use timeline::Timeline;

/// The folder for what CUPTI says of an empty kernel. It is empty before the run.
const CACHE: &str = "cache";
/// The file name of the NVML stand-in's trace, which lists locked and released clocks.
const NVML_TRACE: &str = "nvml";
/// The file name of the NVTX stand-in's log.
const RANGES: &str = "ranges";
/// Prefix of the Chrome trace's file name.
const CHROME_TRACE: &str = "chrome-trace-";

/// File name of the HTML report.
const PAGE: &str = "page.html";

/// The default time limit. It is longer than any scenario takes, except those that set another
/// limit or hang.
const LIMIT: Duration = Duration::from_secs(180);

/// A model with a small L2, which can be flushed quickly, for tests that run many programs.
pub const SMALL_L2: &str = "l2_bytes=1048576,l2_usable_bytes=983040";

/// The expected end of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Code(i32),
    Signal(i32),
}

/// A scenario, with the conditions under which it runs. Created by [`scenario`].
pub struct Scenario {
    arguments: Vec<String>,
    env: Vec<(String, String)>,
    driver: Driver,
    nvml: SimNvml,
    /// The stand-ins for CUPTI. The script of the last one applies to all.
    cuptis: Vec<SimCupti>,
    listens: bool,
    end: End,
    /// Expected number of tables on stderr: one at the end of the process and one for every
    /// `report()`.
    tables: usize,
    writes_files: bool,
    panics: bool,
    counts_agree: bool,
    untraced: bool,
    html: bool,
    chrome_trace: bool,
    /// The report target used in addition to the JSON file.
    target: String,
    limit: Duration,
    /// Prefix of the single expected warning about the process.
    warning: Option<&'static str>,
    /// Prefix of a warning about the process that depends on the moment at which it ends.
    permitted: Option<&'static str>,
    /// Prefixes of the expected `gpu-time:` lines on stderr.
    complaints: Vec<&'static str>,
}

enum Driver {
    Given,
    Simulated(SimDriver),
    /// No driver library at all.
    Absent,
}

/// Creates the scenario with this name and these arguments.
pub fn scenario(name: &str, arguments: &[&str]) -> Scenario {
    let arguments = [name].iter().chain(arguments).map(|&text| text.to_owned()).collect();
    Scenario {
        arguments,
        env: Vec::new(),
        driver: Driver::Given,
        nvml: SimNvml::new(Script::calm(8)),
        cuptis: Vec::new(),
        listens: false,
        end: End::Code(0),
        tables: 1,
        writes_files: true,
        panics: false,
        counts_agree: true,
        untraced: false,
        html: false,
        chrome_trace: false,
        target: "table".to_owned(),
        limit: LIMIT,
        warning: None,
        permitted: None,
        complaints: Vec::new(),
    }
}

impl Scenario {
    /// Runs on the simulated driver, set up by `configure`. Panics if scenarios run on the machine's GPU.
    pub fn simulated(mut self, configure: impl FnOnce(SimDriver) -> SimDriver) -> Self {
        assert!(
            !is_real(),
            "this test needs the simulated driver: exclude it with `--skip simulated::`"
        );
        self.driver = Driver::Simulated(configure(sim()));
        self
    }

    /// Runs on a simulated driver that lacks one function.
    pub fn without(self, symbol: &str) -> Self {
        self.simulated(|_| install(symbol, &[symbol]))
    }

    /// Scripts the NVML stand-in.
    pub fn nvml(mut self, script: Script) -> Self {
        self.nvml = SimNvml::new(script);
        self
    }

    /// Runs with CUPTI: the stand-in on the simulated driver, or the machine's own CUPTI on a GPU.
    pub fn with_cupti(self) -> Self {
        if is_real() { self } else { self.on_cupti(SimCupti::default()) }
    }

    /// Runs with CUPTI, which records the whole run.
    pub fn recorded(self) -> Self {
        self.with_cupti().env("GPU_TIME_RECORD", "on")
    }

    /// Runs with CUPTI, which records phases: one in five milliseconds.
    pub fn in_phases(self) -> Self {
        self.with_cupti().env("GPU_TIME_RECORD", "1ms/5ms")
    }

    /// Runs with this stand-in for CUPTI, and those of earlier calls.
    pub fn on_cupti(mut self, cupti: SimCupti) -> Self {
        assert!(
            !is_real(),
            "this test needs the stand-in for CUPTI: exclude it with `--skip simulated::`"
        );
        self.cuptis.push(cupti);
        self
    }

    /// Runs under a tool that listens to NVTX ranges.
    pub fn listens(mut self) -> Self {
        assert!(
            !is_real(),
            "this test needs the stand-in for a tool: exclude it with `--skip simulated::`"
        );
        self.listens = true;
        self
    }

    /// Runs without a loadable NVML.
    pub fn without_nvml(self) -> Self {
        let sim = install("no-nvml", &[]);
        SimNvml::install_broken(sim.dir()).expect("the broken library is installed");
        self.simulated(|_| sim)
    }

    /// Expects a single warning about the process, with this prefix.
    pub fn warns(mut self, warning: &'static str) -> Self {
        self.warning = Some(warning);
        self
    }

    /// Permits a warning about the process, with this prefix.
    pub fn may_warn(mut self, warning: &'static str) -> Self {
        self.permitted = Some(warning);
        self
    }

    /// Runs without a driver.
    pub fn without_driver(mut self) -> Self {
        self.driver = Driver::Absent;
        self
    }

    /// Expects another `gpu-time:` line on stderr, with this prefix.
    pub fn complains(mut self, complaint: &'static str) -> Self {
        self.complaints.push(complaint);
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn exits(mut self, code: i32) -> Self {
        self.end = End::Code(code);
        self
    }

    pub fn killed_by(mut self, signal: i32) -> Self {
        self.end = End::Signal(signal);
        self
    }

    /// Expects `times` calls to `report()` in addition to the report at the end.
    pub fn reports(mut self, times: usize) -> Self {
        self.tables += times;
        self
    }

    /// Expects a table, no file, and a line that says why, as of a program that calls no timed function.
    pub fn calls_nothing(self) -> Self {
        self.prints_only().complains("gpu-time: no report was written to `")
    }

    /// Expects a table but no file.
    pub fn prints_only(mut self) -> Self {
        self.writes_files = false;
        self
    }

    /// Expects no report at all.
    pub fn reports_nothing(self) -> Self {
        self.prints_nothing().prints_only()
    }

    /// Expects a file but no table.
    pub fn prints_nothing(mut self) -> Self {
        self.tables = 0;
        self
    }

    /// Expects a panic message on stderr.
    pub fn panics(mut self) -> Self {
        self.panics = true;
        self
    }

    /// Allows the program to continue counting after it has printed its tally, or to count spans that
    /// sampling has not chosen.
    pub fn keeps_counting(mut self) -> Self {
        self.counts_agree = false;
        self
    }

    /// Also writes the HTML report.
    pub fn html(mut self) -> Self {
        self.html = true;
        self
    }

    /// Runs without the simulated driver's trace, for long programs or large numbers of programs.
    pub fn untraced(mut self) -> Self {
        self.untraced = true;
        self
    }

    /// Also writes a Chrome trace.
    pub fn chrome_trace(mut self) -> Self {
        self.chrome_trace = true;
        self
    }

    /// Sends the report to `target` instead of a table on stderr.
    pub fn target(mut self, target: &str) -> Self {
        self.target = target.to_owned();
        self
    }

    /// Sets the time limit for the program.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Runs the scenario and checks everything that must hold for every run.
    pub fn run(self) -> Run {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let mut command = self.command(dir.path());
        command.env("GPU_TIME_NOTES", "all");
        command.env("GPU_TIME_TEST_LOCK_ORDER", "asserted");
        if !self.untraced {
            command.env("GPU_TIME_TEST_SIM_TRACE", dir.path().join("trace-%p"));
        }
        // Runs take turns on a GPU, because a concurrent process would distort the times.
        static TURN: Mutex<()> = Mutex::new(());
        let turn = is_real().then(|| TURN.lock().unwrap_or_else(PoisonError::into_inner));
        let (status, pid, stdout, stderr) = finish(command, self.limit);
        drop(turn);
        let context = || format!("`{}`: {status}\n{stdout}{stderr}", self.arguments.join(" "));
        let end = match (status.code(), status.signal()) {
            (Some(code), _) => End::Code(code),
            (None, signal) => End::Signal(signal.unwrap_or_default()),
        };
        assert_eq!(end, self.end, "{}", context());
        assert_eq!(stderr.contains("panicked at"), self.panics, "{}", context());
        let tables = stderr.lines().filter(|line| line.starts_with("gpu-time 0")).count();
        assert_eq!(tables, self.tables, "{}", context());
        let complaints: Vec<&str> =
            stderr.lines().filter(|line| line.starts_with("gpu-time:")).collect();
        assert_eq!(complaints.len(), self.complaints.len(), "{}", context());
        let mut expected = complaints.iter().zip(&self.complaints);
        assert!(expected.all(|(line, prefix)| line.starts_with(prefix)), "{}", context());

        let tally = stdout.lines().last().unwrap_or_default();
        let tally: Tally =
            serde_json::from_str(tally).unwrap_or_else(|error| panic!("{error}: {}", context()));
        let chrome_trace = self.chrome_trace.then(|| {
            let path = dir.path().join(format!("{CHROME_TRACE}{pid}.json"));
            let text = std::fs::read_to_string(path).expect("the program writes a Chrome trace");
            ChromeTrace::parse(&text, pid)
        });
        let mut reports = reports(dir.path());
        let mut report = reports.remove(&pid);
        if let Some((report, permitted)) = report.as_mut().zip(self.permitted) {
            report.process.warnings.retain(|warning| !warning.starts_with(permitted));
        }
        if self.writes_files {
            let report = report.as_ref().unwrap_or_else(|| panic!("no report: {}", context()));
            assert_eq!(report.process.pid, pid);
            report.check_except(self.warning);
            if self.counts_agree {
                tally.check(report);
            }
        } else {
            assert!(report.is_none(), "{}", context());
        }
        let trace = match Trace::read(&dir.path().join(format!("trace-{pid}"))) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Trace::default(),
            trace => trace.expect("a complete trace"),
        };
        // The runtime must never use destroyed objects.
        let notes: Vec<_> = trace.notes("use_after_destroy").collect();
        assert!(notes.is_empty(), "{notes:?}, {}", context());
        // The runtime must not call a driver that has shut down. A program that is still running at
        // that time may do so.
        let notes: Vec<_> = trace.notes("exited_call").filter(|_| self.counts_agree).collect();
        assert!(notes.is_empty(), "{notes:?}, {}", context());
        // The real driver dereferences handles that were destroyed together with their context. The
        // runtime may only call `cuCtxGetId`, to find out whether a context has been destroyed.
        const CONTEXT_IS_DESTROYED: i32 = 709;
        let is_late = |call: &&Call| {
            call.result == CONTEXT_IS_DESTROYED && !call.scripted && call.name != "cuCtxGetId"
        };
        let late: Vec<_> = trace.calls().filter(is_late).collect();
        assert!(late.is_empty(), "{late:?}, {}", context());
        if let Some(report) = &report
            && self.counts_agree
            && !self.untraced
            && !is_real()
        {
            Timeline::of(&trace, &tally.kernels).check(report);
        }
        let nvml = std::fs::read_to_string(dir.path().join(NVML_TRACE)).unwrap_or_default();
        let nvml = nvml.lines().map(str::to_owned).collect();
        let ranges = Event::read_all(&dir.path().join(RANGES));
        let page = std::fs::read_to_string(dir.path().join(PAGE)).ok();
        let others = reports.into_values().collect();
        Run { chrome_trace, report, page, others, tally, stderr, trace, nvml, ranges }
    }

    fn command(&self, dir: &Path) -> Command {
        let mut command = Command::new(program());
        command.args(&self.arguments);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("GPU_TIME") {
                command.env_remove(name);
            }
        }
        // A calibration that the user has stored would change the bias.
        command.env("XDG_CACHE_HOME", dir.join(CACHE));
        let dir_name = dir.display();
        let mut targets = format!("{},json:{dir_name}/report-%p.json", self.target);
        if self.html {
            targets += &format!(",html:{dir_name}/{PAGE}");
        }
        if self.chrome_trace {
            targets += &format!(",trace:{dir_name}/{CHROME_TRACE}%p.json");
        }
        command.env("GPU_TIME_REPORT", targets);
        match &self.driver {
            Driver::Given if is_real() => {}
            Driver::Given => {
                sim().apply(&mut command);
            }
            Driver::Simulated(sim) => {
                sim.apply(&mut command);
            }
            Driver::Absent => {
                command.env_remove("LD_LIBRARY_PATH");
            }
        }
        for cupti in &self.cuptis {
            cupti.apply(&cupti_dir(cupti), &mut command);
        }
        self.nvml.apply(&mut command, &dir.join(NVML_TRACE));
        if self.listens {
            SimNvtx::apply(&mut command, &dir.join(RANGES)).expect("the stand-in is built");
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// Returns the path of the program.
pub fn program() -> PathBuf {
    std::env::var_os("GPU_TIME_TEST_SCENARIO_BIN")
        .map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_scenario")), PathBuf::from)
}

/// Returns the reports in a folder, by process id.
fn reports(dir: &Path) -> BTreeMap<u32, Report> {
    let files = std::fs::read_dir(dir).expect("the folder exists");
    let names = files.map(|file| file.expect("the entry is readable").file_name());
    names
        .filter(|name| {
            let name = name.to_string_lossy();
            let is_other = [CACHE, NVML_TRACE, PAGE, RANGES].contains(&&*name);
            !is_other && !name.starts_with("trace-") && !name.starts_with(CHROME_TRACE)
        })
        .map(|name| {
            // Any other name, such as that of a temporary file, makes the test fail.
            let name = name.to_string_lossy().into_owned();
            let pid = name.strip_prefix("report-").and_then(|name| name.strip_suffix(".json"));
            let pid = pid
                .and_then(|pid| pid.parse().ok())
                .unwrap_or_else(|| panic!("unexpected file `{name}`"));
            let text = std::fs::read_to_string(dir.join(&name)).expect("the report is readable");
            (pid, Report::parse(&text))
        })
        .collect()
}

/// Asserts that a raw time fits this amount of work: on a GPU, the work plus at most 20 µs. In the
/// simulation, the harness has already compared every sample with the driver's trace.
#[track_caller]
pub fn assert_lasts(row: &Series, ns: f64) {
    let raw = row.raw();
    assert!(raw.min >= ns && raw.median <= ns + 20_000.0, "{ns}: {row:?}");
}
