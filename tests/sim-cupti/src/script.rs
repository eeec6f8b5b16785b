//! The script, from `GPU_TIME_TEST_SIM_CUPTI`: faults in the delivery of records.

use std::sync::LazyLock;

use crate::version::{self, Traits};

/// Name of the environment variable with the script.
pub(crate) const VARIABLE: &str = "GPU_TIME_TEST_SIM_CUPTI";

/// The faults of the stand-in, and other deviations from CUPTI. A period of 0 means never.
pub(crate) struct Script {
    /// The version that the library presents. The script's text does not contain it.
    pub version: &'static Traits,
    /// Drops every nth record, and counts it as dropped.
    pub drop: u64,
    /// Loses every nth record without counting it.
    pub lose: u64,
    /// Reports the times of every nth record as 0.
    pub zero: u64,
    /// Delivers a buffer only at the nth flush after the one at which it was complete.
    pub late: u64,
    /// Puts at most this many records into a buffer; 0 for as many as fit.
    pub records: usize,
    /// Delivers buffers, and the records in them, newest first.
    pub reversed: bool,
    /// Delivers all buffers from an exit handler.
    pub exit: bool,
    /// Makes flushes and loads of code take milliseconds, and aborts the process on calls during them
    /// that may deadlock the real library, such as switching a kind.
    pub fragile: bool,
    /// The kinds of activity that it refuses to record.
    pub refused: Vec<u32>,
    /// Another client, which has subscribed first.
    pub other: Other,
}

/// The other client, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Other {
    None,
    /// It allows other clients.
    Shared,
    /// It does not allow other clients.
    Exclusive,
}

static SCRIPT: LazyLock<Script> = LazyLock::new(|| {
    let text = std::env::var(VARIABLE).unwrap_or_default();
    Script::parse(&text).unwrap_or_else(|error| {
        // A test with a misspelled script must fail, not run without its faults.
        eprintln!("stand-in for CUPTI: {error}");
        std::process::abort()
    })
});

/// Returns the script of this process.
pub(crate) fn script() -> &'static Script {
    &SCRIPT
}

impl Script {
    /// Parses `key=value,…`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut script = Self {
            version: version::presented(),
            drop: 0,
            lose: 0,
            zero: 0,
            late: 0,
            records: 0,
            reversed: false,
            exit: false,
            fragile: false,
            refused: Vec::new(),
            other: Other::None,
        };
        for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            let (key, value) = item.split_once('=').unwrap_or((item, ""));
            let invalid = || format!("invalid value `{value}` for `{key}`");
            let number = || value.parse::<u64>().map_err(|_| invalid());
            match key {
                "drop" => script.drop = number()?,
                "lose" => script.lose = number()?,
                "zero" => script.zero = number()?,
                "late" => script.late = number()?,
                "records" => script.records = number()? as usize,
                "reversed" => script.reversed = true,
                "exit" => script.exit = true,
                "fragile" => script.fragile = true,
                "refuse" => script.refused.push(number()? as u32),
                "other" => {
                    script.other = match value {
                        "shared" => Other::Shared,
                        "exclusive" => Other::Exclusive,
                        _ => return Err(invalid()),
                    }
                }
                _ => return Err(format!("unknown key `{key}`")),
            }
        }
        Ok(script)
    }
}

/// Returns `true` for every nth number.
pub(crate) fn is_due(period: u64, number: u64) -> bool {
    period != 0 && number.is_multiple_of(period)
}
