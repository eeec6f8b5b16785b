//! Scripted failures of driver calls, from `GPU_TIME_TEST_SIM_FAULTS`.
//!
//! `cuEventRecord:3=700` fails the third call with code 700, `cuptiSubscribe:1-3=39` the first
//! three, `cuMemAlloc_v2:2+=2` the second and all later calls, and `cuEventQuery:*=719` fails every
//! call. Calls are counted per function over the whole process. A call that fails this way has no
//! effect. `cuEventQuery:2=hang` makes the second call block as if the device did not respond.
//! `stream:hang=2` prevents the second created stream from ever making progress.

use crate::code::Code;

/// The script, with the number of calls so far.
#[derive(Default)]
pub(crate) struct Faults {
    faults: Vec<Fault>,
    hanging_streams: Vec<u64>,
}

/// Failures of a function's calls `first` to `last`, counted from 1.
struct Fault {
    function: String,
    first: u64,
    last: u64,
    code: Code,
    calls: u64,
}

impl Faults {
    /// Parses clauses separated by `;`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut faults = Self::default();
        for clause in text.split(';').map(str::trim).filter(|clause| !clause.is_empty()) {
            let expected = || {
                format!("invalid fault `{clause}`: expected `function:n=code` or `stream:hang=n`")
            };
            let (function, failure) = clause.split_once(':').ok_or_else(expected)?;
            let (when, value) = failure.split_once('=').ok_or_else(expected)?;
            if (function, when) == ("stream", "hang") {
                faults.hanging_streams.push(value.parse().map_err(|_| expected())?);
                continue;
            }
            let number = |text: &str| text.parse().map_err(|_| expected());
            let (first, last) = match (when.strip_suffix('+'), when.split_once('-')) {
                _ if when == "*" => (1, u64::MAX),
                (Some(first), _) => (number(first)?, u64::MAX),
                (None, Some((first, last))) => (number(first)?, number(last)?),
                (None, None) => (number(when)?, number(when)?),
            };
            let code = match value {
                "hang" => Code::HUNG,
                code => Code(code.parse().map_err(|_| expected())?),
            };
            faults.faults.push(Fault {
                function: function.to_owned(),
                first,
                last,
                code,
                calls: 0,
            });
        }
        Ok(faults)
    }

    /// Counts a call of `function`, and returns the code with which it fails, if any.
    pub fn next(&mut self, function: &str) -> Option<Code> {
        let mut failure = None;
        for fault in self.faults.iter_mut().filter(|fault| fault.function == function) {
            fault.calls += 1;
            if (fault.first..=fault.last).contains(&fault.calls) {
                failure = failure.or(Some(fault.code));
            }
        }
        failure
    }

    /// Returns `true` if the `n`th created stream, counted from 1, hangs.
    pub fn hangs(&self, n: u64) -> bool {
        self.hanging_streams.contains(&n)
    }
}
