//! The sampling rate of a function, as a share or a count.

/// Which calls of a function are timed.
///
/// Invariant: at most 1, it is the share of the calls that is drawn; more, and every so many is counted
/// out. Never negative, and never NaN.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Sampling(f64);

impl Sampling {
    /// Every call is timed.
    pub const ALL: Sampling = Sampling(1.0);

    /// Every call is timed with this probability, whatever becomes of the others.
    pub const fn share(share: f64) -> Sampling {
        assert!(share > 0.0 && share <= 1.0, "`sample` takes a share above 0 and up to 1");
        Sampling(share)
    }

    /// One call of so many is timed.
    pub const fn every(every: u32) -> Sampling {
        assert!(every > 0, "`every` takes a number from 1");
        Sampling(every as f64)
    }

    /// The same for a share that is not known to be one.
    pub(crate) fn of_share(share: f64) -> Option<Sampling> {
        (0.0..=1.0).contains(&share).then_some(Sampling(share))
    }

    /// The number itself: a share up to 1, a count above.
    pub(crate) fn get(self) -> f64 {
        self.0
    }

    /// The value as one number, for an atomic.
    pub(crate) const fn to_bits(self) -> u64 {
        self.0.to_bits()
    }

    /// The inverse of [`Sampling::to_bits`].
    pub(crate) const fn from_bits(bits: u64) -> Sampling {
        Sampling(f64::from_bits(bits))
    }

    /// The share of the calls that is timed in the long run.
    pub(crate) fn rate(self) -> f64 {
        if self.0 <= 1.0 { self.0 } else { self.0.recip() }
    }

    pub(crate) fn is_counted(self) -> bool {
        self.0 > 1.0
    }
}
