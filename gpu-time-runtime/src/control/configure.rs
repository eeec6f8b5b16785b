//! `configure()`: options that the program sets at run time.

use crate::base::{console, fork};
use crate::config::{filter, targets, values};
use crate::config::{options::Options, problems::Problems};
use crate::control::active;

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
    options: Options,
    problems: Problems,
}

/// Creates an empty set of process-wide [options](Configure).
pub fn configure() -> Configure {
    Configure::default()
}

/// Declares the methods that set an option.
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident($argument:ident: $type:ty) => $field:ident = $read:ident($($value:expr),*);)*) => {
        impl Configure {
            $(
                $(#[$doc])*
                pub fn $name(mut self, $argument: $type) -> Self {
                    let name = concat!("configure().", stringify!($name));
                    self.options.$field = Some(self.$read(name, $($value),*));
                    self
                }
            )*
        }
    };
}

setters! {
    /// Sets where the report goes, as `GPU_TIME_REPORT` does. `""` restores the default, a table on
    /// stderr.
    ///
    /// Relative paths are resolved against the current directory at the time of this call. If the
    /// targets include a trace, calls are kept for it from now on. Otherwise, calls kept so far are
    /// discarded.
    report(targets: &str) => targets = list(targets, targets::targets);

    /// Sets which functions are timed, as `GPU_TIME_FILTER` does. `""` selects all functions.
    filter(patterns: &str) => filter = list(patterns, filter);

    /// Sets the fraction of calls to time, for every function. `None` restores the setting from
    /// each function's attribute.
    sample(share: impl Into<Option<f64>>) => sampling = number(share.into(), values::sampling);

    /// Sets the fraction of wall time that timing may cost, such as `0.01`. `None` removes the
    /// limit. Below `0.5`, no kernels are recorded.
    budget(share: impl Into<Option<f64>>) => budget = number(share.into(), values::budget);

    /// Sets the number of warm-up calls on each device, for every function. `None` restores the
    /// setting from each function's attribute.
    ///
    /// If the number increases, functions that have already been called make up the difference.
    warmup(calls: impl Into<Option<u32>>) => warmup = number(calls.into(), values::warmup);

    /// Sets how the L2 is evicted before timed calls: `"off"`, `"clean"` or `"dirty"`. `""`
    /// restores the setting from each function's attribute.
    cold(how: &str) => cold = text(how, values::cold);

    /// Sets how streams are held: `"off"`, `"on"` or a time such as `"50us"`. `""` restores the
    /// setting from each function's attribute.
    sleep(how: &str) => hold = text(how, values::hold);

    /// Sets when CUPTI records everything that the process enqueues, as `GPU_TIME_RECORD` does: `"on"` for the whole
    /// run, `"20ms/1s"` for phases of 20 ms at random times, on average one in every second, `"start:30s"` for the first
    /// 30 s of the process, or `"off"`. `""` restores the default, by which the functions decide. Needs the feature
    /// `kernels`.
    record(when: &str) => recording = text(when, values::recording);

    /// Sets the label of the run, such as a commit or an experiment, as `GPU_TIME_LABEL` does:
    /// printable text of at most 200 bytes. `""` removes it.
    label(text: &str) => label = text(text, values::label);

    /// Sets the version of the program that reports show, in the same form as the label: usually
    /// `env!("CARGO_PKG_VERSION")`, which only the program itself knows. `""` removes it.
    program_version(version: &str) => program_version = text(version, values::label);

    /// Sets how much of a report the table shows, as `GPU_TIME_NOTES` does: `"brief"`, as much as
    /// fits on a screen, or `"all"`. `""` restores the default, `"brief"`.
    notes(which: &str) => detail = text(which, values::notes);

    /// Sets the rows of the table, as `GPU_TIME_VIEW` does: `"functions"`, or `"tree"` for functions under
    /// their callers. `""` restores the default, `"functions"`.
    view(rows: &str) => view = text(rows, values::view);

    /// Sets the bias to subtract from each bracket, as `GPU_TIME_BIAS` does. `""` restores the
    /// default: the bias that was measured, was stored by an earlier run or `gpu-time calibrate`, or is in the built-in
    /// table.
    bias(bias: &str) => bias = text(bias, values::bias);

    /// Sets the number of calls, of brackets, and of kernels that a trace keeps, up to a million. `None`
    /// restores the default of 100,000. A trace that has already started keeps its size.
    trace_last(count: impl Into<Option<usize>>) => trace_last = number(count.into(), values::trace_last);
}

impl Configure {
    /// Applies the options. Options that are not set keep their values from earlier calls.
    ///
    /// An invalid value is reported in one line on stderr and in the report's warnings, and is
    /// replaced by the default.
    ///
    /// Has no effect in a child process forked after the first call of a timed function, because
    /// nothing is timed there.
    pub fn apply(self) {
        let Some(_call) = fork::begin_call() else { return };
        self.problems.into_messages().into_iter().for_each(console::complain);
        active::change(self.options);
    }

    fn number<N: ToString, T>(
        &mut self,
        name: &str,
        number: Option<N>,
        parse: impl FnOnce(&str) -> Result<T, &'static str>,
    ) -> Option<T> {
        let number = number?.to_string();
        self.problems.check(name, &number, parse(&number))
    }

    fn text<T>(
        &mut self,
        name: &str,
        text: &str,
        parse: impl FnOnce(&str) -> Result<T, &'static str>,
    ) -> Option<T> {
        if text.is_empty() { None } else { self.problems.check(name, text, parse(text.trim())) }
    }

    fn list<T>(
        &mut self,
        name: &str,
        list: &str,
        parse: impl FnOnce(&str, &mut dyn FnMut(&str, String)) -> T,
    ) -> Option<T> {
        (!list.is_empty()).then(|| self.problems.check_list(name, list, parse))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_options_are_named() {
        let options = configure().report("jsn:x").filter("!").sample(2.0).budget(f64::NAN);
        let options = options
            .cold("icy")
            .sleep("1h")
            .record("10s/20ms")
            .label("two\nlines")
            .program_version(&"x".repeat(201))
            .notes("most")
            .view("forest")
            .bias("-1ns")
            .trace_last(0)
            .warmup(7);
        let values = [
            ("jsn:x", "report"),
            ("!", "filter"),
            ("2", "sample"),
            ("NaN", "budget"),
            ("icy", "cold"),
            ("1h", "sleep"),
            ("10s/20ms", "record"),
            ("two\\nlines", "label"),
            (&"x".repeat(201), "program_version"),
            ("most", "notes"),
            ("forest", "view"),
            ("-1ns", "bias"),
            ("0", "trace_last"),
        ];
        let messages = options.problems.into_messages();
        assert_eq!(messages.len(), values.len(), "{messages:?}");
        for (message, (value, name)) in messages.iter().zip(values) {
            let expected = format!("invalid value `{value}` for `configure().{name}`: expected ");
            assert!(message.starts_with(&expected), "{message}");
        }
        assert_eq!(options.options.warmup, Some(Some(7)));
        assert_eq!(options.options.budget, Some(None));
    }

    #[test]
    fn defaults_are_valid() {
        let options = configure().report("").filter("").sample(None).budget(None).warmup(None);
        let options = options
            .cold("")
            .sleep("")
            .record("")
            .label("")
            .program_version("")
            .notes("")
            .view("")
            .bias("")
            .trace_last(None);
        assert_eq!(options.problems.into_messages(), [""; 0]);
        let unset = Options { is_on: options.options.is_on, ..Options::default() };
        assert_ne!(options.options, unset, "defaults replace earlier values");
    }
}
