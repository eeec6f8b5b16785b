//! What is subtracted from a raw time for each bracket, and how far that may be off.

use crate::gpu::Floor;

/// What CUPTI says of an empty kernel, in nanoseconds, by compute capability. A convention of CUPTI and
/// not the same on every part; measured on the part named.
const KERNEL_BASES: &[((u32, u32), f64)] = &[
    ((9, 0), 545.0), // NVIDIA H200, driver 580
];

/// How far the table may be off on a machine with the same part: one H200 was asked for the table, and
/// another said 609.
const BASE_ERROR_NS: f64 = 64.0;

/// What a pair of events reads around a kernel that does nothing, measured in this process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Calibration {
    /// The only pair behind a hold, in nanoseconds: a low quantile.
    pub held_empty_ns: f64,
    /// A pair with a long queue behind it, in nanoseconds; `None` where that could not be measured.
    pub queued_empty_ns: Option<f64>,
    /// From the low quantile of held pairs to the high one, in nanoseconds.
    pub spread_ns: f64,
}

impl Calibration {
    /// How far its held figure may be from the right one for a sample, in nanoseconds. Only what this
    /// library enqueues counts as queued, and a series is relieved of one figure, that of most of its
    /// samples; so the difference between the two is part of it.
    fn error_ns(&self) -> Option<f64> {
        Some(self.spread_ns + (self.queued_empty_ns? - self.held_empty_ns).abs())
    }
}

/// What the user says of the bias.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Given {
    /// All of it, in nanoseconds.
    Bias(f64),
    /// What CUPTI says of an empty kernel on this machine, in nanoseconds.
    KernelBase(f64),
}

/// What is subtracted from a raw time for each bracket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bias {
    /// Of a bracket by itself.
    pub ns: f64,
    /// Of one with much queued behind it, which reads more; the same where that was not measured.
    pub queued_ns: f64,
    pub source: &'static str,
    /// How far it may be off. `None` for an empty pair, which leaves in what a kernel adds to its own
    /// time, and for a given bias: neither is measured here.
    pub error_ns: Option<f64>,
}

impl Bias {
    /// That of the host's clock.
    pub const NONE: Bias = Bias { ns: 0.0, queued_ns: 0.0, source: "", error_ns: None };

    /// The best that is known: what the user gives, else the held empty kernel less what CUPTI says of
    /// one, so that what is left agrees with CUPTI, else the empty pair alone.
    pub fn of(
        given: Option<Given>,
        calibration: Option<Calibration>,
        capability: (u32, u32),
        floor: Option<Floor>,
    ) -> Option<Bias> {
        let (base_ns, source) = match given {
            Some(Given::Bias(ns)) => return Some(Bias::only(ns, "user")),
            Some(Given::KernelBase(ns)) => (Some(ns), "cupti"),
            None => (kernel_base_ns(capability), "table"),
        };
        if let (Some(base_ns), Some(calibration)) = (base_ns, calibration) {
            let Calibration { held_empty_ns, queued_empty_ns, .. } = calibration;
            let base_error_ns = if source == "table" { BASE_ERROR_NS } else { 0.0 };
            return Some(Bias {
                ns: (held_empty_ns - base_ns).max(0.0),
                queued_ns: (queued_empty_ns.unwrap_or(held_empty_ns) - base_ns).max(0.0),
                source,
                error_ns: calibration.error_ns().map(|ns| ns + base_error_ns),
            });
        }
        floor.map(|floor| Bias::only(floor.pair_ns, "floor"))
    }

    /// One figure for every bracket.
    fn only(ns: f64, source: &'static str) -> Bias {
        Bias { ns, queued_ns: ns, source, error_ns: None }
    }
}

fn kernel_base_ns(capability: (u32, u32)) -> Option<f64> {
    KERNEL_BASES.iter().find(|(known, _)| *known == capability).map(|(_, ns)| *ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOPPER: (u32, u32) = (9, 0);
    const UNKNOWN: (u32, u32) = (0, 0);
    const FLOOR: Floor = Floor { pair_ns: 1_280.0, step_ns: Some(32.0) };
    const MEASURED: Calibration =
        Calibration { held_empty_ns: 2_752.0, queued_empty_ns: Some(3_360.0), spread_ns: 32.0 };

    fn bias(
        given: Option<Given>,
        calibration: Option<Calibration>,
        capability: (u32, u32),
    ) -> Option<(f64, &'static str, Option<f64>)> {
        let bias = Bias::of(given, calibration, capability, Some(FLOOR))?;
        Some((bias.ns, bias.source, bias.error_ns))
    }

    #[test]
    fn the_best_source_wins() {
        let base = Some(Given::KernelBase(600.0));
        assert_eq!(bias(None, Some(MEASURED), HOPPER), Some((2_207.0, "table", Some(704.0))));
        assert_eq!(bias(base, Some(MEASURED), UNKNOWN), Some((2_152.0, "cupti", Some(640.0))));
        for (given, calibration, capability) in
            [(None, Some(MEASURED), UNKNOWN), (None, None, HOPPER), (base, None, HOPPER)]
        {
            assert_eq!(bias(given, calibration, capability), Some((1_280.0, "floor", None)));
        }
        let given = Some(Given::Bias(2_000.0));
        assert_eq!(bias(given, Some(MEASURED), HOPPER), Some((2_000.0, "user", None)));
        assert_eq!(Bias::of(None, None, HOPPER, None), None);
    }

    #[test]
    fn a_queue_has_a_bias_of_its_own() {
        let bias = |calibration| Bias::of(None, Some(calibration), HOPPER, None).unwrap().queued_ns;
        assert_eq!(bias(MEASURED), 2_815.0);
        assert_eq!(bias(Calibration { queued_empty_ns: None, ..MEASURED }), 2_207.0);
    }

    #[test]
    fn a_bias_is_never_negative() {
        let base = Some(Given::KernelBase(5_000.0));
        assert_eq!(bias(base, Some(MEASURED), HOPPER).map(|bias| bias.0), Some(0.0));
    }

    #[test]
    fn the_error_is_unknown_where_a_regime_is() {
        let half = Calibration { queued_empty_ns: None, ..MEASURED };
        assert_eq!(bias(None, Some(half), HOPPER), Some((2_207.0, "table", None)));
    }
}
