//! The table of options, the options from one source, and the configuration that they give.

use std::collections::BTreeMap;
use std::ffi::OsString;

use crate::base::environment::is_blank;
use crate::config::filter::{self, Filter};
use crate::config::problems::Problems;
use crate::config::targets::{self, Target};
use crate::config::{names, values};
use crate::stats::bias::ConfiguredBias;
use crate::types::attribute::{Cold, Hold};
use crate::types::{record_mode::RecordMode, sampling::Sampling};
use gpu_time_report::{Detail, View};

/// An option from one source: `None` if it is not given, so that the next source decides, and `Some(None)` if it is
/// invalid or given up by the program, so that the default applies, whatever the next source says.
pub(crate) type Setting<T> = Option<Option<T>>;

/// Declares the options, each with its type, its environment variable and the parser of that. Without a default, an
/// option that is not set is `None` in the configuration: each function's attribute decides, or nothing does.
macro_rules! options {
    ($(
        $(#[$doc:meta])*
        $field:ident: $type:ty $(= $read:ident($name:literal, $parse:expr))? $(, $default:expr)?;
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

        /// The configuration of the process.
        ///
        /// Invariant: no two targets have the same sink.
        #[derive(Clone, Debug, PartialEq)]
        pub(crate) struct Config {
            $($(#[$doc])* pub $field: options!(@type $type $(, $default)?),)*
        }

        impl Config {
            /// Creates the configuration from these options, with defaults for unset ones.
            pub fn new(options: Options) -> Config {
                Config { $($field: options!(@value options.$field.flatten() $(, $default)?),)* }
            }
        }
    };
    (@type $type:ty) => { Option<$type> };
    (@type $type:ty, $default:expr) => { $type };
    (@value $value:expr) => { $value };
    (@value $value:expr, $default:expr) => { $value.unwrap_or_else(|| $default) };
}

options! {
    /// `true` unless `GPU_TIME` turns timing off.
    is_on: bool = value("GPU_TIME", values::on_or_off), true;
    /// The report targets.
    targets: Vec<Target> = list("GPU_TIME_REPORT", targets::targets), vec![Target::TABLE];
    /// The functions to time.
    filter: Filter = list("GPU_TIME_FILTER", filter::filter), Filter::default();
    /// The calls to time for each function.
    sampling: Sampling = value("GPU_TIME_SAMPLE", values::sampling);
    /// The fraction of wall time that timing may cost, if limited.
    budget: Option<f64> = value("GPU_TIME_BUDGET", values::budget_or_off), None;
    /// The number of warm-up calls for each function.
    warmup: u32 = value("GPU_TIME_WARMUP", values::warmup);
    /// The method by which the L2 is evicted before a function's timed calls, if any.
    cold: Option<Cold> = value("GPU_TIME_COLD", values::cold);
    /// The method by which the stream is held for a function's brackets, if any.
    hold: Option<Hold> = value("GPU_TIME_SLEEP", values::hold);
    /// When CUPTI records everything that the process enqueues. Otherwise, the functions decide.
    recording: RecordMode = value("GPU_TIME_RECORD", values::recording);
    /// `false` if calls never become NVTX ranges. Otherwise they do if a tool can attach. `true` also asks
    /// for a message if none can. `configure()` has no such option, because the choice depends on the attached tool.
    nvtx: bool = value("GPU_TIME_NVTX", values::nvtx);
    /// The label of the run in reports.
    label: String = value("GPU_TIME_LABEL", values::label);
    /// The version of the program in reports. Only the program knows it, so there is no variable for it.
    program_version: String;
    /// The amount of detail in the table.
    detail: Detail = value("GPU_TIME_NOTES", values::notes), Detail::default();
    /// A bias set by the user, or CUPTI's duration for an empty kernel, which replaces the
    /// measured, stored and tabulated ones.
    bias: ConfiguredBias = value("GPU_TIME_BIAS", values::bias);
    /// The number of calls, of brackets and of kernels in a trace. By default, they take some tens of megabytes.
    trace_last: usize = value("GPU_TIME_TRACE_LAST", values::trace_last), 100_000;
    /// The rows of the table: functions, or the call tree.
    view: View = value("GPU_TIME_VIEW", values::view), View::default();
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
