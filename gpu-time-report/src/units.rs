//! Times and shares as a person reads them.

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    name: &'static str,
    ns: f64,
}

impl Unit {
    /// The unit in which a time has one to three digits before the point, as far as there is one.
    pub fn of(ns: f64) -> Unit {
        let (name, ns) = match ns {
            ns if ns < 999.5 => ("ns", 1.0),
            ns if ns < 999.95e3 => ("µs", 1e3),
            ns if ns < 999.95e6 => ("ms", 1e6),
            _ => ("s", 1e9),
        };
        Unit { name, ns }
    }

    /// A time in this unit, to four digits, or to the nanosecond.
    pub fn number(self, ns: f64) -> String {
        if self.ns == 1.0 { format!("{ns:.0}") } else { figure(ns / self.ns) }
    }
}

/// A figure to four digits, or to a thousandth.
pub fn figure(value: f64) -> String {
    let decimals = match value {
        v if v < 9.9995 => 3,
        v if v < 99.995 => 2,
        v if v < 999.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

/// A time in its own unit.
pub fn time(ns: f64) -> String {
    let unit = Unit::of(ns);
    format!("{} {}", unit.number(ns), unit.name)
}

/// A share of a whole, in percent.
pub fn share(part: f64, whole: f64) -> String {
    if whole > 0.0 { format!("{:.1}%", 100.0 * part / whole) } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_four_digits() {
        for (ns, text) in [
            (0.0, "0 ns"),
            (32.4, "32 ns"),
            (999.49, "999 ns"),
            (999.5, "1.000 µs"),
            (1280.0, "1.280 µs"),
            (12_345.0, "12.35 µs"),
            (99_996.0, "100.0 µs"),
            (999_949.0, "999.9 µs"),
            (999_950.0, "1.000 ms"),
            (61.5e6, "61.50 ms"),
            (1.5e9, "1.500 s"),
            (7.2e12, "7200 s"),
        ] {
            assert_eq!(time(ns), text);
        }
    }

    #[test]
    fn a_share_of_nothing_is_blank() {
        assert_eq!(share(1.0, 8.0), "12.5%");
        assert_eq!(share(0.0, 0.0), "");
    }
}
