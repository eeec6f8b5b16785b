//! Sorting by figures.

use std::cmp::Reverse;

/// Sorts by a figure, largest first. Items with equal figures keep their order.
///
/// The code that sorts is compiled once, for the figures, and not for each type of item.
pub fn sort_by_largest<T>(items: &mut [T], figure: impl Fn(&T) -> f64) {
    items.sort_by_cached_key(|item| Reverse(order(figure(item))));
}

/// Returns a number with the order of [`f64::total_cmp`], by which it flips the other bits of a negative number.
fn order(figure: f64) -> i64 {
    let bits = figure.to_bits() as i64;
    if bits < 0 { bits ^ i64::MAX } else { bits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_figures_keep_their_order() {
        let mut items = [("a", 1.0), ("b", f64::INFINITY), ("c", 1.0), ("d", -0.5), ("e", 7.0)];
        sort_by_largest(&mut items, |(_, figure)| *figure);
        assert_eq!(items.map(|(name, _)| name), ["b", "e", "a", "c", "d"]);
    }
}
