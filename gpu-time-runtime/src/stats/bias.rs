//! Event bias: the constant subtracted from each bracket's time, and its error.

use crate::stats::{pair_constant::Floor, pair_constant::PairConstant, quantile::quantile};
use gpu_time_report::units;

/// CUPTI's duration for an empty kernel in nanoseconds, by words in the device's name, with driver 580. It
/// depends on the part, so parts with the same compute capability need separate entries.
const KERNEL_BASES: &[(&str, f64)] = &[("H100 80GB HBM3", 864.0), ("H200", 545.0)];

/// The error of the table's value on another machine with the same part: H200s measured 545 to 609, H100s 863
/// to 896.
const BASE_ERROR_NS: f64 = 64.0;

// Fallbacks for failed measurements, taken from an H200 with driver 580.

/// The time that a kernel adds to an empty pair, in excess of the duration that CUPTI reports.
const KERNEL_ERROR_NS: f64 = 925.0;
/// The time that a long queue adds to a pair.
const QUEUE_ERROR_NS: f64 = 700.0;
/// The resolution of event times.
const STEP_ERROR_NS: f64 = 32.0;

/// Event-pair measurements from this process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Calibration {
    /// The time of a single pair around an empty kernel, on a held stream.
    pub held: PairConstant,
    /// The time of a pair around an empty kernel with a long queue behind it, in nanoseconds.
    /// `None` if it could not be measured.
    pub queued_empty_ns: Option<f64>,
    /// The time of an empty pair on a held stream, in nanoseconds. `None` if it could not be
    /// measured.
    pub pair_ns: Option<f64>,
    /// The time that nested brackets add to the bracket around them. `None` if it could not be
    /// measured.
    pub inner: Option<InnerCost>,
}

/// The time that nested brackets add to the bracket around them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct InnerCost {
    /// The time added by each of the last [`NEAR`](Self::NEAR) nested brackets, in nanoseconds.
    pub near_ns: f64,
    /// The time added by each nested bracket before those, in nanoseconds. It is longer, because an
    /// event takes longer with a long queue behind it.
    pub far_ns: f64,
    /// The largest possible error of each of the two, in nanoseconds. It includes their difference, because there
    /// is no sharp border between near and far brackets, and a step of the device's clock.
    pub error_ns: f64,
}

/// A measurement of the time that several nested brackets add in total, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct AddedTime {
    /// The median.
    pub ns: f64,
    /// The distance from the median to the 90 % quantile.
    pub spread_ns: f64,
}

impl InnerCost {
    /// The number of nested brackets, counted from the last, that have no long queue behind them.
    pub const NEAR: usize = 12;

    /// Computes the cost from two measurements: half of [`NEAR`](Self::NEAR) nested brackets add
    /// `few` in total, and twice `NEAR` add `many`. Returns `None` unless both results are positive.
    pub fn of(few: AddedTime, many: AddedTime) -> Option<InnerCost> {
        let [half, near] = [Self::NEAR / 2, Self::NEAR].map(|count| count as f64);
        let near_ns = few.ns / half;
        let far_ns = (many.ns - near_ns * near) / near;
        let spread_ns = (few.spread_ns / half).max(many.spread_ns / near);
        let error_ns = spread_ns + (far_ns - near_ns).abs() + STEP_ERROR_NS;
        (near_ns > 0.0 && far_ns > 0.0).then_some(InnerCost { near_ns, far_ns, error_ns })
    }

    /// Returns the total for `inner` nested brackets. With `queued`, even the near ones have a long queue behind them.
    pub fn total_ns(self, inner: u16, queued: bool) -> f64 {
        let near = inner.min(Self::NEAR as u16);
        let far = f64::from(inner - near);
        f64::from(near) * if queued { self.far_ns } else { self.near_ns } + far * self.far_ns
    }
}

impl Calibration {
    /// Returns the time that `inner` brackets inside a bracket add to it, and a long queue behind it if it is `queued`.
    /// `None` if a part of it could not be measured.
    pub fn added_ns(&self, inner: u16, queued: bool) -> Option<f64> {
        let inner_ns = if inner == 0 { 0.0 } else { self.inner?.total_ns(inner, queued) };
        let queue_ns = if queued { (self.queued_empty_ns? - self.held.ns).max(0.0) } else { 0.0 };
        Some(inner_ns + queue_ns)
    }

    /// Returns the error of the held value for a single sample, in nanoseconds. It includes the
    /// difference between the held and the queued value, because a sample counts as queued only if this
    /// library's work is queued behind it.
    fn error_ns(&self) -> f64 {
        let queue_ns = self.queued_empty_ns.map(|ns| (ns - self.held.ns).abs());
        self.held.spread_ns + queue_ns.unwrap_or(QUEUE_ERROR_NS)
    }
}

/// CUPTI's duration for an empty kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct KernelBase {
    /// The median, in nanoseconds.
    pub ns: f64,
    /// The distance from the median to the 90 % quantile.
    pub error_ns: f64,
}

impl KernelBase {
    /// The upper quantile that defines the error.
    const HIGH: f64 = 0.9;

    /// Returns the base for these durations. `None` if there are none.
    pub fn of(mut durations: Vec<f64>) -> Option<KernelBase> {
        durations.sort_by(f64::total_cmp);
        let ns = quantile(&durations, 0.5)?;
        Some(KernelBase { ns, error_ns: quantile(&durations, Self::HIGH)? - ns })
    }

    /// Returns the table's base for a device with this name.
    fn of_part(device: &str) -> Option<KernelBase> {
        let words = format!(" {device} ");
        let is_named = |part: &str| words.contains(&format!(" {part} "));
        let (_, ns) = KERNEL_BASES.iter().find(|(part, _)| is_named(part))?;
        Some(KernelBase { ns: *ns, error_ns: BASE_ERROR_NS })
    }
}

/// The known bases of one device.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KnownBases<'a> {
    /// Measured in this process.
    pub measured: Option<KernelBase>,
    /// Stored by an earlier run or `gpu-time calibrate`.
    pub stored: Option<KernelBase>,
    /// The name of the device, for the table.
    pub device: &'a str,
}

impl KnownBases<'_> {
    /// Returns the best base, and its source for the report. A base measured by CUPTI is skipped if
    /// it exceeds `held_ns`, the time of a pair around an empty kernel, because it must then be
    /// wrong.
    fn best(&self, held_ns: f64) -> Option<(KernelBase, &'static str)> {
        let cupti = [self.measured, self.stored].into_iter().flatten();
        let mut cupti = cupti.filter(|base| base.ns <= held_ns);
        let table = || KernelBase::of_part(self.device).map(|base| (base, "table"));
        cupti.next().map(|base| (base, "cupti")).or_else(table)
    }
}

/// The user's bias setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ConfiguredBias {
    /// The bias, in nanoseconds.
    Bias(f64),
    /// CUPTI's duration for an empty kernel on this machine, in nanoseconds.
    KernelBase(f64),
}

impl ConfiguredBias {
    /// Returns a warning for the report if the setting contradicts the calibration.
    pub fn warning(self, calibration: Option<Calibration>) -> Option<String> {
        let (ConfiguredBias::KernelBase(base_ns), held_ns) = (self, calibration?.held.ns) else {
            return None;
        };
        let [base, held] = [base_ns, held_ns].map(units::time);
        (base_ns > held_ns).then(|| {
            format!(
                "`cupti:` sets an empty kernel to {base}, but a pair of events measures only {held} \
                 around one: the bias is 0"
            )
        })
    }
}

/// The time to subtract for each bracket, in addition to what others [added](crate::types::sample::Sample::added_ns).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bias {
    /// The bias of a bracket with no queue behind it, and none inside.
    pub ns: f64,
    /// The source of the bias, as reported.
    pub source: &'static str,
    /// The largest possible error. `None` for a user-defined bias and for the host clock.
    pub error_ns: Option<f64>,
}

impl Bias {
    /// The bias of the host clock.
    pub const NONE: Bias = Bias { ns: 0.0, source: "", error_ns: None };

    /// Returns the bias from the best available source: the user's value; otherwise the held empty
    /// kernel minus CUPTI's duration for one, so that net times agree with CUPTI; otherwise the
    /// empty pair.
    pub fn of(
        given: Option<ConfiguredBias>,
        calibration: Option<Calibration>,
        bases: KnownBases<'_>,
        floor: Option<Floor>,
    ) -> Option<Bias> {
        let base = match given {
            Some(ConfiguredBias::Bias(ns)) => {
                return Some(Bias { ns, source: "user", error_ns: None });
            }
            Some(ConfiguredBias::KernelBase(ns)) => {
                Some((KernelBase { ns, error_ns: 0.0 }, "cupti"))
            }
            None => calibration.and_then(|calibration| bases.best(calibration.held.ns)),
        };
        // The calibration has the same resolution as event times.
        let step_ns = floor.and_then(|floor| floor.step_ns).unwrap_or(STEP_ERROR_NS);
        if let (Some((base, source)), Some(calibration)) = (base, calibration) {
            return Some(Bias {
                // The user's base may be larger.
                ns: (calibration.held.ns - base.ns).max(0.0),
                source,
                error_ns: Some(calibration.error_ns() + base.error_ns + step_ns),
            });
        }
        floor.map(|Floor { pair_ns, .. }| {
            // After subtracting an empty pair, at most the time that an empty kernel adds to the
            // pair remains.
            let measured = calibration.map(|c| (c.held.ns - pair_ns).max(0.0) + c.error_ns());
            let error_ns = measured.unwrap_or(KERNEL_ERROR_NS + QUEUE_ERROR_NS) + step_ns;
            Bias { ns: pair_ns, source: "floor", error_ns: Some(error_ns) }
        })
    }
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
        inner: Some(InnerCost { near_ns: 2_000.0, far_ns: 3_000.0, error_ns: 500.0 }),
    };

    fn bias(
        given: Option<ConfiguredBias>,
        calibration: Option<Calibration>,
        device: &str,
    ) -> Option<(f64, &'static str, Option<f64>)> {
        let bias = Bias::of(given, calibration, named(device), Some(FLOOR))?;
        Some((bias.ns, bias.source, bias.error_ns))
    }

    fn named(device: &str) -> KnownBases<'_> {
        KnownBases { device, ..KnownBases::default() }
    }

    #[test]
    fn measured_base_precedes_stored_one_and_table() {
        let [measured, stored] =
            [(576.0, 64.0), (609.0, 32.0)].map(|(ns, error_ns)| Some(KernelBase { ns, error_ns }));
        let bias = |given, measured, stored, device| {
            let bases = KnownBases { measured, stored, device };
            let bias = Bias::of(given, Some(MEASURED), bases, Some(FLOOR)).unwrap();
            (bias.ns, bias.source, bias.error_ns)
        };
        // 672 = 608 for a queue + 32 for the spread + 32 for a step. The base's own error is added.
        assert_eq!(bias(None, measured, stored, H200), (2_176.0, "cupti", Some(672.0 + 64.0)));
        assert_eq!(bias(None, None, stored, H200), (2_143.0, "cupti", Some(672.0 + 32.0)));
        assert_eq!(bias(None, None, stored, OTHER), (2_143.0, "cupti", Some(672.0 + 32.0)));
        assert_eq!(bias(None, None, None, H200), (2_207.0, "table", Some(672.0 + 64.0)));
        let given = Some(ConfiguredBias::KernelBase(600.0));
        assert_eq!(bias(given, measured, stored, H200), (2_152.0, "cupti", Some(672.0)));
        let given = Some(ConfiguredBias::Bias(2_000.0));
        assert_eq!(bias(given, measured, stored, H200), (2_000.0, "user", None));
    }

    /// A base above the held pair cannot be right. The next source is used.
    #[test]
    fn impossible_base_is_passed_over() {
        let [wrong, stored] = [5_000.0, 609.0].map(|ns| Some(KernelBase { ns, error_ns: 0.0 }));
        let bias = |measured, stored, device| {
            let bases = KnownBases { measured, stored, device };
            Bias::of(None, Some(MEASURED), bases, Some(FLOOR)).map(|bias| (bias.ns, bias.source))
        };
        assert_eq!(bias(wrong, stored, H200), Some((2_143.0, "cupti")));
        assert_eq!(bias(wrong, wrong, H200), Some((2_207.0, "table")));
        assert_eq!(bias(wrong, wrong, OTHER), Some((1_280.0, "floor")));
    }

    #[test]
    fn error_of_inner_brackets_covers_near_and_far_ones() {
        let [few, many] = [(12_000.0, 60.0), (60_000.0, 600.0)]
            .map(|(ns, spread_ns)| AddedTime { ns, spread_ns });
        // 2,000 ns each for 6, and 60,000 for 12 near and 12 far ones. The wider spread is 50 ns each.
        let error_ns = 50.0 + 1_000.0 + STEP_ERROR_NS;
        let cost = InnerCost { near_ns: 2_000.0, far_ns: 3_000.0, error_ns };
        assert_eq!(InnerCost::of(few, many), Some(cost));
        assert_eq!(InnerCost::of(AddedTime { ns: -1.0, ..few }, many), None);
    }

    #[test]
    fn error_of_base_reaches_to_slow_tenth() {
        let mut durations = vec![545.0; 20];
        assert_eq!(KernelBase::of(durations.clone()).unwrap().error_ns, 0.0);
        durations.extend([609.0; 10]);
        assert_eq!(KernelBase::of(durations), Some(KernelBase { ns: 545.0, error_ns: 64.0 }));
        assert_eq!(KernelBase::of(Vec::new()), None);
    }

    #[test]
    fn best_source_wins() {
        let base = Some(ConfiguredBias::KernelBase(600.0));
        assert_eq!(bias(None, Some(MEASURED), H200), Some((2_207.0, "table", Some(736.0))));
        assert_eq!(bias(base, Some(MEASURED), OTHER), Some((2_152.0, "cupti", Some(672.0))));
        for (given, calibration, device, error_ns) in [
            // 2752 - 1280 for a kernel, 608 for a queue, then the spread and a step.
            (None, Some(MEASURED), OTHER, 1_472.0 + 608.0 + 32.0 + 32.0),
            (None, None, H200, 1_625.0 + 32.0),
            (base, None, H200, 1_625.0 + 32.0),
        ] {
            let floor = Some((1_280.0, "floor", Some(error_ns)));
            assert_eq!(bias(given, calibration, device), floor);
        }
        let given = Some(ConfiguredBias::Bias(2_000.0));
        assert_eq!(bias(given, Some(MEASURED), H200), Some((2_000.0, "user", None)));
        assert_eq!(Bias::of(None, None, named(H200), None), None);
    }

    /// Only a part with the exact words in its name is meant: a name that merely ends in "H200" is another part, and
    /// so are H100s with other memory.
    #[test]
    fn part_is_recognized_by_words() {
        let known = [H200, "NVIDIA H200 NVL", "NVIDIA H200 MIG 1g.18gb"].map(|name| (name, 545.0));
        for (known, ns) in known.into_iter().chain([("NVIDIA H100 80GB HBM3", 864.0)]) {
            let base = KernelBase { ns, error_ns: 64.0 };
            assert_eq!(KernelBase::of_part(known), Some(base), "{known}");
        }
        for other in [OTHER, "NVIDIA H100 PCIe", ""] {
            assert_eq!(KernelBase::of_part(other), None, "{other}");
        }
    }

    #[test]
    fn far_brackets_add_more_and_all_are_far_before_a_queue() {
        let cost = InnerCost { near_ns: 20.0, far_ns: 40.0, error_ns: 0.0 };
        let total_ns = |inner, queued| cost.total_ns(inner, queued);
        assert_eq!([0, 3, 12, 15].map(|inner| total_ns(inner, false)), [0.0, 60.0, 240.0, 360.0]);
        assert_eq!([0, 3, 15].map(|inner| total_ns(inner, true)), [0.0, 120.0, 600.0]);
    }

    #[test]
    fn bias_is_never_negative() {
        let base = Some(ConfiguredBias::KernelBase(5_000.0));
        assert_eq!(bias(base, Some(MEASURED), H200).map(|bias| bias.0), Some(0.0));
        let warning = |given: ConfiguredBias| given.warning(Some(MEASURED));
        assert_eq!(
            warning(ConfiguredBias::KernelBase(5_000.0)).as_deref(),
            Some(
                "`cupti:` sets an empty kernel to 5.000 µs, but a pair of events measures only 2.752 µs \
                 around one: the bias is 0"
            )
        );
        for sound in [ConfiguredBias::KernelBase(2_752.0), ConfiguredBias::Bias(5_000.0)] {
            assert_eq!(warning(sound), None, "{sound:?}");
        }
    }

    #[test]
    fn unmeasured_queue_uses_h200_error() {
        let half = Calibration { queued_empty_ns: None, ..MEASURED };
        assert_eq!(bias(None, Some(half), H200), Some((2_207.0, "table", Some(828.0))));
        assert_eq!(bias(None, Some(half), OTHER), Some((1_280.0, "floor", Some(2_236.0))));
    }

    #[test]
    fn error_includes_event_step() {
        for (step_ns, error_ns) in [(Some(32.0), 736.0), (Some(1_000.0), 1_704.0), (None, 736.0)] {
            let floor = Some(Floor { step_ns, ..FLOOR });
            let bias = Bias::of(None, Some(MEASURED), named(H200), floor).unwrap();
            assert_eq!(bias.error_ns, Some(error_ns), "{step_ns:?}");
        }
    }
}
