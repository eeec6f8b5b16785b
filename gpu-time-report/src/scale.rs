//! A common unit for all times in a column.

use crate::largest::sort_by_largest;
use crate::units::{self, Unit};

/// A unit and a number of decimals for all figures in a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    unit: Unit,
    decimals: usize,
}

impl Scale {
    /// Chooses the unit that suits the median time, and enough decimals to show `digits` digits for
    /// most times.
    pub fn of(times: impl Iterator<Item = f64>, digits: u8) -> Scale {
        let mut times: Vec<f64> = times.filter(|&ns| ns > 0.0).collect();
        sort_by_largest(&mut times, |ns| -ns);
        let unit = Unit::of(times.get(times.len() / 2).copied().unwrap_or(1e3));
        let low = unit.multiple(times.get(times.len() / 10).copied().unwrap_or(1e3));
        let decimals = f64::from(digits) - 1.0 - low.log10().floor();
        let decimals = if unit.name() == "ns" { 0 } else { decimals.clamp(1.0, 3.0) as usize };
        Scale { unit, decimals }
    }

    /// Returns the unit.
    pub fn unit(self) -> Unit {
        self.unit
    }

    /// Formats a time on this scale.
    fn number(self, ns: f64) -> String {
        units::grouped(&format!("{:.*}", self.decimals, self.unit.multiple(ns)))
    }

    /// Returns the unit for a time. It differs from the scale's unit if the scale would show fewer
    /// than two digits, or make the figure too wide.
    pub fn unit_for(self, ns: f64) -> Unit {
        let last_digit = 0.1f64.powi(self.decimals as i32);
        let fits = (10.0 * last_digit..1e6).contains(&self.unit.multiple(ns));
        if fits || ns == 0.0 { self.unit } else { Unit::of(ns) }
    }

    /// Formats a time on this scale, or with its own unit if it needs a different one.
    pub fn text(self, ns: f64) -> String {
        if self.unit_for(ns) == self.unit { self.number(ns) } else { units::time(ns) }
    }
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::*;

    #[test]
    fn text_of_an_outlier_has_its_own_unit() {
        let scale = Scale::of([10.5e3, 20e3, 30e3].into_iter(), 4);
        assert_eq!(scale.unit().name(), "µs");
        for (ns, text) in [
            (10.5e3, "10.50"),
            (0.0, "0.00"),
            (110.0, "0.11"),
            (32.0, "32 ns"),
            (2e6, "2\u{202f}000.00"),
            (2e9, "2.000 s"),
        ] {
            assert_eq!(scale.text(ns), text);
        }
        assert_eq!(Scale::of(iter::empty(), 3).text(0.0), "0.00");
    }
}
