//! The work that one call does, as the attribute's `bytes` and `flops` say.

/// So many bytes, or so many floating-point operations.
///
/// Invariant: a finite number that is not negative; NaN where it is unknown; or negative infinity where what
/// was said is no amount.
#[derive(Clone, Copy, Debug)]
pub struct Amount(f64);

/// What one call does.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// `bytes = EXPR`.
    pub bytes: Amount,
    /// `flops = EXPR`.
    pub flops: Amount,
}

impl Amount {
    /// Nothing is known.
    pub const UNKNOWN: Amount = Amount(f64::NAN);

    /// What makes no sense as one.
    const INVALID: Amount = Amount(f64::NEG_INFINITY);

    /// The amount that a value of the user's says.
    pub fn of<V: Quantity>(value: &V) -> Amount {
        match value.quantity() {
            None => Amount::UNKNOWN,
            Some(amount) if amount.is_finite() && amount >= 0.0 => Amount(amount),
            Some(_) => Amount::INVALID,
        }
    }

    /// The amount, if it is known.
    #[inline]
    pub(crate) fn get(self) -> Option<f64> {
        (self.0 >= 0.0).then_some(self.0)
    }
}

impl Workload {
    /// Nothing is known.
    pub const UNKNOWN: Workload = Workload { bytes: Amount::UNKNOWN, flops: Amount::UNKNOWN };

    /// Whether nothing is known.
    #[inline]
    pub(crate) fn is_unknown(self) -> bool {
        self.bytes.get().is_none() && self.flops.get().is_none()
    }

    /// Whether something was said that is no amount.
    #[inline]
    pub(crate) fn is_invalid(self) -> bool {
        [self.bytes, self.flops].iter().any(|amount| amount.0 == f64::NEG_INFINITY)
    }
}

/// Runs the closure that holds an expression of the user's, so that `?` in it ends no more than that.
#[inline]
pub fn evaluated<T>(value: impl FnOnce() -> T) -> T {
    value()
}

/// What `bytes` and `flops` take.
#[diagnostic::on_unimplemented(
    message = "`bytes` and `flops` take a number, or an `Option` or `Result` of one",
    label = "this is a `{Self}`"
)]
pub trait Quantity {
    /// As a number; `None` where this call's is unknown.
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
    fn numbers_of_every_kind_are_amounts() {
        let of = |value: &dyn Quantity| Amount::of(&value).get();
        assert_eq!(of(&7u8), Some(7.0));
        assert_eq!(of(&(1u128 << 100)), Some((1u128 << 100) as f64));
        assert_eq!(of(&&mut 3i64), Some(3.0));
        assert_eq!(of(&Some(&2.5f32)), Some(2.5));
        assert_eq!(of(&Ok::<_, ()>(Some(0usize))), Some(0.0));
    }

    #[test]
    fn what_is_no_amount_is_unknown() {
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
