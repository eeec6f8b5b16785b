//! `configure()`: options that the program sets at run time.

use crate::base::{console, fork};
pub use crate::config::options::Configure;
use crate::control::active;
use crate::record::phase::controller;

/// Creates an empty set of process-wide [options](Configure).
pub fn configure() -> Configure {
    Configure::default()
}

impl Configure {
    /// Applies the options. Options that are not set keep their values from earlier calls.
    ///
    /// An invalid value is reported in one line on stderr and in the report's warnings, and is
    /// replaced by the default.
    ///
    /// With [`record("start:…")`](Configure::record) and without a CUDA context, waits until CUPTI records, for at most
    /// half a second.
    ///
    /// Has no effect in a child process forked after the first call of a timed function, because
    /// nothing is timed there.
    pub fn apply(self) {
        let Some(_call) = fork::begin_call() else { return };
        self.problems.into_messages().into_iter().for_each(console::complain);
        active::change(self.options);
        controller::wait_for_start();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::options::Options;

    #[test]
    fn invalid_options_are_named() {
        let options = configure().report("unknown:x").filter("!").sample(2.0).budget(f64::NAN);
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
            ("unknown:x", "report"),
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
