//! How far a device was in use.

use serde::{Deserialize, Serialize};

use crate::units::percent;

/// How far a device was in use by all processes, as its own counters tell. A value that the device does not have is
/// `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Utilization {
    /// The time over which the values are means, in nanoseconds.
    pub covered_ns: f64,
    /// The share of the time in which the device did any work.
    pub graphics: Option<f64>,
    /// The mean share of the multiprocessors that were busy.
    pub sm: Option<f64>,
    /// The share of their peak at which the tensor cores worked.
    pub tensor: Option<f64>,
    /// The share of the peak bandwidth at which the memory was used.
    pub dram: Option<f64>,
    /// The bytes per second over PCIe, in both directions.
    pub pcie_bytes_per_s: Option<f64>,
    /// The bytes per second over NVLink, in both directions.
    pub nvlink_bytes_per_s: Option<f64>,
}

impl Utilization {
    /// Returns the values in words.
    pub(crate) fn words(&self) -> Option<String> {
        let share = |name: &str, share: Option<f64>| Some(format!("{name} {}", percent(share?)));
        let rate = |name: &str, bytes: Option<f64>| {
            let gb_per_s = bytes.filter(|bytes| *bytes > 0.0)? / 1e9;
            Some(format!("{name} {gb_per_s:.1} GB/s"))
        };
        let parts = [
            share("any work", self.graphics),
            share("SM", self.sm),
            share("tensor", self.tensor),
            share("DRAM", self.dram),
            rate("PCIe", self.pcie_bytes_per_s),
            rate("NVLink", self.nvlink_bytes_per_s),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| format!("in use by all processes: {}", parts.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_what_is_known() {
        let used = Utilization {
            graphics: Some(0.285),
            dram: Some(0.08),
            pcie_bytes_per_s: Some(2.5e9),
            ..Utilization::default()
        };
        let expected = "in use by all processes: any work 28.5%, DRAM 8.0%, PCIe 2.5 GB/s";
        assert_eq!(used.words().as_deref(), Some(expected));
        assert_eq!(Utilization::default().words(), None);
    }
}
