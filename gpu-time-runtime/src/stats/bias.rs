//! What is subtracted from a raw time for each bracket, and how far that may be off.

use crate::stats::pair_constant::Floor;
use crate::stats::pair_constant::PairConstant;
use gpu_time_report::units;

/// What CUPTI says of an empty kernel, in nanoseconds, by a word of the device's name. A convention of
/// CUPTI and not the same on every part: those of one compute capability are not taken for each other.
const KERNEL_BASES: &[(&str, f64)] = &[
    ("H200", 545.0), // with driver 580
];

/// How far the table may be off on a machine with the same part: one H200 was asked for the table, and
/// another said 609.
const BASE_ERROR_NS: f64 = 64.0;

/// What could not be measured is an H200's, with driver 580: what a kernel adds to an empty pair beyond its own
/// time by CUPTI, what a long queue adds to any, and the step of the clock.
const KERNEL_ERROR_NS: f64 = 925.0;
const QUEUE_ERROR_NS: f64 = 700.0;
const STEP_ERROR_NS: f64 = 32.0;

/// What a pair of events reads around a kernel that does nothing, measured in this process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Calibration {
    /// The only pair behind a hold.
    pub held: PairConstant,
    /// A pair with a long queue behind it, in nanoseconds; `None` where that could not be measured.
    pub queued_empty_ns: Option<f64>,
    /// A pair with nothing between, held, in nanoseconds; `None` where that could not be measured.
    pub pair_ns: Option<f64>,
}

impl Calibration {
    /// What a pair reads more where a long queue is behind it, in nanoseconds.
    pub fn queued_extra_ns(&self) -> f64 {
        self.queued_empty_ns.map_or(0.0, |ns| (ns - self.held.ns).max(0.0))
    }

    /// How far its held figure may be from the right one for a sample, in nanoseconds. Only what this
    /// library enqueues counts as queued, and a series is relieved of one figure, that of most of its
    /// samples; so the difference between the two is part of it.
    fn error_ns(&self) -> f64 {
        let queue_ns = self.queued_empty_ns.map(|ns| (ns - self.held.ns).abs());
        self.held.spread_ns + queue_ns.unwrap_or(QUEUE_ERROR_NS)
    }
}

/// What the user says of the bias.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ConfiguredBias {
    /// All of it, in nanoseconds.
    Bias(f64),
    /// What CUPTI says of an empty kernel on this machine, in nanoseconds.
    KernelBase(f64),
}

impl ConfiguredBias {
    /// What is wrong with it, for the report.
    pub fn warning(self, calibration: Option<Calibration>) -> Option<String> {
        let (ConfiguredBias::KernelBase(base_ns), held_ns) = (self, calibration?.held.ns) else {
            return None;
        };
        let [base, held] = [base_ns, held_ns].map(units::time);
        (base_ns > held_ns).then(|| {
            format!(
                "`cupti:` gives an empty kernel {base}, more than the {held} that a pair of events reads \
                 around one: nothing is subtracted"
            )
        })
    }
}

/// What is subtracted from a raw time for each bracket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bias {
    /// Of a bracket by itself.
    pub ns: f64,
    /// Of one with much queued behind it, which reads more; the same where that was not measured.
    pub queued_ns: f64,
    pub source: &'static str,
    /// How far it may be off. `None` for a given bias, and for the host's clock.
    pub error_ns: Option<f64>,
}

impl Bias {
    /// That of the host's clock.
    pub const NONE: Bias = Bias { ns: 0.0, queued_ns: 0.0, source: "", error_ns: None };

    /// The best that is known: what the user gives, else the held empty kernel less what CUPTI says of
    /// one, so that what is left agrees with CUPTI, else the empty pair alone.
    pub fn of(
        given: Option<ConfiguredBias>,
        calibration: Option<Calibration>,
        device: &str,
        floor: Option<Floor>,
    ) -> Option<Bias> {
        let (base_ns, source) = match given {
            Some(ConfiguredBias::Bias(ns)) => return Some(Bias::only(ns, "user")),
            Some(ConfiguredBias::KernelBase(ns)) => (Some(ns), "cupti"),
            None => (kernel_base_ns(device), "table"),
        };
        // What is subtracted was read by that clock.
        let step_ns = floor.and_then(|floor| floor.step_ns).unwrap_or(STEP_ERROR_NS);
        if let (Some(base_ns), Some(calibration)) = (base_ns, calibration) {
            let Calibration { held, queued_empty_ns, .. } = calibration;
            let base_error_ns = if source == "table" { BASE_ERROR_NS } else { 0.0 };
            return Some(Bias {
                ns: (held.ns - base_ns).max(0.0),
                queued_ns: if base_ns > held.ns {
                    0.0 // it makes no sense
                } else {
                    (queued_empty_ns.unwrap_or(held.ns) - base_ns).max(0.0)
                },
                source,
                error_ns: Some(calibration.error_ns() + base_error_ns + step_ns),
            });
        }
        floor.map(|Floor { pair_ns, .. }| {
            // What an empty pair leaves in is less than all that the empty kernel adds to it.
            let measured = calibration.map(|c| (c.held.ns - pair_ns).max(0.0) + c.error_ns());
            let error_ns = measured.unwrap_or(KERNEL_ERROR_NS + QUEUE_ERROR_NS) + step_ns;
            Bias { error_ns: Some(error_ns), ..Bias::only(pair_ns, "floor") }
        })
    }

    /// One figure for every bracket.
    fn only(ns: f64, source: &'static str) -> Bias {
        Bias { ns, queued_ns: ns, source, error_ns: None }
    }
}

fn kernel_base_ns(device: &str) -> Option<f64> {
    let is_named = |part: &str| device.split_whitespace().any(|word| word == part);
    KERNEL_BASES.iter().find(|(part, _)| is_named(part)).map(|(_, ns)| *ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    const H200: &str = "NVIDIA H200";
    const OTHER: &str = "NVIDIA GH200 480GB";
    const FLOOR: Floor = Floor { pair_ns: 1_280.0, step_ns: Some(32.0) };
    const MEASURED: Calibration = Calibration {
        held: PairConstant { ns: 2_752.0, spread_ns: 32.0, interval_ns: [2_752.0; 2] },
        queued_empty_ns: Some(3_360.0),
        pair_ns: Some(1_280.0),
    };

    fn bias(
        given: Option<ConfiguredBias>,
        calibration: Option<Calibration>,
        device: &str,
    ) -> Option<(f64, &'static str, Option<f64>)> {
        let bias = Bias::of(given, calibration, device, Some(FLOOR))?;
        Some((bias.ns, bias.source, bias.error_ns))
    }

    #[test]
    fn the_best_source_wins() {
        let base = Some(ConfiguredBias::KernelBase(600.0));
        assert_eq!(bias(None, Some(MEASURED), H200), Some((2_207.0, "table", Some(736.0))));
        assert_eq!(bias(base, Some(MEASURED), OTHER), Some((2_152.0, "cupti", Some(672.0))));
        for (given, calibration, device, error_ns) in [
            // 2752 - 1280 of a kernel, 608 of a queue, the spread, and a step.
            (None, Some(MEASURED), OTHER, 1_472.0 + 608.0 + 32.0 + 32.0),
            (None, None, H200, 1_625.0 + 32.0),
            (base, None, H200, 1_625.0 + 32.0),
        ] {
            let floor = Some((1_280.0, "floor", Some(error_ns)));
            assert_eq!(bias(given, calibration, device), floor);
        }
        let given = Some(ConfiguredBias::Bias(2_000.0));
        assert_eq!(bias(given, Some(MEASURED), H200), Some((2_000.0, "user", None)));
        assert_eq!(Bias::of(None, None, H200, None), None);
    }

    /// An H100 is not an H200, nor is a part whose name ends like it.
    #[test]
    fn a_part_is_known_by_its_name() {
        for known in [H200, "NVIDIA H200 NVL", "NVIDIA H200 MIG 1g.18gb"] {
            assert_eq!(kernel_base_ns(known), Some(545.0), "{known}");
        }
        for other in [OTHER, "NVIDIA H100 80GB HBM3", ""] {
            assert_eq!(kernel_base_ns(other), None, "{other}");
        }
    }

    #[test]
    fn a_queue_has_a_bias_of_its_own() {
        let bias = |calibration| Bias::of(None, Some(calibration), H200, None).unwrap().queued_ns;
        assert_eq!(bias(MEASURED), 2_815.0);
        assert_eq!(bias(Calibration { queued_empty_ns: None, ..MEASURED }), 2_207.0);
    }

    #[test]
    fn a_bias_is_never_negative() {
        let base = Some(ConfiguredBias::KernelBase(5_000.0));
        assert_eq!(bias(base, Some(MEASURED), H200).map(|bias| bias.0), Some(0.0));
        // Nor is anything removed from queued samples, around which a pair reads more than that.
        let given = Some(ConfiguredBias::KernelBase(3_000.0));
        let both = Bias::of(given, Some(MEASURED), H200, Some(FLOOR)).unwrap();
        assert_eq!((both.ns, both.queued_ns), (0.0, 0.0));
        let warning = |given: ConfiguredBias| given.warning(Some(MEASURED));
        assert_eq!(
            warning(ConfiguredBias::KernelBase(5_000.0)).as_deref(),
            Some(
                "`cupti:` gives an empty kernel 5.000 µs, more than the 2.752 µs that a pair of events \
                 reads around one: nothing is subtracted"
            )
        );
        for sound in [ConfiguredBias::KernelBase(2_752.0), ConfiguredBias::Bias(5_000.0)] {
            assert_eq!(warning(sound), None, "{sound:?}");
        }
    }

    #[test]
    fn a_queue_that_could_not_be_measured_counts_as_an_h200s() {
        let half = Calibration { queued_empty_ns: None, ..MEASURED };
        assert_eq!(bias(None, Some(half), H200), Some((2_207.0, "table", Some(828.0))));
        assert_eq!(bias(None, Some(half), OTHER), Some((1_280.0, "floor", Some(2_236.0))));
    }

    #[test]
    fn the_step_of_the_clock_is_part_of_the_error() {
        for (step_ns, error_ns) in [(Some(32.0), 736.0), (Some(1_000.0), 1_704.0), (None, 736.0)] {
            let floor = Some(Floor { step_ns, ..FLOOR });
            let bias = Bias::of(None, Some(MEASURED), H200, floor).unwrap();
            assert_eq!(bias.error_ns, Some(error_ns), "{step_ns:?}");
        }
    }
}
