//! What a program says of how it is to be timed, beside the environment, which wins.

use std::collections::BTreeMap;
use std::ffi::OsString;

use crate::base::{console, fork};
use crate::config::Config;
use crate::control::active;

/// Options for the whole process, each as the variable of the environment that has its name. Where that
/// is set, it wins. Nothing happens until [`apply`](Configure::apply).
///
/// ```no_run
/// gpu_time_runtime::configure().report("json:gpu-time-%p.json").budget(0.01).apply();
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "nothing happens until `apply`"]
pub struct Configure(BTreeMap<&'static str, Option<String>>);

/// Options for the whole process, none of them given yet. They may be given at any time and from any
/// thread, again and again.
pub fn configure() -> Configure {
    Configure::default()
}

impl Configure {
    /// Where the report goes, as in `GPU_TIME_REPORT`. For a trace, what is timed from here on is kept; it is
    /// forgotten where none is asked for any more.
    pub fn report(self, targets: &str) -> Self {
        self.give("GPU_TIME_REPORT", Some(targets.to_owned()))
    }

    /// Which functions are timed, as in `GPU_TIME_FILTER`; `""`: all.
    pub fn filter(self, patterns: &str) -> Self {
        self.give("GPU_TIME_FILTER", Some(patterns.to_owned()))
    }

    /// The share of every function's calls that is timed; `None`: as each says.
    pub fn sample(self, share: impl Into<Option<f64>>) -> Self {
        self.give("GPU_TIME_SAMPLE", share.into().map(|share| share.to_string()))
    }

    /// The share of the time that timing may cost, such as `0.01`; `None`: it costs what it costs.
    pub fn budget(self, share: impl Into<Option<f64>>) -> Self {
        self.give("GPU_TIME_BUDGET", share.into().map(|share| share.to_string()))
    }

    /// The calls that warm every function up on each device, in all; `None`: as each says. With more than
    /// before, functions that were called already make those that are missing.
    pub fn warmup(self, calls: impl Into<Option<u32>>) -> Self {
        self.give("GPU_TIME_WARMUP", calls.into().map(|calls| calls.to_string()))
    }

    /// How the L2 is emptied: `"off"`, `"clean"`, `"dirty"`; `""`: as each function says.
    pub fn cold(self, how: &str) -> Self {
        self.give("GPU_TIME_COLD", Some(how.to_owned()))
    }

    /// How streams are held: `"off"`, `"on"` or a time such as `"50us"`; `""`: as each function says.
    pub fn sleep(self, how: &str) -> Self {
        self.give("GPU_TIME_SLEEP", Some(how.to_owned()))
    }

    /// What is subtracted for each bracket, as in `GPU_TIME_BIAS`; `""`: by the table.
    pub fn bias(self, bias: &str) -> Self {
        self.give("GPU_TIME_BIAS", Some(bias.to_owned()))
    }

    /// How many calls, and how many brackets, a trace keeps, up to a million; `None`: 100,000. A trace that
    /// has begun keeps as many as before.
    pub fn trace_last(self, count: impl Into<Option<usize>>) -> Self {
        self.give("GPU_TIME_TRACE_LAST", count.into().map(|count| count.to_string()))
    }

    fn give(mut self, variable: &'static str, value: Option<String>) -> Self {
        self.0.insert(variable, value);
        self
    }

    /// Lets the options hold from here on. Those that were given before and not now stay as they were.
    /// One that makes no sense is named in a line on stderr and in the report's warnings, and its default is
    /// used.
    /// In a child that was forked after the first call of a timed function, where nothing is timed, it does nothing.
    pub fn apply(self) {
        if fork::is_forked() {
            // Another thread may have held a lock when the process was forked.
            return;
        }
        self.complaints().for_each(console::complain);
        active::change(self.0);
    }

    /// What makes no sense, each with what would be accepted.
    fn complaints(&self) -> impl Iterator<Item = String> {
        self.0.iter().flat_map(|(variable, value)| {
            let alone =
                |name: &str| value.clone().filter(|_| name == *variable).map(OsString::from);
            let option = variable.trim_start_matches("GPU_TIME_").to_lowercase();
            let complaints = Config::from_vars(alone).1.into_iter();
            complaints.map(move |it| it.replace(variable, &format!("configure().{option}")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_option_that_makes_no_sense_is_named() {
        let options = configure().report("jsn:x").filter("!").sample(2.0).budget(f64::NAN);
        let options = options.cold("icy").sleep("1h").bias("-1ns").trace_last(0).warmup(7);
        let mut complaints: Vec<String> = options.complaints().collect();
        complaints.sort();
        let mut names = complaints.iter().map(|complaint| complaint.split(": ").next().unwrap());
        for name in ["bias", "budget", "cold", "filter", "report", "sample", "sleep", "trace_last"]
        {
            assert_eq!(names.next(), Some(&*format!("`configure().{name}`")));
        }
        assert_eq!(names.next(), None);
        assert!(complaints.iter().all(|complaint| complaint.contains("; accepted are ")));
    }

    #[test]
    fn options_that_leave_everything_as_it_is_make_sense() {
        let options = configure().report("").filter("").sample(None).budget(None).warmup(None);
        let options = options.cold("").sleep("").bias("").trace_last(None);
        assert_eq!(options.complaints().count(), 0);
    }
}
