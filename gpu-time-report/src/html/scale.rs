//! One unit for a whole column, so that its figures can be compared at a glance.

use crate::units::{self, Unit};

/// A unit, and the number of decimals that all figures of a column have.
#[derive(Clone, Copy)]
pub struct Scale {
    unit: Unit,
    decimals: usize,
}

impl Scale {
    /// The unit of the middle one of the times, with as many decimals as show three digits of most of
    /// them.
    pub fn of(times: impl Iterator<Item = f64>) -> Scale {
        let mut times: Vec<f64> = times.filter(|&ns| ns > 0.0).collect();
        times.sort_by(f64::total_cmp);
        let unit = Unit::of(times.get(times.len() / 2).copied().unwrap_or(1e3));
        let low = unit.multiple(times.get(times.len() / 10).copied().unwrap_or(1e3));
        let decimals = match low {
            _ if unit.name() == "ns" => 0,
            low if low < 1.0 => 3,
            low if low < 10.0 => 2,
            _ => 1,
        };
        Scale { unit, decimals }
    }

    /// The unit's name.
    pub fn unit(self) -> &'static str {
        self.unit.name()
    }

    /// A time, by this scale.
    pub fn number(self, ns: f64) -> String {
        units::grouped(&format!("{:.*}", self.decimals, self.unit.multiple(ns)))
    }
}
