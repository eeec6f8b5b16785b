//! Sorting by figures.

use std::cmp::{Ordering, Reverse};

/// Sorts by a figure, largest first. Items with equal figures keep their order.
///
/// The code that sorts is compiled once, for the figures, and not for each type of item.
pub fn sort_by_largest<T>(items: &mut [T], figure: impl Fn(&T) -> f64) {
    items.sort_by_cached_key(|item| Reverse(Figure(figure(item))));
}

/// A number with the order of [`f64::total_cmp`].
struct Figure(f64);

impl Ord for Figure {
    fn cmp(&self, other: &Figure) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Figure {
    fn partial_cmp(&self, other: &Figure) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Figure {
    fn eq(&self, other: &Figure) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Figure {}

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
