//! Sorting by figures and by names.
//!
//! The code that sorts is compiled once, for the keys, and not for each type of item.

use std::cmp::Reverse;

/// Sorts by a figure, largest first. Items with equal figures keep their order.
pub fn sort_by_largest<T>(items: &mut [T], figure: impl Fn(&T) -> f64) {
    let figures = items.iter().map(figure).collect();
    swaps(figures).into_iter().enumerate().for_each(|(at, other)| items.swap(at, other));
}

/// Sorts by name. Items with the same name keep their order.
pub fn sort_by_name<T>(items: &mut [T], name: impl Fn(&T) -> &str) {
    let mut names: Vec<&str> = items.iter().map(&name).collect();
    names.sort_unstable();
    let before = |item: &T| names.partition_point(|other| *other < name(item));
    let places = items.iter().map(|item| -(before(item) as f64)).collect();
    swaps(places).into_iter().enumerate().for_each(|(at, other)| items.swap(at, other));
}

/// Returns for each place the one to swap it with, in order, so that the largest figure comes first.
fn swaps(figures: Vec<f64>) -> Vec<usize> {
    let mut sorted: Vec<_> =
        figures.into_iter().enumerate().map(|(at, figure)| (Reverse(order(figure)), at)).collect();
    sorted.sort_unstable();
    let mut swaps: Vec<usize> = sorted.into_iter().map(|(_, at)| at).collect();
    for place in 0..swaps.len() {
        // What was there has moved on with an earlier swap.
        while swaps[place] < place {
            swaps[place] = swaps[swaps[place]];
        }
    }
    swaps
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
