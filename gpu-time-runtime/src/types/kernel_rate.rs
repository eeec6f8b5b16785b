//! The rate at which calls are opened: how many of them have their kernels recorded.

use gpu_time_report::Clock;

/// The default share of the timed calls to open. With `clock = "kernels"`, every timed call is
/// opened, because there is no other source of times.
const USUAL: f64 = 1.0 / 16.0;

/// The rule that selects the timed calls to open, from an attribute or for all functions.
///
/// Invariant: a share is above 0 and up to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KernelRate(Rate);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Rate {
    Off,
    Usual,
    Share(f64),
}

impl KernelRate {
    /// Opens no call.
    pub(crate) const OFF: KernelRate = KernelRate(Rate::Off);

    /// Opens the first call after warm-up and a random sixteenth of the others, or every call with
    /// `clock = "kernels"`.
    pub const USUAL: KernelRate = KernelRate(Rate::Usual);

    /// Opens each call with this probability.
    pub const fn share(share: f64) -> KernelRate {
        assert!(share > 0.0 && share <= 1.0, "`kernels`: expected a share above 0 and up to 1");
        KernelRate(Rate::Share(share))
    }

    /// Returns the rate for a fraction, or `None` if it is outside 0 to 1.
    pub(crate) fn of_share(share: f64) -> Option<KernelRate> {
        match share {
            0.0 => Some(KernelRate::OFF),
            share if share > 0.0 && share <= 1.0 => Some(KernelRate(Rate::Share(share))),
            _ => None,
        }
    }

    /// Returns the rate for a function. A rate for all functions replaces the attribute's rate,
    /// unless it is the usual one. Without either, calls are opened only with `clock = "kernels"`.
    pub(crate) fn resolved(
        all: Option<KernelRate>,
        attribute: Option<KernelRate>,
        clock: Clock,
    ) -> KernelRate {
        match (clock, all, attribute) {
            // The function does no work on the GPU that could be recorded.
            (Clock::Host, ..) => KernelRate::OFF,
            (_, Some(KernelRate::USUAL) | None, Some(rate)) => rate,
            (_, Some(rate), _) => rate,
            (Clock::Kernels, None, None) => KernelRate::USUAL,
            (Clock::Events | Clock::Sync, None, None) => KernelRate::OFF,
        }
    }

    /// Returns the share of the timed calls to open.
    pub(crate) fn get(self, clock: Clock) -> f64 {
        match self.0 {
            Rate::Off => 0.0,
            Rate::Usual if clock == Clock::Kernels => 1.0,
            Rate::Usual => USUAL,
            Rate::Share(share) => share,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(all: Option<KernelRate>, attribute: Option<KernelRate>, clock: Clock) -> f64 {
        KernelRate::resolved(all, attribute, clock).get(clock)
    }

    #[test]
    fn attribute_decides_unless_all_functions_are_set() {
        const USUAL: Option<KernelRate> = Some(KernelRate::USUAL);
        const OFF: Option<KernelRate> = Some(KernelRate::OFF);
        let [half, tenth] = [0.5, 0.1].map(KernelRate::of_share);
        for (all, attribute, events, kernels) in [
            (None, None, 0.0, 1.0),
            (None, USUAL, 0.0625, 1.0),
            (None, half, 0.5, 0.5),
            (USUAL, None, 0.0625, 1.0),
            (USUAL, USUAL, 0.0625, 1.0),
            (USUAL, half, 0.5, 0.5),
            (tenth, None, 0.1, 0.1),
            (tenth, USUAL, 0.1, 0.1),
            (tenth, half, 0.1, 0.1),
            (OFF, None, 0.0, 0.0),
            (OFF, USUAL, 0.0, 0.0),
            (OFF, half, 0.0, 0.0),
        ] {
            assert_eq!(share(all, attribute, Clock::Events), events, "{all:?} {attribute:?}");
            assert_eq!(share(all, attribute, Clock::Sync), events, "{all:?} {attribute:?}");
            assert_eq!(share(all, attribute, Clock::Kernels), kernels, "{all:?} {attribute:?}");
            assert_eq!(share(all, attribute, Clock::Host), 0.0, "{all:?} {attribute:?}");
        }
    }

    #[test]
    fn shares_are_fractions() {
        assert_eq!(KernelRate::of_share(0.0), Some(KernelRate::OFF));
        assert_eq!(KernelRate::of_share(1.0), Some(KernelRate::share(1.0)));
        for invalid in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert_eq!(KernelRate::of_share(invalid), None, "{invalid}");
        }
    }
}
