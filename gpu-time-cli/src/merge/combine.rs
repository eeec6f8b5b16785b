//! Rules for combining the values of two reports.

/// The maximum number of different warnings in a merged report.
const MAX_WARNINGS: usize = 100;

/// Adds a count. Saturates, because a forged report may contain any number.
pub fn add(count: &mut u64, more: u64) {
    *count = count.saturating_add(more);
}

/// Adds a warning unless it is already there.
pub fn add_warning(warnings: &mut Vec<String>, warning: &str) {
    const MORE: &str = "the merged reports contain more warnings";
    if warnings.len() <= MAX_WARNINGS && !warnings.iter().any(|known| known == warning) {
        let is_last = warnings.len() == MAX_WARNINGS;
        warnings.push(if is_last { MORE.to_owned() } else { warning.to_owned() });
    }
}
