//! The table of options, the options from one source, and the configuration that they give.

use std::collections::BTreeMap;
use std::ffi::OsString;

use crate::base::environment::is_blank;
use crate::config::filter::{self, Filter};
use crate::config::problems::Problems;
use crate::config::targets::{self, Targets};
use crate::config::{names, values};
use crate::stats::bias::ConfiguredBias;
use crate::types::attribute::{Cold, Hold};
use crate::types::{record_mode::RecordMode, sampling::Sampling};
use gpu_time_report::{Detail, View};

/// Process-wide options that the program sets at run time.
///
/// Each option except `program_version` corresponds to an environment variable, which takes precedence if
/// it is set. Options can be set at any time, repeatedly and from any thread. Nothing changes until
/// [`apply`](Configure::apply) is called.
///
/// ```no_run
/// gpu_time_runtime::configure().report("json:gpu-time-%p.json").budget(0.01).apply();
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "nothing changes until `apply`"]
pub struct Configure {
    pub(crate) options: Options,
    pub(crate) problems: Problems,
}

/// An option from one source: `None` if it is not given, so that the next source decides, and `Some(None)` if it is
/// invalid or given up by the program, so that the default applies, whatever the next source says.
pub(crate) type Setting<T> = Option<Option<T>>;

/// Declares the options, each with its type, the method of [`Configure`] that sets it, its environment variable and the
/// parser of that. Its documentation is its row of the reference page: the values, and behind a blank line the default.
/// Without a default value, an option that is not set is `None` in the configuration: each function's attribute decides,
/// or nothing does.
macro_rules! options {
    ($(
        $(#[doc = $row:literal])*
        $field:ident: $type:ty $({
            $(#[$doc:meta])*
            $setter:ident($argument:ident: $argument_type:ty) = $set:ident($($given:expr),*)
        })? $(= $read:ident($name:literal, $parse:expr))? $(, $default:expr)?;
    )*) => {
        /// The options from one source. Every value is valid, because the functions in [`values`],
        /// [`filter`] and [`targets`] have checked it.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub(crate) struct Options {
            $(pub $field: Setting<$type>,)*
        }

        impl Options {
            fn read(vars: &mut Vars) -> Options {
                let mut options = Options::default();
                $($(options.$field = vars.$read($name, $parse);)?)*
                options
            }

            /// Fills in unset options from `other`.
            pub fn or(self, other: Options) -> Options {
                Options { $($field: self.$field.or(other.$field),)* }
            }
        }

        impl Configure {
            $($(
                $(#[$doc])*
                pub fn $setter(mut self, $argument: $argument_type) -> Self {
                    let name = concat!("configure().", stringify!($setter));
                    self.options.$field = Some(self.problems.$set(name, $($given),*));
                    self
                }
            )?)*
        }

        /// The configuration of the process.
        #[derive(Clone, Debug, PartialEq)]
        pub(crate) struct Config {
            $($(#[doc = $row])* pub $field: options!(@type $type $(, $default)?),)*
        }

        impl Config {
            /// Creates the configuration from these options, with defaults for unset ones.
            pub fn new(options: Options) -> Config {
                Config { $($field: options!(@value options.$field.flatten() $(, $default)?),)* }
            }
        }

        /// The name of each option's variable, if it has one, and its row.
        #[cfg(test)]
        pub(super) const ROWS: &[(&[&str], &str)] =
            &[$((&[$($name)?], concat!($($row, "\n"),*)),)*];
    };
    (@type $type:ty) => { Option<$type> };
    (@type $type:ty, $default:expr) => { $type };
    (@value $value:expr) => { $value };
    (@value $value:expr, $default:expr) => { $value.unwrap_or_else(|| $default) };
}

options! {
    /// `on`, `1`, `true` or `yes`; `off`: nothing is timed and no report is written; upper or lower case
    ///
    /// `on`
    is_on: bool = value("GPU_TIME", values::on_or_off), true;
    /// comma list of [targets](#report-formats), or `none`; with `every=10s`, files are written each 10 s (`1s` to
    /// `86400s`) as well, for a process that is killed
    ///
    /// `table` on stderr, but nothing in a test binary of `cargo test`
    targets: Targets {
        /// Sets where the report goes, as `GPU_TIME_REPORT` does. `""` restores the default, a table on
        /// stderr.
        ///
        /// Relative paths are resolved against the current directory at the time of this call. If the
        /// targets include a trace, calls are kept for it from now on. Otherwise, calls kept so far are
        /// discarded.
        report(targets: &str) = list(targets, targets::of_program)
    } = list("GPU_TIME_REPORT", targets::of_environment), Targets::default();
    /// comma list of patterns with `*` that match whole names, such as `*::saxpy`; a leading `!` excludes; a filter
    /// that leaves no function is a warning in the report
    ///
    /// all
    filter: Filter {
        /// Sets which functions are timed, as `GPU_TIME_FILTER` does. `""` selects all functions.
        filter(patterns: &str) = list(patterns, filter::filter)
    } = list("GPU_TIME_FILTER", filter::filter), Filter::default();
    /// `0.01` or `1%`: the share of every function's calls that is timed
    ///
    /// the attributes
    sampling: Sampling {
        /// Sets the fraction of calls to time, for every function. `None` restores the setting from
        /// each function's attribute.
        sample(share: impl Into<Option<f64>>) = number(share.into(), values::sampling)
    } = value("GPU_TIME_SAMPLE", values::sampling);
    /// `1%`: sampling adapts so that timing stays below this share of the time of the calls, and of the run; below 50 %
    /// the whole run is [not recorded][production#kernels-in-a-budget]; `off`: no limit, also where the program sets one
    ///
    /// none
    budget: Option<f64> {
        /// Sets the fraction of the calls' own time, and of the run, that timing may cost, such as `0.01`. `None` removes
        /// the limit. Below `0.5`, only the [parts of the run](Configure::record) that are asked for are recorded.
        budget(share: impl Into<Option<f64>>) = number(share.into(), values::budget)
    } = value("GPU_TIME_BUDGET", values::budget_or_off), None;
    /// a number of calls up to `4294967295`, for every function
    ///
    /// the attributes
    warmup: u32 {
        /// Sets the number of warm-up calls on each device, for every function. `None` restores the
        /// setting from each function's attribute.
        ///
        /// If the number increases, functions that have already been called make up the difference.
        warmup(calls: impl Into<Option<u32>>) = number(calls.into(), values::warmup)
    } = value("GPU_TIME_WARMUP", values::warmup);
    /// `off`, `clean` or `on`, or `dirty`, for every function
    ///
    /// the attributes
    cold: Option<Cold> {
        /// Sets how the L2 is evicted before timed calls: `"off"`, `"clean"` or `"dirty"`. `""`
        /// restores the setting from each function's attribute.
        cold(how: &str) = text(how, values::cold)
    } = value("GPU_TIME_COLD", values::cold);
    /// `off`, `on` or a time such as `50us`, for every function
    ///
    /// the attributes
    hold: Option<Hold> {
        /// Sets how streams are held: `"off"`, `"on"` or a time such as `"50us"`. `""` restores the
        /// setting from each function's attribute.
        sleep(how: &str) = text(how, values::hold)
    } = value("GPU_TIME_SLEEP", values::hold);
    /// when CUPTI [records][kernels#when-cupti-records]: `on`, `off`, `20ms/1s`, a phase of 20 ms (`1ms` to `10s`) at a
    /// random time in each second (up to `3600s`), or `start:30s`, the first 30 s (up to `3600s`)
    ///
    /// by the functions called
    recording: RecordMode {
        /// Sets when CUPTI records everything that the process enqueues, as `GPU_TIME_RECORD` does: `"on"` for the whole
        /// run, `"20ms/1s"` for phases of 20 ms at random times, on average one in every second, `"start:30s"` for the first
        /// 30 s of the process, or `"off"`. `""` restores the default, by which the functions decide. Needs the feature
        /// `kernels`.
        record(when: &str) = text(when, values::recording)
    } = value("GPU_TIME_RECORD", values::recording);
    /// `off`: calls do not become [ranges][kernels#in-nsight-compute-and-nsight-systems] for Nsight; `on`: they do,
    /// with a warning if no tool listens
    ///
    /// `on` where a tool listens
    nvtx: bool = value("GPU_TIME_NVTX", values::nvtx);
    /// printable text of at most 200 bytes, such as a commit or an experiment: every report of the run shows it
    ///
    /// none
    label: String {
        /// Sets the label of the run, such as a commit or an experiment, as `GPU_TIME_LABEL` does:
        /// printable text of at most 200 bytes. `""` removes it.
        label(text: &str) = text(text, values::label)
    } = value("GPU_TIME_LABEL", values::label);
    /// The version of the program in reports. Only the program knows it, so there is no variable for it.
    program_version: String {
        /// Sets the version of the program that reports show, in the same form as the label: usually
        /// `env!("CARGO_PKG_VERSION")`, which only the program itself knows. `""` removes it.
        program_version(version: &str) = text(version, values::label)
    };
    /// `brief`, one line for each function, or `all`: how much of a report the [table](#report-formats) shows
    ///
    /// `brief`
    detail: Detail {
        /// Sets how much of a report the table shows, as `GPU_TIME_NOTES` does: `"brief"`, as much as
        /// fits on a screen, or `"all"`. `""` restores the default, `"brief"`.
        notes(which: &str) = text(which, values::notes)
    } = value("GPU_TIME_NOTES", values::notes), Detail::default();
    /// `2.2us`, a time to subtract for each bracket, or `cupti:545ns`, the time that CUPTI gives for an empty kernel on
    /// this GPU
    ///
    /// [measured by CUPTI in this run or an earlier one, or from the table][how-it-measures#the-bias]
    bias: ConfiguredBias {
        /// Sets the bias to subtract from each bracket, as `GPU_TIME_BIAS` does. `""` restores the
        /// default: the bias that was measured, was stored by an earlier run or `gpu-time calibrate`, or is in the built-in
        /// table.
        bias(bias: &str) = text(bias, values::bias)
    } = value("GPU_TIME_BIAS", values::bias);
    /// `functions`, or `tree`: instead of the rows of functions and kernels, the table has the longest 200 paths [under
    /// their callers][meaning-of-numbers#the-call-tree]; `gpu-time show` reads it too
    ///
    /// `functions`
    view: View {
        /// Sets the rows of the table, as `GPU_TIME_VIEW` does: `"functions"`, or `"tree"` for functions under
        /// their callers. `""` restores the default, `"functions"`.
        view(rows: &str) = text(rows, values::view)
    } = value("GPU_TIME_VIEW", values::view), View::default();
    /// the number of calls, of brackets, and of kernels that a trace keeps, up to a million
    ///
    /// 100000
    trace_last: usize {
        /// Sets the number of calls, of brackets, and of kernels that a trace keeps, up to a million. `None`
        /// restores the default of 100,000. A trace that has already started keeps its size.
        trace_last(count: impl Into<Option<usize>>) = number(count.into(), values::trace_last)
    } = value("GPU_TIME_TRACE_LAST", values::trace_last), 100_000;
}

// A valid number is never NaN.
impl Eq for Options {}

impl Options {
    /// Reads the options from the environment, given as all of its variables. Also returns a message for each
    /// invalid value, and for each unknown variable with the library's prefix.
    pub fn from_vars(
        vars: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> (Options, Vec<String>) {
        let mut vars = Vars::new(vars);
        let options = Options::read(&mut vars);
        if cfg!(feature = "kernels") {
            // The search for CUPTI reads it.
            vars.take("GPU_TIME_CUPTI");
        } else {
            vars.value("GPU_TIME_CUPTI", values::cupti);
        }
        (options, vars.into_messages())
    }
}

/// Environment variables, and the problems found in them. An empty or blank variable counts as unset.
struct Vars {
    /// Those that have not been read yet.
    unread: BTreeMap<String, OsString>,
    /// The names that were asked for.
    known: Vec<&'static str>,
    problems: Problems,
}

impl Vars {
    fn new(vars: impl IntoIterator<Item = (OsString, OsString)>) -> Vars {
        let mut unread = BTreeMap::new();
        for (name, value) in vars {
            let name = name.to_string_lossy();
            if names::are_ours(&name) && !is_blank(&value) {
                // Of two variables with one name, programs read the first.
                unread.entry(name.into_owned()).or_insert(value);
            }
        }
        Vars { unread, known: Vec::new(), problems: Problems::default() }
    }

    fn take(&mut self, name: &'static str) -> Option<OsString> {
        self.known.push(name);
        self.unread.remove(name)
    }

    fn value<T>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(&str) -> Result<T, &'static str>,
    ) -> Setting<T> {
        let text = self.take(name)?.into_string();
        Some(match &text {
            Ok(text) => self.problems.check(name, text, parse(text.trim())),
            Err(value) => self.problems.check(name, &value.to_string_lossy(), Err("UTF-8")),
        })
    }

    fn list<T>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(&str, &mut dyn FnMut(&str, String)) -> T,
    ) -> Setting<T> {
        let text = self.value(name, |text| Ok(text.to_owned()))?;
        Some(text.map(|text| self.problems.check_list(name, &text, parse)))
    }

    /// Returns the messages about the values that were read, and about the variables that were not.
    fn into_messages(mut self) -> Vec<String> {
        for name in self.unread.keys() {
            self.problems.add_message(|| names::unknown(name, &self.known));
        }
        self.problems.into_messages()
    }
}

#[cfg(test)]
mod tests {
    use super::ROWS;

    /// Only the search for CUPTI and the place of stored biases are no options.
    #[test]
    fn reference_page_has_a_row_for_each_variable() {
        let page = include_str!("../../../docs/keys-and-variables.md");
        let (_, table) = page.split_once("\n| variable |").unwrap();
        let (table, _) = table.split_once("\n\n").unwrap();
        let is_option = |row: &&str| {
            !["| `GPU_TIME_CUPTI` ", "| `XDG_CACHE_HOME` "].iter().any(|of| row.starts_with(of))
        };
        let found: Vec<&str> = table.lines().skip(2).filter(is_option).collect();
        let row = |name: &str, text: &str| {
            let (values, default) = text.trim().split_once("\n\n").unwrap();
            let line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            format!("| `{name}` | {} | {} |", line(values), line(default))
        };
        let named = ROWS.iter().filter_map(|(names, text)| Some(row(names.first()?, text)));
        assert_eq!(found, named.collect::<Vec<_>>());
    }
}
