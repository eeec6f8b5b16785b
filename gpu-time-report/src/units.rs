//! Human-readable formatting of times, shares and counts.

/// Stands for a figure of which there is none.
pub const NOTHING: &str = "–";

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    name: &'static str,
    ns: f64,
}

impl Unit {
    /// Returns the unit in which the time has one to three digits before the decimal point, if one
    /// exists.
    pub fn of(ns: f64) -> Unit {
        let (name, ns) = match ns {
            ns if ns < 999.5 => ("ns", 1.0),
            ns if ns < 999.95e3 => ("µs", 1e3),
            ns if ns < 999.95e6 => ("ms", 1e6),
            _ => ("s", 1e9),
        };
        Unit { name, ns }
    }

    /// Formats a time in this unit, to four digits or to the nanosecond.
    pub fn number(self, ns: f64) -> String {
        if self.ns == 1.0 { grouped(&format!("{ns:.0}")) } else { figure(ns / self.ns) }
    }

    /// Returns the name.
    pub fn name(self) -> &'static str {
        self.name
    }

    /// Returns the time as a multiple of the unit.
    pub fn multiple(self, ns: f64) -> f64 {
        ns / self.ns
    }
}

/// Formats a figure to four digits, or to a thousandth.
pub fn figure(value: f64) -> String {
    let decimals = match value {
        v if v < 9.9995 => 3,
        v if v < 99.995 => 2,
        v if v < 999.95 => 1,
        _ => 0,
    };
    grouped(&format!("{value:.decimals$}"))
}

/// Formats a time in a suitable unit.
pub fn time(ns: f64) -> String {
    let unit = Unit::of(ns);
    format!("{} {}", unit.number(ns), unit.name)
}

/// Parses a time with a unit, such as `50us` or `1.5 min`, into nanoseconds.
pub fn parsed_ns(text: &str) -> Option<f64> {
    let unit = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at_checked(unit)?;
    let scale = match unit.trim_start() {
        "ns" => 1.0,
        // The micro sign and the Greek letter look the same.
        "us" | "\u{b5}s" | "\u{3bc}s" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "min" => 60e9,
        "h" => 3600e9,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * scale)
}

/// Formats a fraction as a percentage.
pub fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}

/// Formats a fraction as a percentage, with its error if that is known.
pub fn percent_with_error(share: f64, error: Option<f64>) -> String {
    match error {
        Some(error) => format!("{:.1} ±{}", 100.0 * share, percent(error)),
        None => percent(share),
    }
}

/// Formats a part as a percentage of a whole. Empty if the whole is zero.
pub fn share(part: f64, whole: f64) -> String {
    if whole > 0.0 { percent(part / whole) } else { String::new() }
}

/// Formats a change as a percentage with its sign.
pub fn change(share: f64) -> String {
    format!("{:+.1}%", 100.0 * share)
}

/// Formats a small fraction as a percentage with two significant digits.
pub fn two_digit_percent(share: f64) -> String {
    if share == 0.0 {
        return "0%".to_owned();
    }
    let percent = 100.0 * share;
    let digits = (1.0 - percent.max(1e-6).log10().floor()).clamp(0.0, 6.0);
    format!("{percent:.*}%", digits as usize)
}

/// Formats a count with its digits in groups of three, as in all numbers of the table and the page.
pub fn count(count: u64) -> String {
    grouped(&count.to_string())
}

/// Keeps the first `most` lines and replaces the rest with a line that counts them. If there is
/// only one line too many, it is kept, because the count would be no shorter.
pub fn bounded(mut lines: Vec<String>, most: usize, others: &str) -> Vec<String> {
    if lines.len() > most + 1 {
        let left = lines.split_off(most).len();
        lines.push(format!("{} {others}", count(left as u64)));
    }
    lines
}

/// Joins the parts that there are. `None` if there are none.
pub fn joined(parts: &[Option<String>], separator: &str) -> Option<String> {
    let parts: Vec<&str> = parts.iter().flatten().map(String::as_str).collect();
    (!parts.is_empty()).then(|| parts.join(separator))
}

/// Lists the counts above 0.
pub fn listed(parts: &[(u64, &str)]) -> Option<String> {
    let part = |(count, what): &(u64, &str)| {
        (*count > 0).then(|| format!("{} {what}", self::count(*count)))
    };
    joined(&parts.iter().map(part).collect::<Vec<_>>(), ", ")
}

/// Groups the digits before the decimal point in threes.
pub fn grouped(number: &str) -> String {
    let whole = number.find('.').unwrap_or(number.len());
    let mut text = String::new();
    for (at, digit) in number.char_indices() {
        if at > 0 && at < whole && (whole - at).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// Escapes [hidden](is_hidden) characters.
pub fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if is_hidden(c) { c.escape_default().to_string() } else { c.to_string() })
        .collect()
}

/// Returns `true` for characters with which a text could forge the output around it: control characters, which move the
/// cursor or change colours on a terminal, line and paragraph separators, and format characters, which change the
/// direction or have no width.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Formats a number of launches per call, without decimals if they would all be zero.
pub fn decimal(count: f64) -> String {
    let figure = figure(count);
    match figure.split_once('.') {
        Some((whole, decimals)) if decimals.bytes().all(|digit| digit == b'0') => whole.to_owned(),
        _ => figure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_has_four_digits() {
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
            (7.2e12, "7\u{202f}200 s"),
        ] {
            assert_eq!(time(ns), text);
        }
    }

    #[test]
    fn two_digit_percent_has_two_digits() {
        for (share, text) in
            [(0.0, "0%"), (0.005, "0.50%"), (0.0132, "1.3%"), (0.2, "20%"), (1.0, "100%")]
        {
            assert_eq!(two_digit_percent(share), text);
        }
    }

    #[test]
    fn every_number_is_grouped() {
        assert_eq!(figure(4321.0), count(4321));
        let ns = Unit::of(1.0);
        assert_eq!(ns.number(4321.0), count(4321));
    }

    #[test]
    fn digits_are_grouped_by_three() {
        for (number, text) in [
            ("7", "7"),
            ("321", "321"),
            ("4321", "4\u{202f}321"),
            ("7654321", "7\u{202f}654\u{202f}321"),
            ("654321.12345", "654\u{202f}321.12345"),
        ] {
            assert_eq!(grouped(number), text);
        }
        assert_eq!(count(20_012), "20\u{202f}012");
    }

    #[test]
    fn printable_escapes_hidden_characters() {
        let hostile = "a\u{1b}[2J\n\t\u{7}\u{9b}\u{85}\u{202e}b\u{2066}\u{2028}\u{200b}\u{feff}µ";
        let shown = r"a\u{1b}[2J\n\t\u{7}\u{9b}\u{85}\u{202e}b\u{2066}\u{2028}\u{200b}\u{feff}µ";
        assert_eq!(printable(hostile), shown);
        assert_eq!(printable("1\u{202f}000 é 名"), "1\u{202f}000 é 名");
    }

    #[test]
    fn share_of_nothing_is_blank() {
        assert_eq!(share(1.0, 8.0), "12.5%");
        assert_eq!(share(0.0, 0.0), "");
    }
}
