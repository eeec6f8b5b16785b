//! What the text of a variable says, if it makes sense.

use crate::stats::bias::ConfiguredBias;
use crate::types::attribute::{Cold, Hold};

/// Longer than any hold is of use: the stream stands still for it.
const LONGEST_HOLD_NS: f64 = 1e9;
/// Longer than any bias or empty kernel is.
const LARGEST_BIAS_NS: f64 = 1e6;
/// Hundreds of megabytes: more than a viewer opens.
const MOST_TRACED: usize = 1_000_000;

pub fn on_or_off(text: &str) -> Option<bool> {
    match text {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

pub fn cold(text: &str) -> Option<Option<Cold>> {
    match text {
        "off" => Some(None),
        "clean" => Some(Some(Cold::Clean)),
        "dirty" => Some(Some(Cold::Dirty)),
        _ => None,
    }
}

pub fn hold(text: &str) -> Option<Option<Hold>> {
    match text {
        "off" => Some(None),
        "on" => Some(Some(Hold::UntilEnqueued)),
        time => nanoseconds(time)
            .map(f64::round)
            .filter(|ns| (1.0..=LONGEST_HOLD_NS).contains(ns))
            .map(|ns| Some(Hold::For(ns as u64))),
    }
}

pub fn bias(text: &str) -> Option<ConfiguredBias> {
    let (given, time): (fn(f64) -> ConfiguredBias, _) = match text.strip_prefix("cupti:") {
        Some(time) => (ConfiguredBias::KernelBase, time.trim_start()),
        None => (ConfiguredBias::Bias, text),
    };
    nanoseconds(time).filter(|ns| (0.0..=LARGEST_BIAS_NS).contains(ns)).map(given)
}

pub fn trace_last(text: &str) -> Option<usize> {
    text.parse().ok().filter(|last| (1..=MOST_TRACED).contains(last))
}

/// A share, such as `0.01` or `1%`.
pub fn share(text: &str) -> Option<f64> {
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
