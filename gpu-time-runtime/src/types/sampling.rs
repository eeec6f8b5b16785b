//! Sampling rates, given as a fraction or as a count.

/// The rule that selects the calls to time.
///
/// Invariant: a value up to 1 is the probability that a call is timed; a value n above 1 times
/// every n-th call. Never negative or NaN.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Sampling(f64);

impl Sampling {
    /// Times every call.
    pub const ALL: Sampling = Sampling(1.0);

    /// Times each call with this probability, independently of other calls.
    pub const fn share(share: f64) -> Sampling {
        assert!(share > 0.0 && share <= 1.0, "`sample`: expected a share above 0 and up to 1");
        Sampling(share)
    }

    /// Times every n-th call.
    pub const fn every(every: u32) -> Sampling {
        assert!(every > 0, "`every`: expected a whole number from 1");
        Sampling(every as f64)
    }

    /// Returns the rule for a fraction, or `None` if it is outside 0 to 1.
    pub(crate) fn of_share(share: f64) -> Option<Sampling> {
        (0.0..=1.0).contains(&share).then_some(Sampling(share))
    }

    /// Returns the fraction, or the count if it is above 1.
    pub(crate) fn get(self) -> f64 {
        self.0
    }

    /// Returns the bits of the value, for storage in an atomic.
    pub(crate) const fn to_bits(self) -> u64 {
        self.0.to_bits()
    }

    /// Restores a value from [`Sampling::to_bits`].
    pub(crate) const fn from_bits(bits: u64) -> Sampling {
        Sampling(f64::from_bits(bits))
    }

    /// Returns the fraction of calls timed in the long run.
    pub(crate) fn rate(self) -> f64 {
        if self.0 <= 1.0 { self.0 } else { self.0.recip() }
    }

    /// Returns `true` if every n-th call is timed.
    pub(crate) fn is_counted(self) -> bool {
        self.0 > 1.0
    }
}
