//! One unit for a whole column, so that its figures can be compared at a glance.

use crate::units::{self, Unit};

/// A unit, and the number of decimals that all figures of a column have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    unit: Unit,
    decimals: usize,
}

impl Scale {
    /// The unit of the middle one of the times, with as many decimals as show so many digits of most of
    /// them.
    pub fn of(times: impl Iterator<Item = f64>, digits: u8) -> Scale {
        let mut times: Vec<f64> = times.filter(|&ns| ns > 0.0).collect();
        times.sort_by(f64::total_cmp);
        let unit = Unit::of(times.get(times.len() / 2).copied().unwrap_or(1e3));
        let low = unit.multiple(times.get(times.len() / 10).copied().unwrap_or(1e3));
        let decimals = f64::from(digits) - 1.0 - low.log10().floor();
        let decimals = if unit.name() == "ns" { 0 } else { decimals.clamp(1.0, 3.0) as usize };
        Scale { unit, decimals }
    }

    /// The unit.
    pub fn unit(self) -> Unit {
        self.unit
    }

    /// A time, by this scale.
    pub fn number(self, ns: f64) -> String {
        units::grouped(&format!("{:.*}", self.decimals, self.unit.multiple(ns)))
    }

    /// The unit for a time: its own where this scale leaves fewer than two digits of it, or makes it too
    /// wide.
    pub fn unit_for(self, ns: f64) -> Unit {
        let last_digit = 0.1f64.powi(self.decimals as i32);
        let fits = (10.0 * last_digit..1e6).contains(&self.unit.multiple(ns));
        if fits || ns == 0.0 { self.unit } else { Unit::of(ns) }
    }

    /// A time by this scale, or with its own unit where that is another.
    pub fn text(self, ns: f64) -> String {
        if self.unit_for(ns) == self.unit { self.number(ns) } else { units::time(ns) }
    }
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::*;

    #[test]
    fn what_does_not_fit_a_column_has_its_own_unit() {
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
