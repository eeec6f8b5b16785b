//! The script, from `GPU_TIME_TEST_SIM_CUPTI`: the version, and faults in the delivery of records.

use std::sync::LazyLock;

use crate::version::Traits;

/// Name of the variable.
pub(crate) const VARIABLE: &str = "GPU_TIME_TEST_SIM_CUPTI";

/// The faults of the stand-in, and other departures from CUPTI. A period of 0 is never.
pub(crate) struct Script {
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
    /// Takes 5 ms for a flush, and ends the process if a kind is switched meanwhile: the real library
    /// may then wait for ever.
    pub fragile: bool,
    /// Another client has subscribed before.
    pub other: Other,
}

/// The other client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Other {
    None,
    /// One that allows others.
    Shared,
    /// One that does not.
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
        let version = Traits::of("13.0").expect("a known version");
        let mut script = Self {
            version,
            drop: 0,
            lose: 0,
            zero: 0,
            late: 0,
            records: 0,
            reversed: false,
            exit: false,
            fragile: false,
            other: Other::None,
        };
        for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            let (key, value) = item.split_once('=').unwrap_or((item, ""));
            let invalid = || format!("invalid value `{value}` for `{key}`");
            let number = || value.parse::<u64>().map_err(|_| invalid());
            match key {
                "version" => script.version = Traits::of(value).ok_or_else(invalid)?,
                "drop" => script.drop = number()?,
                "lose" => script.lose = number()?,
                "zero" => script.zero = number()?,
                "late" => script.late = number()?,
                "records" => script.records = number()? as usize,
                "reversed" => script.reversed = true,
                "exit" => script.exit = true,
                "fragile" => script.fragile = true,
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
