//! The digits of the page's numbers.

use serde_json::Number;

/// Rounds to six decimals, and to a tenth from 1,000 on: times are in nanoseconds.
pub fn shortened(value: f64) -> Option<Number> {
    let digits = if value.abs() < 1000.0 { 1e6 } else { 10.0 };
    let value = (value * digits).round() / digits;
    if value.fract() == 0.0 && value.abs() < (1u64 << 53) as f64 {
        return Some((value as i64).into());
    }
    Number::from_f64(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_are_shown() {
        let text = |value| shortened(value).unwrap().to_string();
        let values = [0.123_456_78, 92.376_043_07, 3_000.0, 4_000.549, 1e15, 1e300];
        let expected = ["0.123457", "92.376043", "3000", "4000.5", "1000000000000000", "1e+300"];
        assert_eq!(values.map(text), expected);
        assert_eq!(shortened(f64::NAN), None);
    }
}
