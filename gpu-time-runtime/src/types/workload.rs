//! The work done by one call, as given by the attribute's `bytes` and `flops`.

/// A number of bytes or of floating-point operations.
///
/// Invariant: finite and not negative if known, NaN if unknown, negative infinity if the user's
/// value is invalid.
#[derive(Clone, Copy, Debug)]
pub struct Amount(f64);

/// The work done by one call.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// `bytes = EXPR`.
    pub bytes: Amount,
    /// `flops = EXPR`.
    pub flops: Amount,
}

impl Amount {
    /// An unknown amount.
    pub const UNKNOWN: Amount = Amount(f64::NAN);

    /// The amount for an invalid value.
    const INVALID: Amount = Amount(f64::NEG_INFINITY);

    /// Converts a user's value.
    pub fn of<V: Quantity>(value: &V) -> Amount {
        match value.quantity() {
            None => Amount::UNKNOWN,
            Some(amount) if amount.is_finite() && amount >= 0.0 => Amount(amount),
            Some(_) => Amount::INVALID,
        }
    }

    /// Returns the amount, or `None` if it is unknown or invalid.
    #[inline]
    pub(crate) fn get(self) -> Option<f64> {
        (self.0 >= 0.0).then_some(self.0)
    }
}

impl Workload {
    /// Unknown work.
    pub const UNKNOWN: Workload = Workload { bytes: Amount::UNKNOWN, flops: Amount::UNKNOWN };

    /// Returns `true` if neither amount is known.
    #[inline]
    pub(crate) fn is_unknown(self) -> bool {
        self.bytes.get().is_none() && self.flops.get().is_none()
    }

    /// Returns `true` if a value was invalid.
    #[inline]
    pub(crate) fn is_invalid(self) -> bool {
        [self.bytes, self.flops].iter().any(|amount| amount.0 == f64::NEG_INFINITY)
    }
}

/// Evaluates a user's expression in a closure, so that `?` inside it does not return from the
/// function.
#[inline]
pub fn evaluated<T>(value: impl FnOnce() -> T) -> T {
    value()
}

/// A value for `bytes` or `flops`.
#[diagnostic::on_unimplemented(
    message = "`bytes` and `flops` take a number, or an `Option` or `Result` of one",
    label = "this is a `{Self}`"
)]
pub trait Quantity {
    /// Returns the number, or `None` if it is unknown for this call.
    fn quantity(&self) -> Option<f64>;
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Quantity for $number {
            fn quantity(&self) -> Option<f64> {
                Some(*self as f64)
            }
        }
    )*};
}

numbers!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64);

impl<V: Quantity + ?Sized> Quantity for &V {
    fn quantity(&self) -> Option<f64> {
        (**self).quantity()
    }
}

impl<V: Quantity + ?Sized> Quantity for &mut V {
    fn quantity(&self) -> Option<f64> {
        (**self).quantity()
    }
}

impl<V: Quantity> Quantity for Option<V> {
    fn quantity(&self) -> Option<f64> {
        self.as_ref()?.quantity()
    }
}

impl<V: Quantity, E> Quantity for Result<V, E> {
    fn quantity(&self) -> Option<f64> {
        self.as_ref().ok()?.quantity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_types_are_accepted() {
        let of = |value: &dyn Quantity| Amount::of(&value).get();
        assert_eq!(of(&7u8), Some(7.0));
        assert_eq!(of(&(1u128 << 100)), Some((1u128 << 100) as f64));
        assert_eq!(of(&&mut 3i64), Some(3.0));
        assert_eq!(of(&Some(&2.5f32)), Some(2.5));
        assert_eq!(of(&Ok::<_, ()>(Some(0usize))), Some(0.0));
    }

    #[test]
    fn invalid_amount_is_unknown() {
        for unknown in [None, Some(-1.0), Some(f64::NAN), Some(f64::INFINITY)] {
            assert_eq!(Amount::of(&unknown).get(), None, "{unknown:?}");
        }
        assert_eq!(Amount::of(&Err::<u8, _>("none")).get(), None);
        let is_invalid = |value: &dyn Quantity| {
            Workload { flops: Amount::of(&value), ..Workload::UNKNOWN }.is_invalid()
        };
        assert!(is_invalid(&-1) && is_invalid(&f32::NAN) && is_invalid(&f64::NEG_INFINITY));
        assert!(!is_invalid(&None::<f64>) && !is_invalid(&0) && !Workload::UNKNOWN.is_invalid());
        assert!(Workload::UNKNOWN.is_unknown());
        assert!(!Workload { flops: Amount::of(&0), ..Workload::UNKNOWN }.is_unknown());
    }
}
