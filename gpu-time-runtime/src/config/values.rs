//! Validates single values from any source. Error messages list the valid values, in a form that completes a
//! sentence ending in "expected".

use std::time::Duration;

use crate::stats::bias::ConfiguredBias;
use crate::types::attribute::{Cold, Hold};
use crate::types::record_mode::{PhasePlan, RecordMode};
use crate::types::sampling::Sampling;
use gpu_time_report::units::{is_hidden, parsed_ns};
use gpu_time_report::{Detail, View};

/// The longest hold. The stream makes no progress while it is held.
const MAX_HOLD_NS: f64 = 1e9;
/// Upper bound on a bias and on the time of an empty kernel. Real ones are a few microseconds.
const MAX_BIAS_NS: f64 = 1e6;
/// The longest label in bytes. It is repeated in each line of a CSV report.
const MAX_LABEL: usize = 200;
/// A trace with this many calls takes hundreds of megabytes, more than viewers can open.
const MAX_TRACED: usize = 1_000_000;

/// The word before the time from the start that is recorded.
pub(crate) const START: &str = "start:";

pub(crate) fn on_or_off(text: &str) -> Result<bool, &'static str> {
    match text {
        "1" => Ok(true),
        on if is_on(on) => Ok(true),
        off if is_off(off) => Ok(false),
        _ => Err("`on` or `off`"),
    }
}

/// Returns `true` for a word that turns an option on. A number may mean something else.
fn is_on(text: &str) -> bool {
    ["on", "1", "true", "yes"].iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// Returns `true` for a word that turns an option off.
fn is_off(text: &str) -> bool {
    ["off", "0", "false", "no"].iter().any(|word| text.eq_ignore_ascii_case(word))
}

pub(crate) fn warmup(text: &str) -> Result<u32, &'static str> {
    text.parse().map_err(|_| "a whole number up to `4294967295`, such as `10`")
}

pub(crate) fn cold(text: &str) -> Result<Option<Cold>, &'static str> {
    match text {
        off if is_off(off) => Ok(None),
        "clean" => Ok(Some(Cold::Clean)),
        on if is_on(on) => Ok(Some(Cold::Clean)),
        "dirty" => Ok(Some(Cold::Dirty)),
        _ => Err("`off`, `on`, `clean` or `dirty`"),
    }
}

pub(crate) fn hold(text: &str) -> Result<Option<Hold>, &'static str> {
    match text {
        off if is_off(off) => Ok(None),
        on if is_on(on) => Ok(Some(Hold::UntilEnqueued)),
        time => parsed_ns(time)
            .map(f64::round)
            .filter(|ns| (1.0..=MAX_HOLD_NS).contains(ns))
            .map(|ns| Some(Hold::For(ns as u64)))
            .ok_or("`off`, `on` or a time up to `1s`, such as `50us`"),
    }
}

pub(crate) fn recording(text: &str) -> Result<RecordMode, &'static str> {
    let time = |text: &str| {
        let ns = parsed_ns(text.trim()).filter(|ns| *ns < 1e18)?;
        Some(Duration::from_nanos(ns.round() as u64))
    };
    let start = |text: &str| {
        let length = time(text)?;
        let is_valid = !length.is_zero() && length <= RecordMode::LONGEST;
        is_valid.then_some(RecordMode::Start(length))
    };
    let phases = |text: &str| {
        let (length, period) = text.split_once('/')?;
        PhasePlan::new(time(length)?, time(period)?).map(RecordMode::Phases)
    };
    let recording = match text {
        off if is_off(off) => Some(RecordMode::Off),
        on if is_on(on) => Some(RecordMode::On),
        text => text.strip_prefix(START).map_or_else(|| phases(text), start),
    };
    let recording = recording.ok_or(
        "`on`, `off`, a length from `1ms` to `10s` and a period up to `3600s` that is at least as long, such as \
         `20ms/1s`, or a time from the start up to `3600s`, such as `start:30s`",
    )?;
    if cfg!(not(feature = "kernels")) && recording != RecordMode::Off {
        return Err("`off`, because this build lacks gpu-time's feature `kernels`");
    }
    Ok(recording)
}

/// Rejects a path to CUPTI, in a build without the feature, which never looks for it.
pub(crate) fn cupti(_: &str) -> Result<(), &'static str> {
    Err("no value, because this build lacks gpu-time's feature `kernels`")
}

pub(crate) fn nvtx(text: &str) -> Result<bool, &'static str> {
    let is_on = on_or_off(text)?;
    if cfg!(not(feature = "nvtx")) && is_on {
        return Err("`off`, because this build lacks gpu-time's feature `nvtx`");
    }
    Ok(is_on)
}

pub(crate) fn view(text: &str) -> Result<View, &'static str> {
    View::parse(text).ok_or(View::EXPECTED)
}

pub(crate) fn label(text: &str) -> Result<String, &'static str> {
    let is_valid = !text.is_empty() && text.len() <= MAX_LABEL && !text.contains(is_hidden);
    is_valid.then(|| text.to_owned()).ok_or("printable text of at most 200 bytes")
}

pub(crate) fn notes(text: &str) -> Result<Detail, &'static str> {
    Detail::parse(text).ok_or(Detail::EXPECTED)
}

pub(crate) fn sampling(text: &str) -> Result<Sampling, &'static str> {
    let sampling = share(text).and_then(Sampling::of_share);
    sampling.ok_or("a share from `0` to `1`, such as `0.01` or `1%`")
}

pub(crate) fn budget(text: &str) -> Result<Option<f64>, &'static str> {
    let budget = share(text).filter(|share| *share > 0.0 && *share < 1.0);
    budget.map(Some).ok_or("a share above `0` and below `1`, such as `0.01` or `1%`")
}

/// Parses a budget, or a word that removes the limit. `0` is neither: it is a share that is too small.
pub(crate) fn budget_or_off(text: &str) -> Result<Option<f64>, &'static str> {
    if is_off(text) && text != "0" {
        return Ok(None);
    }
    budget(text).map_err(|_| "`off` or a share above `0` and below `1`, such as `0.01` or `1%`")
}

pub(crate) fn bias(text: &str) -> Result<ConfiguredBias, &'static str> {
    let (variant, time): (fn(f64) -> ConfiguredBias, _) = match text.strip_prefix("cupti:") {
        Some(time) => (ConfiguredBias::KernelBase, time.trim_start()),
        None => (ConfiguredBias::Bias, text),
    };
    parsed_ns(time).filter(|ns| (0.0..=MAX_BIAS_NS).contains(ns)).map(variant).ok_or(
        "a time up to `1ms` such as `2.2us`, or CUPTI's time of an empty kernel such as `cupti:545ns`",
    )
}

pub(crate) fn trace_last(text: &str) -> Result<usize, &'static str> {
    let count = text.parse().ok().filter(|count| (1..=MAX_TRACED).contains(count));
    count.ok_or("a whole number from `1` to `1000000`")
}

/// Parses a fraction, such as `0.01` or `1%`.
fn share(text: &str) -> Option<f64> {
    match text.strip_suffix('%') {
        Some(percent) => Some(percent.trim_end().parse::<f64>().ok()? / 100.0),
        None => text.parse().ok(),
    }
}
