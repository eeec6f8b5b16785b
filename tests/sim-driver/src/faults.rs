//! Scripted failures, from `GPU_TIME_TEST_SIM_FAULTS`.
//!
//! `cuEventRecord:3=700` fails the third call, `cuMemAlloc_v2:2+=2` the second and all later ones,
//! `cuEventQuery:*=719` every one; calls are counted by function over the whole process. A call
//! that fails so has no effect. `cuEventQuery:2=hang` lets the second call wait as for a device that
//! never answers. `stream:hang=2` lets the second stream that is
//! created make no progress.

use crate::code::Code;

/// The script, and how far it has been played.
#[derive(Default)]
pub(crate) struct Faults {
    rules: Vec<Rule>,
    hanging_streams: Vec<u64>,
}

struct Rule {
    function: String,
    first: u64,
    last: u64,
    code: Code,
    calls: u64,
}

impl Faults {
    /// Reads clauses separated by `;`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut faults = Self::default();
        for clause in text.split(';').map(str::trim).filter(|clause| !clause.is_empty()) {
            let expected = || format!("`{clause}` is not `function:n=code` or `stream:hang=n`");
            let (function, rule) = clause.split_once(':').ok_or_else(expected)?;
            let (when, value) = rule.split_once('=').ok_or_else(expected)?;
            if (function, when) == ("stream", "hang") {
                faults.hanging_streams.push(value.parse().map_err(|_| expected())?);
                continue;
            }
            let (first, last) = match (when, when.strip_suffix('+')) {
                ("*", _) => (1, u64::MAX),
                (_, Some(first)) => (first.parse().map_err(|_| expected())?, u64::MAX),
                (nth, None) => nth.parse().map(|n| (n, n)).map_err(|_| expected())?,
            };
            let code = match value {
                "hang" => Code::HUNG,
                code => Code(code.parse().map_err(|_| expected())?),
            };
            faults.rules.push(Rule { function: function.to_owned(), first, last, code, calls: 0 });
        }
        Ok(faults)
    }

    /// Counts one call of `function`, and says whether it is to fail.
    pub fn next(&mut self, function: &str) -> Option<Code> {
        let mut failure = None;
        for rule in self.rules.iter_mut().filter(|rule| rule.function == function) {
            rule.calls += 1;
            if (rule.first..=rule.last).contains(&rule.calls) {
                failure = failure.or(Some(rule.code));
            }
        }
        failure
    }

    /// Whether the `n`th stream that is created (from 1) hangs.
    pub fn hangs(&self, n: u64) -> bool {
        self.hanging_streams.contains(&n)
    }
}
