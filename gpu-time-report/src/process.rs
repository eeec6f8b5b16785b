//! The measured process.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::Budget;
use crate::Device;
use crate::units::{bounded, joined};

/// The measured process, or several processes whose reports were merged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Process {
    /// The file name of the program.
    pub name: String,
    /// The process id.
    pub pid: u32,
    /// The time at which measuring began, in RFC 3339 format (UTC).
    pub started: String,
    /// The wall time from the start to the snapshot, in nanoseconds.
    pub wall_ns: u64,
    /// The version of gpu-time.
    pub version: String,
    /// The version of the program, if it was given with `configure().program_version()`. In a
    /// merged report, this and the two following values are `None` if the reports differ.
    pub program_version: Option<String>,
    /// The label of the run from `GPU_TIME_LABEL`, such as a commit or an experiment.
    pub label: Option<String>,
    /// The name of the host that the process ran on.
    pub host: Option<String>,
    /// The reason why nothing could be timed on a GPU, or `None` if timing was possible.
    pub off: Option<String>,
    /// The timing budget and the cost so far, or `None` without a limit.
    pub budget: Option<Budget>,
    /// The reason why CUPTI could not record the kernels of any call, and what to do about it.
    /// `None` if it could, or if nothing was to be recorded.
    pub kernels: Option<String>,
    /// The number that `cuptiGetVersion` returns, such as 18 for CUDA 11.8, or `None` if CUPTI was
    /// not loaded.
    pub cupti_version: Option<u32>,
    /// Reasons to doubt the figures, and errors in the configuration.
    pub warnings: Vec<String>,
    /// The processes whose reports were merged into this one. Empty for the report of a single
    /// process. The wall time of a merged report is the sum of theirs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merged: Vec<Process>,
}

impl Process {
    /// Creates a process whose measurement began at `started`, a duration of `wall` ago.
    #[doc(hidden)]
    pub fn new(
        name: String,
        pid: u32,
        started: SystemTime,
        wall: Duration,
        off: Option<String>,
    ) -> Process {
        Process {
            name,
            pid,
            started: rfc3339(started),
            wall_ns: u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            off,
            ..Process::default()
        }
    }

    /// Returns the wall-clock times of the start and of the snapshot, in milliseconds since 1970.
    /// `None` if the start is not as gpu-time writes it.
    #[doc(hidden)]
    pub fn period_ms(&self) -> Option<[u64; 2]> {
        let start = since_1970_ms(&self.started)?;
        Some([start, start.saturating_add(self.wall_ns / 1_000_000)])
    }

    /// Returns the label, version and host, as far as they are known.
    pub(crate) fn provenance(&self) -> Option<String> {
        let program = |version: &String| format!("{} {version}", self.name);
        let parts = [
            self.label.as_ref().map(|label| format!("label {label}")),
            self.program_version.as_ref().map(program),
            self.host.as_ref().map(|host| format!("host {host}")).or_else(|| self.hosts()),
        ];
        joined(&parts, ", ")
    }

    /// Returns the value of `GPU_TIME_RECORD` that gives a run like this one enough phases. `None`
    /// if CUPTI, which they need, cannot record, or if the run is too short for them.
    pub(crate) fn advised_phases(&self) -> Option<&'static str> {
        let longest_ns = self.merged.iter().map(|process| process.wall_ns).max();
        let phases = match Duration::from_nanos(longest_ns.unwrap_or(self.wall_ns)).as_millis() {
            // CUPTI takes a good part of such a run to start.
            ..300 => return None,
            300..2_000 => "2ms/20ms",
            2_000..60_000 => "20ms/200ms",
            60_000.. => "20ms/1s",
        };
        self.kernels.is_none().then_some(phases)
    }

    /// Returns the host and the label of the processes that used a device of a merged report, where they are the same for
    /// all of them, but not for all processes of the report.
    pub(crate) fn origin(&self, device: &Device) -> Option<String> {
        let users = || device.used_by.iter().filter_map(|at| self.merged.get(*at as usize));
        let of = |text: fn(&Process) -> Option<&str>| {
            let first = text(users().next()?)?;
            let is_same = |process: &Process| text(process) == Some(first);
            (users().all(is_same) && !self.merged.iter().all(is_same)).then(|| first.to_owned())
        };
        let parts = [of(|process| process.host.as_deref()), of(|process| process.label.as_deref())];
        joined(&parts, ", ")
    }

    /// Returns the wall time of the processes that used a device, and at least a nanosecond.
    pub(crate) fn run_ns(&self, device: &Device) -> f64 {
        let of = |at: &u32| self.merged.get(*at as usize).map(|process| process.wall_ns as f64);
        let users: Option<f64> = device.used_by.iter().map(of).sum();
        let users = users.filter(|_| !device.used_by.is_empty());
        users.unwrap_or(self.wall_ns as f64).max(1.0)
    }

    /// Returns the time for which a device was in use: the time for which phases stand, if there are any, and otherwise the
    /// whole run.
    pub(crate) fn in_use_ns(&self, device: &Device) -> f64 {
        let covered_ns = device.coverage_of_all().map_or(0.0, |coverage| coverage.covered_ns);
        let run_ns = self.run_ns(device);
        if covered_ns > 0.0 { covered_ns.min(run_ns) } else { run_ns }
    }

    /// Returns the hosts of merged reports, if there are several.
    fn hosts(&self) -> Option<String> {
        const NAMED: usize = 4;
        let mut hosts: Vec<&str> =
            self.merged.iter().filter_map(|process| process.host.as_deref()).collect();
        hosts.sort_unstable();
        hosts.dedup();
        let named = hosts.iter().map(|host| (*host).to_owned()).collect();
        let named = bounded(named, NAMED, "more").join(", ");
        (hosts.len() > 1).then(|| format!("{} hosts: {named}", hosts.len()))
    }
}

/// Formats a time as in `2026-11-20T10:30:00.125Z`, without the fraction if it is zero. Times before
/// 1970 become 1970-01-01.
fn rfc3339(time: SystemTime) -> String {
    let since_1970 = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = since_1970.as_secs();
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let fraction = match since_1970.subsec_millis() {
        0 => String::new(),
        ms => format!(".{ms:03}"),
    };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}

/// Returns the milliseconds from 1970 to a time that is formatted by [`rfc3339`].
fn since_1970_ms(text: &str) -> Option<u64> {
    let numbers = |text: &str, separator: char| -> Option<[u64; 3]> {
        let number = |digits: &str| digits.parse::<u16>().ok().map(u64::from);
        text.split(separator).map(number).collect::<Option<Vec<_>>>()?.try_into().ok()
    };
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let (time, ms) = time.split_once('.').unwrap_or((time, "000"));
    let ([year, month, day], [hour, minute, second]) = (numbers(date, '-')?, numbers(time, ':')?);
    let ms: u64 = ms.parse().ok().filter(|ms| *ms < 1000)?;
    Some((((days(year, month, day)? * 24 + hour) * 60 + minute) * 60 + second) * 1000 + ms)
}

/// Returns the Gregorian date of a day, counted from 1970-01-01.
///
/// Years start in March, so that the leap day comes last and the lengths of the months before it
/// repeat every five months, which have 153 days.
fn date(days: u64) -> (u64, u64, u64) {
    const DAYS_IN_400_YEARS: u64 = 146_097;
    // Days from 0000-03-01 to 1970-01-01.
    let days = days + 719_468;
    let (era, day) = (days / DAYS_IN_400_YEARS, days % DAYS_IN_400_YEARS);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = if month < 10 { (year, month + 3) } else { (year + 1, month - 9) };
    (400 * era + year, month, day)
}

/// Returns the days from 1970-01-01 to a Gregorian date: the inverse of [`date`].
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    let (year, month) =
        if month > 2 { (year, month - 3) } else { (year.checked_sub(1)?, month + 9) };
    let years = 365 * year + year / 4 - year / 100 + year / 400;
    (years + (153 * month + 2) / 5 + day).checked_sub(719_469)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    fn at(seconds: u64) -> String {
        rfc3339(UNIX_EPOCH + Duration::from_secs(seconds))
    }

    #[test]
    fn hosts_of_merged_reports_are_named() {
        let on = |host: &str| Process { host: Some(host.to_owned()), ..fixtures::process(None) };
        let merged = |hosts: &[&str]| Process {
            host: None,
            label: None,
            program_version: None,
            merged: hosts.iter().map(|host| on(host)).collect(),
            ..fixtures::process(None)
        };
        let provenance = |hosts: &[&str]| merged(hosts).provenance();
        assert_eq!(provenance(&["b", "a", "b"]), Some("2 hosts: a, b".to_owned()));
        let many = provenance(&["a", "b", "c", "d", "e", "f"]);
        assert_eq!(many, Some("6 hosts: a, b, c, d, 2 more".to_owned()));
        assert_eq!(provenance(&["a"]), None);
    }

    #[test]
    fn advised_phases_fit_the_run() {
        let advised = |ms: u64| {
            Process { wall_ns: ms * 1_000_000, ..fixtures::process(None) }.advised_phases()
        };
        assert_eq!([56, 152].map(advised), [None, None]);
        assert_eq!(advised(300), Some("2ms/20ms"));
        assert_eq!(advised(2_000), Some("20ms/200ms"));
        assert_eq!(advised(60_000), Some("20ms/1s"));
    }

    #[test]
    fn rfc3339_of_edge_dates() {
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(at(1_000_000_000), "2001-09-09T01:46:40Z");
        assert_eq!(at(4_107_542_399), "2100-02-28T23:59:59Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00Z");
        assert_eq!(rfc3339(UNIX_EPOCH - Duration::from_secs(5)), at(0));
    }

    #[test]
    fn rfc3339_is_read_back() {
        for ms in [0, 5, 951_782_399_990, 1_000_000_000_000, 4_107_542_400_123] {
            let text = rfc3339(UNIX_EPOCH + Duration::from_millis(ms));
            assert_eq!(since_1970_ms(&text), Some(ms), "{text}");
        }
        for other in
            ["", "2026-11-20", "2026-11-20T10:30Z", "0000-01-01T00:00:00Z", "1-1-1T1:1:1.9999Z"]
        {
            assert_eq!(since_1970_ms(other), None, "{other}");
        }
    }

    #[test]
    fn date_agrees_with_the_calendar() {
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for days in 0..200_000 {
            assert_eq!(date(days), (year, month, day), "{days}");
            assert_eq!(super::days(year, month, day), Some(days));
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let length = match month {
                2 => 28 + u64::from(leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            day += 1;
            if day > length {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
    }
}
