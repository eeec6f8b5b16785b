//! Runs a scenario as a child process, and checks what holds for every one: the process ends as the
//! program wants it, and the report is one, whole, and in accord with the program's own book.
//!
//! The child runs under the simulated driver, or with `GPU_TIME_TEST_DRIVER=real` on this machine's
//! GPU. Tests that need the simulation stand in modules named `simulated`, so that a run on a GPU
//! leaves them out by `--skip simulated::` and the test runner counts them as filtered out.

mod child;
pub mod events;
pub mod report;
mod run;
pub mod timeline;

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use gpu_time_sim_driver::SimDriver;
use gpu_time_sim_driver::trace::{Call, Trace};
use gpu_time_sim_nvml::{Script, SimNvml};

use child::finish;
use events::Events;
use report::{Report, Series};
use run::Book;
pub use run::Run;
use timeline::Timeline;

/// What was locked and given back is written to it.
const NVML_TRACE: &str = "nvml";
/// So begins the name of the trace for viewers.
const EVENTS: &str = "events-";

/// The report for a browser.
const PAGE: &str = "page.html";

/// No scenario takes that long, unless it says so or hangs.
const LIMIT: Duration = Duration::from_secs(60);

/// A model that is quick to flush, for programs of which many are run.
pub const SMALL_L2: &str = "l2_bytes=1048576,l2_usable_bytes=983040";

/// Whether scenarios run on this machine's GPU.
pub fn is_real() -> bool {
    match std::env::var("GPU_TIME_TEST_DRIVER").as_deref() {
        Ok("real") => true,
        Ok("simulated") | Err(_) => false,
        Ok(other) => panic!("`GPU_TIME_TEST_DRIVER`: `{other}` is neither `real` nor `simulated`"),
    }
}

/// How the process is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Code(i32),
    Signal(i32),
}

/// A scenario and how it is to be run. Made by [`scenario`].
pub struct Scenario {
    arguments: Vec<String>,
    env: Vec<(String, String)>,
    driver: Driver,
    nvml: SimNvml,
    end: End,
    /// Tables on stderr: one for the end of the process, and one for every `report()`.
    tables: usize,
    panics: bool,
    counts_agree: bool,
    untraced: bool,
    html: bool,
    shows: bool,
    /// Where the report goes beside its JSON.
    target: String,
    limit: Duration,
    /// How the one warning about the process begins.
    warning: Option<&'static str>,
    /// How the one line of gpu-time's own on stderr begins.
    complaint: Option<&'static str>,
}

enum Driver {
    Given,
    Simulated(SimDriver),
    /// None at all.
    Absent,
}

/// The simulated driver and the stand-in for NVML, installed once for all tests.
fn sim() -> SimDriver {
    static SIM: OnceLock<SimDriver> = OnceLock::new();
    SIM.get_or_init(|| install("driver", &[])).clone()
}

/// Installs both in a folder of this name, the driver without some functions.
fn install(name: &str, absent: &[&str]) -> SimDriver {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("scenarios").join(name);
    SimNvml::install(&dir).expect("the stand-in for NVML is installed");
    SimDriver::install_without(dir, absent).expect("the simulated driver is installed")
}

/// The scenario of this name, with these arguments.
pub fn scenario(name: &str, arguments: &[&str]) -> Scenario {
    let arguments = [name].iter().chain(arguments).map(|&text| text.to_owned()).collect();
    Scenario {
        arguments,
        env: Vec::new(),
        driver: Driver::Given,
        nvml: SimNvml::new(Script::calm(8)),
        end: End::Code(0),
        tables: 1,
        panics: false,
        counts_agree: true,
        untraced: false,
        html: false,
        shows: false,
        target: "table".to_owned(),
        limit: LIMIT,
        warning: None,
        complaint: None,
    }
}

impl Scenario {
    /// Runs it under the simulated driver, set up in this way, whatever the machine has.
    pub fn simulated(mut self, configure: impl FnOnce(SimDriver) -> SimDriver) -> Self {
        assert!(
            !is_real(),
            "this test is for the simulated driver: `--skip simulated::` leaves it out"
        );
        self.driver = Driver::Simulated(configure(sim()));
        self
    }

    /// Runs it under a simulated driver that lacks a function.
    pub fn without(self, symbol: &str) -> Self {
        self.simulated(|_| install(symbol, &[symbol]))
    }

    /// Scripts the stand-in for NVML, beside the simulated driver.
    pub fn nvml(mut self, script: Script) -> Self {
        self.nvml = SimNvml::new(script);
        self
    }

    /// Runs it where NVML cannot be loaded.
    pub fn without_nvml(self) -> Self {
        let sim = install("no-nvml", &[]);
        SimNvml::install_broken(sim.dir()).expect("it is installed");
        self.simulated(|_| sim)
    }

    /// The report has one warning about the process, which begins so.
    pub fn warns(mut self, warning: &'static str) -> Self {
        self.warning = Some(warning);
        self
    }

    /// Runs it where there is no driver.
    pub fn without_driver(mut self) -> Self {
        self.driver = Driver::Absent;
        self
    }

    /// One line of gpu-time's own on stderr begins so.
    pub fn complains(mut self, complaint: &'static str) -> Self {
        self.complaint = Some(complaint);
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

    /// It calls `report()` so many times beside the report at the end.
    pub fn reports(mut self, times: usize) -> Self {
        self.tables += times;
        self
    }

    /// It makes no report at all.
    pub fn reports_nothing(mut self) -> Self {
        self.tables = 0;
        self
    }

    /// It panics, which std says on stderr.
    pub fn panics(mut self) -> Self {
        self.panics = true;
        self
    }

    /// It goes on counting after it has printed its book.
    pub fn counts_on(mut self) -> Self {
        self.counts_agree = false;
        self
    }

    /// Has it write its report as a page, too.
    pub fn html(mut self) -> Self {
        self.html = true;
        self
    }

    /// Runs without a trace, which is for many and long programs.
    pub fn untraced(mut self) -> Self {
        self.untraced = true;
        self
    }

    /// It writes a trace for viewers too.
    pub fn shows(mut self) -> Self {
        self.shows = true;
        self
    }

    /// Sends the report there, and not as a table to stderr.
    pub fn target(mut self, target: &str) -> Self {
        self.target = target.to_owned();
        self
    }

    /// It may take so long.
    pub fn lasts(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Runs it and checks what holds for all.
    pub fn run(self) -> Run {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let mut command = self.command(dir.path());
        if !self.untraced {
            command.env("GPU_TIME_TEST_SIM_TRACE", dir.path().join("trace-%p"));
        }
        // Processes take turns on a GPU, and one would see the others' in its times.
        static TURN: Mutex<()> = Mutex::new(());
        let turn = is_real().then(|| TURN.lock().unwrap_or_else(PoisonError::into_inner));
        let (status, pid, stdout, stderr) = finish(command, self.limit);
        drop(turn);
        let what = || format!("`{}`: {status}\n{stdout}{stderr}", self.arguments.join(" "));
        let end = match (status.code(), status.signal()) {
            (Some(code), _) => End::Code(code),
            (None, signal) => End::Signal(signal.unwrap_or_default()),
        };
        assert_eq!(end, self.end, "{}", what());
        assert_eq!(stderr.contains("panicked at"), self.panics, "{}", what());
        let tables = stderr.lines().filter(|line| line.starts_with("gpu-time 0")).count();
        assert_eq!(tables, self.tables, "{}", what());
        let complaints: Vec<&str> =
            stderr.lines().filter(|line| line.starts_with("gpu-time:")).collect();
        assert_eq!(complaints.len(), usize::from(self.complaint.is_some()), "{}", what());
        let begins = |begin: &str| complaints.iter().all(|line| line.starts_with(begin));
        assert!(self.complaint.is_none_or(begins), "{}", what());

        let book = stdout.lines().last().unwrap_or_default();
        let book: Book =
            serde_json::from_str(book).unwrap_or_else(|error| panic!("{error}: {}", what()));
        let events = self.shows.then(|| {
            let path = dir.path().join(format!("{EVENTS}{pid}.json"));
            let text = std::fs::read_to_string(path).expect("it writes a trace");
            Events::parse(&text, pid)
        });
        let mut reports = reports(dir.path());
        let report = reports.remove(&pid);
        if self.tables > 0 {
            let report = report.as_ref().unwrap_or_else(|| panic!("no report: {}", what()));
            assert_eq!(report.process.pid, pid);
            report.check_but(self.warning);
            if self.counts_agree {
                book.check(report);
            }
        } else {
            assert!(report.is_none(), "{}", what());
        }
        let trace = match Trace::read(dir.path().join(format!("trace-{pid}"))) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Trace::default(),
            trace => trace.expect("a whole trace"),
        };
        // Whatever happens, the runtime uses nothing that is gone.
        let notes: Vec<_> = trace.notes("use_after_destroy").collect();
        assert!(notes.is_empty(), "{notes:?}, {}", what());
        // Nor does it ask a driver that is shut down, as a program may that goes on meanwhile.
        let notes: Vec<_> = trace.notes("exited_call").filter(|_| self.counts_agree).collect();
        assert!(notes.is_empty(), "{notes:?}, {}", what());
        // The real driver follows the handles of what went with its context. Only of a context itself
        // may it be asked whether it is gone.
        const CONTEXT_IS_DESTROYED: i32 = 709;
        let is_late = |call: &&Call| {
            call.result == CONTEXT_IS_DESTROYED && !call.scripted && call.name != "cuCtxGetId"
        };
        let late: Vec<_> = trace.calls().filter(is_late).collect();
        assert!(late.is_empty(), "{late:?}, {}", what());
        if let Some(report) = &report
            && self.counts_agree
            && !self.untraced
            && !is_real()
        {
            Timeline::of(&trace, &book.kernels).check(report);
        }
        let nvml = std::fs::read_to_string(dir.path().join(NVML_TRACE)).unwrap_or_default();
        let nvml = nvml.lines().map(str::to_owned).collect();
        let page = std::fs::read_to_string(dir.path().join(PAGE)).ok();
        let others = reports.into_values().collect();
        Run { events, report, page, others, book, stderr, trace, nvml }
    }

    fn command(&self, dir: &Path) -> Command {
        let program = std::env::var_os("GPU_TIME_TEST_SCENARIO_BIN")
            .map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_scenario")), PathBuf::from);
        let mut command = Command::new(program);
        command.args(&self.arguments);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("GPU_TIME") {
                command.env_remove(name);
            }
        }
        let dir_name = dir.display();
        let mut targets = format!("{},json:{dir_name}/report-%p.json", self.target);
        if self.html {
            targets += &format!(",html:{dir_name}/{PAGE}");
        }
        if self.shows {
            targets += &format!(",trace:{dir_name}/{EVENTS}%p.json");
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
        self.nvml.apply(&mut command, &dir.join(NVML_TRACE));
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// The reports in a folder, by process.
fn reports(dir: &Path) -> BTreeMap<u32, Report> {
    let files = std::fs::read_dir(dir).expect("the folder is there");
    let names = files.map(|file| file.expect("it can be read").file_name());
    names
        .filter(|name| {
            let name = name.to_string_lossy();
            let is_other = [NVML_TRACE, PAGE].contains(&&*name);
            !is_other && !name.starts_with("trace-") && !name.starts_with(EVENTS)
        })
        .map(|name| {
            // No temporary file is left behind.
            let name = name.to_string_lossy().into_owned();
            let pid = name.strip_prefix("report-").and_then(|name| name.strip_suffix(".json"));
            let pid = pid.and_then(|pid| pid.parse().ok()).unwrap_or_else(|| panic!("`{name}`"));
            let text = std::fs::read_to_string(dir.join(&name)).expect("it can be read");
            (pid, Report::parse(&text))
        })
        .collect()
}

/// Whether a raw time is that of so much work: on a GPU, the work and at most 20 us around it. In the
/// simulation every sample has been compared with the trace.
#[track_caller]
pub fn assert_lasts(row: &Series, ns: f64) {
    let raw = row.raw();
    assert!(raw.min >= ns && raw.median <= ns + 20_000.0, "{ns}: {row:?}");
}
