//! What the user configured, through the environment or in the program.

mod filter;

use std::ffi::OsString;
use std::fs;
use std::path::{self, Path, PathBuf};

use crate::bias::Given;
use crate::sampling::Sampling;
use crate::site::{Cold, Hold};
use crate::target::{Format, Sink, Target, with_process_id};
use filter::Filter;

const REPORT: &str = "GPU_TIME_REPORT";
/// What it may list.
const TARGETS: &str = if cfg!(feature = "html") {
    "`table`, `table:PATH`, `json:PATH`, `csv:PATH`, `html:PATH`, `trace:PATH` and `none`"
} else {
    "`table`, `table:PATH`, `json:PATH`, `csv:PATH`, `trace:PATH` and `none`"
};
/// Longer than any hold is of use: the stream stands still for it.
const LONGEST_HOLD_NS: f64 = 1e9;
/// Longer than any bias or empty kernel is.
const LARGEST_BIAS_NS: f64 = 1e6;
/// Calls and brackets that a trace keeps: some tens of megabytes.
const TRACE_LAST: usize = 100_000;
/// Hundreds of megabytes: more than a viewer opens.
const MOST_TRACED: usize = 1_000_000;

/// The configuration of the process.
///
/// Invariant: no two targets share a sink.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    on: bool,
    /// What `GPU_TIME_REPORT` says, and where that is.
    report: Option<String>,
    targets: Vec<Target>,
    filter: Filter,
    /// `None`: as each site says. The same for the next three.
    warmup: Option<u32>,
    cold: Option<Option<Cold>>,
    hold: Option<Option<Hold>>,
    sampling: Option<Sampling>,
    budget: Option<f64>,
    bias: Option<Given>,
    trace_last: usize,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            on: true,
            report: None,
            targets: vec![Target::TABLE],
            filter: Filter::default(),
            warmup: None,
            cold: None,
            hold: None,
            sampling: None,
            budget: None,
            bias: None,
            trace_last: TRACE_LAST,
        }
    }
}

impl Config {
    /// Reads the configuration from variables, which `get` looks up. A variable that is empty counts
    /// as one that is not set. What makes no sense is named in one line each, and leaves its default.
    pub fn from_vars(get: impl Fn(&str) -> Option<OsString>) -> (Config, Vec<String>) {
        let mut vars = Vars { get, complaints: Vec::new() };
        let default = Config::default();
        let report = vars.get(REPORT);
        let config = Config {
            on: vars.read("GPU_TIME", "`on` and `off`", on_or_off).unwrap_or(default.on),
            targets: report.as_deref().map_or(default.targets, |text| vars.targets(text)),
            report,
            filter: vars.filter(),
            warmup: vars.read("GPU_TIME_WARMUP", "whole numbers such as `10`", |v| v.parse().ok()),
            cold: vars.read("GPU_TIME_COLD", "`off`, `clean` and `dirty`", cold),
            hold: vars.read(
                "GPU_TIME_SLEEP",
                "`off`, `on` and a time up to `1s`, such as `50us`",
                hold,
            ),
            sampling: vars.read(
                "GPU_TIME_SAMPLE",
                "shares from `0` to `1`, such as `0.01` or `1%`",
                |v| Sampling::of_share(share(v)?),
            ),
            budget: vars.read(
                "GPU_TIME_BUDGET",
                "shares above `0` and below `1`, such as `1%` or `0.01`",
                |v| share(v).filter(|share| *share > 0.0 && *share < 1.0),
            ),
            bias: vars.read(
                "GPU_TIME_BIAS",
                "a time up to `1ms` to subtract, such as `2.2us`, and what CUPTI says of an empty kernel, \
                 such as `cupti:545ns`",
                bias,
            ),
            trace_last: vars
                .read("GPU_TIME_TRACE_LAST", "whole numbers from `1` to `1000000`", trace_last)
                .unwrap_or(default.trace_last),
        };
        (config, vars.complaints)
    }

    /// The same after another. Reports go where they went if nothing else is said of them, though the
    /// program has changed its folder meanwhile.
    pub fn after(mut self, before: &Config) -> Config {
        if self.report == before.report {
            self.targets.clone_from(&before.targets);
        }
        self
    }

    /// Whether anything is timed.
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Whether a site of this name is timed.
    pub fn admits(&self, name: &str) -> bool {
        self.filter.admits(name)
    }

    /// The calls that warm up a site whose attribute says `spec`.
    pub fn warmup(&self, spec: u32) -> u32 {
        self.warmup.unwrap_or(spec)
    }

    /// Whether and how the L2 is emptied for a site whose attribute says `spec`.
    pub fn cold(&self, spec: Option<Cold>) -> Option<Cold> {
        self.cold.unwrap_or(spec)
    }

    /// Whether the user says that for every site.
    pub fn has_cold(&self) -> bool {
        self.cold.is_some()
    }

    /// Whether and how the stream is held for a site whose attribute says `spec`.
    pub fn hold(&self, spec: Option<Hold>) -> Option<Hold> {
        self.hold.unwrap_or(spec)
    }

    /// The calls that are timed of a site whose attribute says `spec`.
    pub fn sampling(&self, spec: Sampling) -> Sampling {
        self.sampling.unwrap_or(spec)
    }

    /// The share of the time that timing may cost.
    pub fn budget(&self) -> Option<f64> {
        self.budget
    }

    /// What is subtracted from raw times, or what CUPTI says of an empty kernel.
    pub fn bias(&self) -> Option<Given> {
        self.bias
    }

    /// How many calls and brackets a trace keeps, if one is to be written.
    pub fn trace_last(&self) -> Option<usize> {
        let is_traced = self.targets.iter().any(|target| target.format == Format::Trace);
        (self.on && is_traced).then_some(self.trace_last)
    }

    /// Where the report goes. Empty if nowhere.
    pub fn targets(&self) -> &[Target] {
        &self.targets
    }
}

/// The environment, and what was wrong with it.
struct Vars<F> {
    get: F,
    complaints: Vec<String>,
}

impl<F: Fn(&str) -> Option<OsString>> Vars<F> {
    /// The text of a variable that is set and not empty.
    fn get(&mut self, name: &str) -> Option<String> {
        let value = (self.get)(name).filter(|value| !value.is_empty())?;
        match value.into_string() {
            Ok(text) => Some(text),
            Err(bytes) => {
                self.complain(name, &bytes.to_string_lossy(), "text in UTF-8");
                None
            }
        }
    }

    fn read<T>(
        &mut self,
        name: &str,
        accepted: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.get(name)?;
        let value = parse(text.trim());
        if value.is_none() {
            self.complain(name, &text, accepted);
        }
        value
    }

    fn filter(&mut self) -> Filter {
        let mut filter = Filter::default();
        for entry in entries(&self.get("GPU_TIME_FILTER").unwrap_or_default()) {
            if !filter.add(entry) {
                self.complain(
                    "GPU_TIME_FILTER",
                    entry,
                    "names with `*` for any text, such as `app::*` and `!app::slow`",
                );
            }
        }
        filter
    }

    /// The targets. Each entry that makes no sense has the default, a table on stderr, in its place.
    fn targets(&mut self, text: &str) -> Vec<Target> {
        const NAME: &str = REPORT;
        let complaints_before = self.complaints.len();
        let mut targets: Vec<Target> = Vec::new();
        let mut none = false;
        for entry in entries(text) {
            if entry == "none" {
                none = true;
                continue;
            }
            match target(entry) {
                Err(wrong) => self.complaints.push(format!("`{NAME}`: `{}` {wrong}", entry.escape_debug())),
                Ok(target) if targets.iter().any(|other| place(&other.sink) == place(&target.sink)) => self.complaints.push(
                    format!("`{NAME}`: `{}` goes where an earlier entry goes and is left out; write another path", entry.escape_debug()),
                ),
                Ok(target) => targets.push(target),
            }
        }
        if none && !targets.is_empty() {
            self.complaints.push(format!(
                "`{NAME}`: `none` has no meaning beside other entries; write it alone"
            ));
        }
        let nothing = targets.is_empty() && !none;
        let complained = self.complaints.len() > complaints_before;
        if (nothing || complained) && !targets.iter().any(|target| target.sink == Sink::Stderr) {
            targets.push(Target::TABLE);
        }
        targets
    }

    fn complain(&mut self, name: &str, value: &str, accepted: &str) {
        self.complaints.push(format!(
            "`{name}`: `{}` makes no sense; accepted are {accepted}",
            value.escape_debug()
        ));
    }
}

/// The entries of a comma list.
fn entries(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|entry| !entry.is_empty())
}

fn on_or_off(text: &str) -> Option<bool> {
    match text {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

fn cold(text: &str) -> Option<Option<Cold>> {
    match text {
        "off" => Some(None),
        "clean" => Some(Some(Cold::Clean)),
        "dirty" => Some(Some(Cold::Dirty)),
        _ => None,
    }
}

fn hold(text: &str) -> Option<Option<Hold>> {
    match text {
        "off" => Some(None),
        "on" => Some(Some(Hold::UntilEnqueued)),
        time => nanoseconds(time)
            .map(f64::round)
            .filter(|ns| (1.0..=LONGEST_HOLD_NS).contains(ns))
            .map(|ns| Some(Hold::For(ns as u64))),
    }
}

fn bias(text: &str) -> Option<Given> {
    let (given, time): (fn(f64) -> Given, _) = match text.strip_prefix("cupti:") {
        Some(time) => (Given::KernelBase, time.trim_start()),
        None => (Given::Bias, text),
    };
    nanoseconds(time).filter(|ns| (0.0..=LARGEST_BIAS_NS).contains(ns)).map(given)
}

fn trace_last(text: &str) -> Option<usize> {
    text.parse().ok().filter(|last| (1..=MOST_TRACED).contains(last))
}

/// A share, such as `0.01` or `1%`.
fn share(text: &str) -> Option<f64> {
    match text.strip_suffix('%') {
        Some(percent) => Some(percent.trim_end().parse::<f64>().ok()? / 100.0),
        None => text.parse().ok(),
    }
}

/// A time with its unit, such as `50us` or `1.5ms`.
fn nanoseconds(text: &str) -> Option<f64> {
    let unit = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at_checked(unit)?;
    let scale = match unit.trim_start() {
        "ns" => 1.0,
        // The micro sign and the Greek letter look the same.
        "us" | "\u{b5}s" | "\u{3bc}s" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * scale)
}

/// One entry of `GPU_TIME_REPORT`, or what is wrong with it.
fn target(entry: &str) -> Result<Target, String> {
    let (kind, path) =
        entry.split_once(':').map_or((entry, None), |(kind, path)| (kind, Some(path)));
    let format = match kind {
        "table" => Format::Table,
        "json" => Format::Json,
        "csv" => Format::Csv,
        "trace" => Format::Trace,
        #[cfg(feature = "html")]
        "html" => Format::Html,
        #[cfg(not(feature = "html"))]
        "html" => {
            return Err(format!("needs gpu-time's feature `html`; accepted are {TARGETS}"));
        }
        _ => return Err(format!("makes no sense; accepted are {TARGETS}")),
    };
    let sink = match path {
        Some("") => return Err(format!("lacks a path; write `{kind}:PATH`, with `-` for stdout")),
        Some("-") => Sink::Stdout,
        // Absolute from here on: the program may change its folder before the report is written.
        Some(path) => Sink::File(path::absolute(path).unwrap_or_else(|_| path.into())),
        None if format == Format::Table => Sink::Stderr,
        None => return Err(format!("lacks a path; write `{kind}:PATH`, with `-` for stdout")),
    };
    Ok(Target { format, sink })
}

/// The sink by the one name that all spellings of its path share.
fn place(sink: &Sink) -> Sink {
    match sink {
        Sink::File(path) => Sink::File(one_name(path).unwrap_or_else(|| path.clone())),
        other => other.clone(),
    }
}

/// The true name of the file, or that of its folder with its own where there is no file yet.
fn one_name(path: &Path) -> Option<PathBuf> {
    let path = with_process_id(path);
    let of_folder = || Some(fs::canonicalize(path.parent()?).ok()?.join(path.file_name()?));
    fs::canonicalize(&path).ok().or_else(of_folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(vars: &[(&str, &str)]) -> (Config, Vec<String>) {
        Config::from_vars(|name| {
            vars.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v))
        })
    }

    fn good(name: &str, value: &str) -> Config {
        let (config, complaints) = config(&[(name, value)]);
        assert_eq!(complaints, Vec::<String>::new());
        config
    }

    /// The one complaint about a value, after which the rest must be as without it.
    fn bad(name: &str, value: &str) -> String {
        let (config, mut complaints) = config(&[(name, value)]);
        assert_eq!(Config { report: None, ..config }, Config::default(), "{name}={value}");
        assert_eq!(complaints.len(), 1, "{complaints:?}");
        complaints.remove(0)
    }

    fn file(format: Format, path: &str) -> Target {
        Target { format, sink: Sink::File(path::absolute(path).unwrap()) }
    }

    #[test]
    fn without_variables_everything_is_at_its_default() {
        let (config, complaints) = config(&[]);
        assert_eq!(complaints, Vec::<String>::new());
        assert!(config.is_on() && config.admits("anything"));
        assert_eq!(config.targets(), [Target::TABLE]);
        assert_eq!(config.warmup(7), 7);
        assert_eq!(config.cold(Some(Cold::Dirty)), Some(Cold::Dirty));
        assert_eq!(config.hold(None), None);
    }

    #[test]
    fn an_empty_variable_is_not_set() {
        for name in
            ["GPU_TIME", "GPU_TIME_REPORT", "GPU_TIME_FILTER", "GPU_TIME_SAMPLE", "GPU_TIME_SLEEP"]
        {
            assert_eq!(good(name, ""), Config::default());
        }
    }

    #[test]
    fn the_environment_overrides_the_sites() {
        assert!(!good("GPU_TIME", "off").is_on());
        assert!(good("GPU_TIME", "on").is_on());
        assert_eq!(good("GPU_TIME_WARMUP", "0").warmup(7), 0);
        assert_eq!(good("GPU_TIME_COLD", "off").cold(Some(Cold::Clean)), None);
        assert_eq!(good("GPU_TIME_COLD", "clean").cold(None), Some(Cold::Clean));
        assert_eq!(good("GPU_TIME_COLD", "dirty").cold(Some(Cold::Clean)), Some(Cold::Dirty));
        for (text, share) in [("0.01", 0.01), ("1%", 0.01), ("2.5 %", 0.025), ("1", 1.0)] {
            let sampling = good("GPU_TIME_SAMPLE", text).sampling(Sampling::every(7));
            assert_eq!(sampling, Sampling::share(share));
        }
        assert_eq!(good("GPU_TIME_BUDGET", "1%").budget(), Some(0.01));
        assert_eq!(good("GPU_TIME_SAMPLE", "0").sampling(Sampling::ALL).rate(), 0.0);
        assert_eq!(good("GPU_TIME_SLEEP", "off").hold(Some(Hold::UntilEnqueued)), None);
        assert_eq!(good("GPU_TIME_SLEEP", "on").hold(None), Some(Hold::UntilEnqueued));
    }

    #[test]
    fn times_have_a_unit_and_a_bound() {
        for (text, ns) in [
            ("50us", 50_000),
            ("50 \u{b5}s", 50_000),
            ("50\u{3bc}s", 50_000),
            ("1.5ms", 1_500_000),
            ("7ns", 7),
            ("1s", 1_000_000_000),
        ] {
            assert_eq!(good("GPU_TIME_SLEEP", text).hold(None), Some(Hold::For(ns)));
        }
        for text in ["50", "us", "-5us", "0ns", "1.1s", "1h", "1e3us", "1.2.3us", "µ", "NaNus"] {
            bad("GPU_TIME_SLEEP", text);
        }
    }

    #[test]
    fn the_bias_is_a_time_or_what_cupti_says_of_an_empty_kernel() {
        for (text, bias) in [
            ("2.2us", Given::Bias(2_200.0)),
            ("2205 ns", Given::Bias(2_205.0)),
            ("0ns", Given::Bias(0.0)),
            ("cupti:545ns", Given::KernelBase(545.0)),
            ("cupti: 0.8us", Given::KernelBase(800.0)),
        ] {
            assert_eq!(good("GPU_TIME_BIAS", text).bias(), Some(bias));
        }
        for text in
            ["2205", "-1ns", "2s", "1.1ms", "cupti", "cupti:", "cupti:545", "floor", "NaNns"]
        {
            assert_eq!(
                bad("GPU_TIME_BIAS", text),
                format!(
                    "`GPU_TIME_BIAS`: `{text}` makes no sense; accepted are a time up to `1ms` to \
                     subtract, such as `2.2us`, and what CUPTI says of an empty kernel, such as \
                     `cupti:545ns`"
                )
            );
        }
    }

    #[test]
    fn a_trace_is_bounded_where_there_is_one() {
        assert_eq!(good("GPU_TIME_REPORT", "table").trace_last(), None);
        assert_eq!(good("GPU_TIME_REPORT", "trace:t.json").trace_last(), Some(100_000));
        let traced = |last: &str| {
            config(&[("GPU_TIME_REPORT", "trace:t"), ("GPU_TIME_TRACE_LAST", last)]).0.trace_last()
        };
        assert_eq!(traced("7"), Some(7));
        for last in ["0", "1000001", "-1", "all"] {
            assert_eq!(
                bad("GPU_TIME_TRACE_LAST", last),
                format!(
                    "`GPU_TIME_TRACE_LAST`: `{last}` makes no sense; accepted are whole numbers from \
                     `1` to `1000000`"
                )
            );
        }
        let (off, _) = config(&[("GPU_TIME_REPORT", "trace:t"), ("GPU_TIME", "off")]);
        assert_eq!(off.trace_last(), None);
    }

    /// A program may configure anything after it has changed its folder.
    #[test]
    fn reports_go_where_they_went() {
        let (before, _) = config(&[("GPU_TIME_REPORT", "json:a.json")]);
        let elsewhere = Config { targets: Vec::new(), ..before.clone() };
        assert_eq!(elsewhere.after(&before), before);
        let (other, _) = config(&[("GPU_TIME_REPORT", "json:b.json")]);
        assert_eq!(other.clone().after(&before), other);
    }

    #[test]
    fn nonsense_is_named_with_what_is_accepted() {
        assert_eq!(
            bad("GPU_TIME", "yes"),
            "`GPU_TIME`: `yes` makes no sense; accepted are `on` and `off`"
        );
        assert_eq!(
            bad("GPU_TIME_WARMUP", "-1"),
            "`GPU_TIME_WARMUP`: `-1` makes no sense; accepted are whole numbers such as `10`"
        );
        assert_eq!(
            bad("GPU_TIME_COLD", "\u{1b}[31m"),
            "`GPU_TIME_COLD`: `\\u{1b}[31m` makes no sense; accepted are `off`, `clean` and `dirty`"
        );
        assert_eq!(
            bad("GPU_TIME_FILTER", "!"),
            "`GPU_TIME_FILTER`: `!` makes no sense; accepted are names with `*` for any text, such as \
             `app::*` and `!app::slow`"
        );
        for wrong in ["1.1", "-0.1", "101%", "NaN", "%", "one", "0.1 %%"] {
            assert!(bad("GPU_TIME_SAMPLE", wrong).contains("shares from `0` to `1`"));
        }
        for wrong in ["1", "0", "0%", "100%", "-1%", "NaN", "%"] {
            assert!(bad("GPU_TIME_BUDGET", wrong).contains("such as `1%` or `0.01`"), "{wrong}");
        }
        assert!(bad("GPU_TIME_REPORT", "jsn:x").contains("accepted are `table`"));
        #[cfg(not(feature = "html"))]
        assert!(bad("GPU_TIME_REPORT", "html:x").contains("needs gpu-time's feature `html`"));
        assert!(bad("GPU_TIME_REPORT", "json").contains("write `json:PATH`"));
        assert!(bad("GPU_TIME_REPORT", "csv:").contains("write `csv:PATH`"));
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_text_is_named_too() {
        use std::os::unix::ffi::OsStringExt;
        let (config, complaints) = Config::from_vars(|name| {
            (name == "GPU_TIME").then(|| OsString::from_vec(vec![b'o', 0xff]))
        });
        assert_eq!(config, Config::default());
        assert_eq!(
            complaints,
            ["`GPU_TIME`: `o\u{fffd}` makes no sense; accepted are text in UTF-8"]
        );
    }

    #[test]
    fn a_mistake_costs_nothing_else() {
        let (config, complaints) = config(&[
            ("GPU_TIME_WARMUP", "3"),
            ("GPU_TIME_COLD", "icy"),
            ("GPU_TIME_FILTER", "a::*,!,!a::b"),
            ("GPU_TIME_REPORT", "json:r.json,what"),
        ]);
        assert_eq!(complaints.len(), 3, "{complaints:?}");
        assert_eq!(config.warmup(0), 3);
        assert!(config.admits("a::c") && !config.admits("a::b") && !config.admits("c"));
        assert_eq!(config.targets(), [file(Format::Json, "r.json"), Target::TABLE]);
    }

    #[test]
    fn reports_go_where_they_are_sent() {
        assert_eq!(good("GPU_TIME_REPORT", "none").targets(), []);
        assert_eq!(good("GPU_TIME_REPORT", "table").targets(), [Target::TABLE]);
        assert_eq!(
            good("GPU_TIME_REPORT", " table:t.txt, json:-,csv:c:/a b-%p.csv,").targets(),
            [
                file(Format::Table, "t.txt"),
                Target { format: Format::Json, sink: Sink::Stdout },
                file(Format::Csv, "c:/a b-%p.csv"),
            ]
        );
    }

    #[test]
    fn a_sink_is_written_once() {
        for twice in [
            "json:a,json:a",
            "json:a,csv:a",
            "json:a,csv:./a",
            "json:a,csv:src/../a",
            "json:no/such/a,csv:no/./such/a",
            "table,json:-,table:-",
            "table,table",
            "trace:a,json:a",
        ] {
            let (config, complaints) = config(&[("GPU_TIME_REPORT", twice)]);
            assert_eq!(complaints.len(), 1, "{twice}: {complaints:?}");
            assert!(complaints[0].contains("goes where an earlier entry goes"));
            assert!(config.targets().contains(&Target::TABLE));
        }
        let (config, complaints) = config(&[("GPU_TIME_REPORT", "none,json:a")]);
        assert_eq!(complaints.len(), 1);
        assert_eq!(config.targets(), [file(Format::Json, "a"), Target::TABLE]);
        // One name in two folders.
        assert_eq!(good("GPU_TIME_REPORT", "json:a,csv:src/a").targets().len(), 2);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_the_file_that_it_leads_to() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link] = ["file", "link"].map(|name| folder.path().join(name));
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let both = format!("json:{},csv:{}", file.display(), link.display());
        // What leads nowhere is replaced, and not followed.
        assert_eq!(good("GPU_TIME_REPORT", &both).targets().len(), 2);
        fs::write(&file, "").unwrap();
        let (config, complaints) = config(&[("GPU_TIME_REPORT", &both)]);
        assert!(complaints[0].contains("goes where an earlier entry goes"), "{complaints:?}");
        assert_eq!(config.targets().len(), 2, "the first, and the table: {:?}", config.targets());
    }

    #[test]
    fn a_path_is_of_the_folder_that_the_program_was_in_when_it_was_read() {
        let config = good("GPU_TIME_REPORT", "json:sub/r-%p.json");
        let path = std::env::current_dir().unwrap().join("sub").join("r-%p.json");
        assert_eq!(config.targets(), [Target { format: Format::Json, sink: Sink::File(path) }]);
    }
}
