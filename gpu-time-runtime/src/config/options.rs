//! Options from one source: the environment, or the program through `configure()`.

use std::collections::BTreeMap;
use std::ffi::OsString;

use crate::base::environment::is_blank;
use crate::config::filter::{self, Filter};
use crate::config::problems::Problems;
use crate::config::setting::Setting;
use crate::config::targets::{self, Target};
use crate::config::{names, values};
use crate::stats::bias::ConfiguredBias;
use crate::types::attribute::{Cold, Hold};
use crate::types::{record_mode::RecordMode, sampling::Sampling};
use gpu_time_report::{Detail, View};

/// The options from one source. Every value is valid, because the functions in [`values`],
/// [`filter`] and [`targets`] have checked it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Options {
    pub on: Setting<bool>,
    pub targets: Setting<Vec<Target>>,
    pub filter: Setting<Filter>,
    pub sampling: Setting<Sampling>,
    pub budget: Setting<Option<f64>>,
    pub warmup: Setting<u32>,
    pub cold: Setting<Option<Cold>>,
    pub hold: Setting<Option<Hold>>,
    pub recording: Setting<RecordMode>,
    /// `configure()` has no such option, because the choice depends on the attached tool.
    pub nvtx: Setting<bool>,
    pub label: Setting<String>,
    /// Only the program knows its version, so there is no variable for it.
    pub program_version: Setting<String>,
    pub detail: Setting<Detail>,
    pub bias: Setting<ConfiguredBias>,
    pub trace_last: Setting<usize>,
    pub view: Setting<View>,
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
        let options = Options {
            on: vars.value("GPU_TIME", values::on_or_off),
            targets: vars.list("GPU_TIME_REPORT", targets::targets),
            filter: vars.list("GPU_TIME_FILTER", filter::filter),
            sampling: vars.value("GPU_TIME_SAMPLE", |text| values::sampling(values::share(text))),
            budget: vars.value("GPU_TIME_BUDGET", values::budget_or_off),
            warmup: vars.value("GPU_TIME_WARMUP", values::warmup),
            cold: vars.value("GPU_TIME_COLD", values::cold),
            hold: vars.value("GPU_TIME_SLEEP", values::hold),
            recording: vars.value("GPU_TIME_RECORD", values::recording),
            nvtx: vars.value("GPU_TIME_NVTX", values::nvtx),
            label: vars.value("GPU_TIME_LABEL", values::label),
            program_version: Setting::Unset,
            detail: vars.value("GPU_TIME_NOTES", values::notes),
            bias: vars.value("GPU_TIME_BIAS", values::bias),
            trace_last: vars
                .value("GPU_TIME_TRACE_LAST", |text| values::trace_last(text.parse().ok())),
            view: vars.value("GPU_TIME_VIEW", values::view),
        };
        if cfg!(feature = "kernels") {
            // The search for CUPTI reads it.
            vars.take("GPU_TIME_CUPTI");
        } else {
            vars.value("GPU_TIME_CUPTI", values::cupti);
        }
        (options, vars.into_messages())
    }

    /// Fills in unset options from `other`.
    pub fn or(self, other: Options) -> Options {
        Options {
            on: self.on.or(other.on),
            targets: self.targets.or(other.targets),
            filter: self.filter.or(other.filter),
            sampling: self.sampling.or(other.sampling),
            budget: self.budget.or(other.budget),
            warmup: self.warmup.or(other.warmup),
            cold: self.cold.or(other.cold),
            hold: self.hold.or(other.hold),
            recording: self.recording.or(other.recording),
            nvtx: self.nvtx.or(other.nvtx),
            label: self.label.or(other.label),
            program_version: self.program_version.or(other.program_version),
            detail: self.detail.or(other.detail),
            bias: self.bias.or(other.bias),
            trace_last: self.trace_last.or(other.trace_last),
            view: self.view.or(other.view),
        }
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
        self.text(name).and_then(|text| self.problems.check(name, &text, parse(text.trim())))
    }

    fn list<T>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(&str, &mut dyn FnMut(&str, String)) -> T,
    ) -> Setting<T> {
        let text = self.text(name);
        text.and_then(|text| Setting::Value(self.problems.check_list(name, &text, parse)))
    }

    fn text(&mut self, name: &'static str) -> Setting<String> {
        let Some(value) = self.take(name) else { return Setting::Unset };
        let text = value.into_string();
        text.map_or_else(
            |value| self.problems.check(name, &value.to_string_lossy(), Err("UTF-8")),
            Setting::Value,
        )
    }

    /// Returns the messages about the values that were read, and about the variables that were not.
    fn into_messages(mut self) -> Vec<String> {
        for name in self.unread.keys() {
            self.problems.add_message(|| names::unknown(name, &self.known));
        }
        self.problems.into_messages()
    }
}
