//! The part of the run for which a device was in use. Shares of a device's time are shares of it.

use crate::{Coverage, Device, Process};

/// The minimum share of its processes' run for which a device is in use throughout.
const THROUGHOUT: f64 = 0.95;

/// What shares of a device that is in use throughout are of.
pub const RUN: &str = "the run";

/// What shares of several devices are of, if that differs.
const MIXED_USE: &str = "each GPU's time in use";

/// The time for which a device was in use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InUse {
    /// The time for which phases stand, if there are any, and otherwise the whole run, in nanoseconds. In a merged report,
    /// this is the sum over the processes that used the device.
    pub ns: f64,
    pub words: &'static str,
}

impl InUse {
    pub fn of(process: &Process, device: &Device) -> InUse {
        let run_ns = run_ns(process, device);
        let covered_ns = all_windows(device).map(|coverage| coverage.covered_ns);
        let ns = covered_ns.filter(|ns| *ns > 0.0).map_or(run_ns, |ns| ns.min(run_ns));
        let is_part = ns < THROUGHOUT * run_ns;
        InUse { ns, words: if is_part { "the time since the GPU's first use" } else { RUN } }
    }

    /// Returns the words for the times of several devices.
    pub fn words_of_all(all: impl Iterator<Item = InUse>) -> &'static str {
        let words = all.map(|in_use| in_use.words);
        words.reduce(|one, other| if one == other { one } else { MIXED_USE }).unwrap_or(RUN)
    }
}

/// Returns the phases of a device unless some of the merged reports with the device have none.
pub fn all_windows(device: &Device) -> Option<&Coverage> {
    device.known_coverage().filter(|_| device.windows_from.is_none())
}

/// Returns the wall time of the processes that used a device, and at least a nanosecond.
fn run_ns(process: &Process, device: &Device) -> f64 {
    let of = |at: &u32| process.merged.get(*at as usize).map(|process| process.wall_ns as f64);
    let users: Option<f64> = device.used_by.iter().map(of).sum();
    let users = users.filter(|_| !device.used_by.is_empty());
    users.unwrap_or(process.wall_ns as f64).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WindowsFrom;
    use crate::fixtures::{coverage, gpu, process};

    fn lasting(wall_ns: u64) -> Process {
        Process { wall_ns, ..process(None) }
    }

    #[test]
    fn windows_tell_since_when_a_device_is_in_use() {
        let process = lasting(1_000);
        let found = |covered_ns, windows_from| {
            let coverage = Some(Coverage { covered_ns, ..coverage() });
            let gpu = Device { coverage, windows_from, ..gpu() };
            let in_use = InUse::of(&process, &gpu);
            (in_use.ns, in_use.words)
        };
        assert_eq!(found(400.0, None), (400.0, "the time since the GPU's first use"));
        assert_eq!(found(980.0, None), (980.0, "the run"));
        assert_eq!(found(0.0, None), (1_000.0, "the run"));
        let of_some = Some(WindowsFrom { with: 1, of: 2 });
        assert_eq!(found(400.0, of_some), (1_000.0, "the run"));
        assert_eq!(InUse::of(&process, &gpu()).ns, 1_000.0);
    }

    #[test]
    fn only_users_of_a_device_count() {
        let merged = vec![lasting(300), lasting(500), lasting(200)];
        let process = Process { merged, ..lasting(1_000) };
        let used_by = |used_by| InUse::of(&process, &Device { used_by, ..gpu() }).ns;
        assert_eq!(used_by(vec![0, 2]), 500.0);
        assert_eq!((used_by(Vec::new()), used_by(vec![7])), (1_000.0, 1_000.0));
    }
}
