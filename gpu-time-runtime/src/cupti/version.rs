//! The versions of CUPTI whose records the runtime can read.

use gpu_time_report::surcharge;

/// CUPTI's version in CUDA 11.8, the oldest whose records have all fields that the runtime reads.
const OLDEST: u32 = 18;
/// CUPTI's version in CUDA 12.9 Update 1, the last before versions changed to the form `130000`.
const LAST_SHORT: u32 = 28;
const FIRST_LONG: u32 = 130_000;
/// The first version that is too new: the layout of its records is unknown.
const TOO_NEW: u32 = 140_000;
/// CUPTI's version in CUDA 13.3, the first to which several tools can subscribe without losing records. In 13.2
/// this is a beta feature, and records of many calls are missing (seen with 13.2 Update 2).
const FIRST_SHARED: u32 = 130_300;

/// Returns the reason if the runtime refuses a version, as returned by `cuptiGetVersion`.
pub(super) fn why_refused(version: u32) -> Option<String> {
    let is_accepted =
        (OLDEST..=LAST_SHORT).contains(&version) || (FIRST_LONG..TOO_NEW).contains(&version);
    (!is_accepted).then(|| {
        let release = if version < OLDEST {
            "before CUDA 11.8".to_owned()
        } else if version < FIRST_LONG {
            "unknown".to_owned()
        } else {
            format!("CUDA {}", toolkit(version))
        };
        format!("CUPTI version {version} ({release}): expected one of CUDA 11.8 to 13.x")
    })
}

/// Returns the CUDA version of the toolkit that a version belongs to, such as `13.0`, or only `12`.
pub(super) fn toolkit(version: u32) -> String {
    match version {
        OLDEST => "11.8".to_owned(),
        ..FIRST_LONG => "12".to_owned(),
        _ => format!("{}.{}", version / 10_000, version / 100 % 100),
    }
}

/// Returns the major part of a CUDA version, such as `12` of `12.4`.
pub(super) fn major(cuda: &str) -> Option<u32> {
    cuda.split('.').next()?.parse().ok()
}

/// Returns `true` if the driver, which implements this CUDA version, is too old for a version of CUPTI.
/// Toolkits work on all drivers of their own major version and on newer ones.
pub(super) fn is_too_new(version: u32, driver: &str) -> bool {
    major(&toolkit(version)) > major(driver)
}

/// Returns `true` if recording can be stopped while the program runs. Before CUDA 13.0, a thread that switches a
/// kind of activity off and a thread that launches may deadlock (seen with CUDA 12.9 Update 1).
pub(super) fn can_stop(version: u32) -> bool {
    !surcharge::records_until_exit(version)
}

/// Returns `true` if several tools can subscribe to this version at the same time.
pub(super) fn can_share(version: u32) -> bool {
    version >= FIRST_SHARED
}

/// Returns the host time in nanoseconds that recording adds to a launch, as measured on an H200, including the
/// look-up of its call.
pub(super) fn launch_cost_ns(version: u32) -> u64 {
    if version >= FIRST_LONG { 500 } else { 1_600 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuda_11_8_to_13_is_accepted() {
        for version in [18, 19, 22, 28, 130_000, 130_001, 130_200, 130_500, 139_999] {
            assert_eq!(why_refused(version), None, "{version}");
        }
    }

    #[test]
    fn newer_major_version_than_the_driver_is_too_new() {
        for (version, driver, is_new) in [
            (130_000, "12.9", true),
            (130_500, "13.0", false),
            (130_000, "14.0", false),
            (LAST_SHORT, "12.0", false),
            (19, "11.8", true),
            (OLDEST, "11.4", false),
        ] {
            assert_eq!(is_too_new(version, driver), is_new, "{version} on {driver}");
        }
    }

    #[test]
    fn versions_from_13_0_on_can_stop() {
        assert!(can_stop(130_000) && can_stop(130_500));
        assert!(!can_stop(LAST_SHORT) && !can_stop(OLDEST));
    }

    #[test]
    fn other_versions_are_refused_by_name() {
        for (version, release) in [
            (0, "before CUDA 11.8"),
            (12, "before CUDA 11.8"),
            (17, "before CUDA 11.8"),
            (29, "unknown"),
            (99, "unknown"),
            (140_000, "CUDA 14.0"),
            (990_100, "CUDA 99.1"),
        ] {
            let expected =
                format!("CUPTI version {version} ({release}): expected one of CUDA 11.8 to 13.x");
            assert_eq!(why_refused(version), Some(expected));
        }
    }

    #[test]
    fn versions_from_13_3_on_are_shared() {
        assert!([18, 28, 130_000, 130_202].iter().all(|version| !can_share(*version)));
        assert!([130_300, 130_500].iter().all(|version| can_share(*version)));
    }
}
