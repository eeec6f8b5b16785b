//! The paths of a call tree for which a rendering has room.

use super::{Node, depth_first};
use crate::largest::sort_by_largest;

/// Returns the index and the depth of the paths with the longest inclusive times, depth-first.
///
/// A selected path's callers are always selected too: their times are no shorter, and the stable
/// sort keeps them first among equals.
pub fn longest(nodes: &[Node], most: usize) -> impl Iterator<Item = (usize, usize)> {
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    sort_by_largest(&mut order, |&at| nodes[at].inclusive_ns);
    let mut is_selected = vec![false; nodes.len()];
    order.into_iter().take(most).for_each(|at| is_selected[at] = true);
    depth_first(nodes).filter(move |(at, _)| is_selected[*at])
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::node;
    use super::*;

    #[test]
    fn longest_paths_come_with_their_callers() {
        let nodes = [
            node("main", None, 10.0, 1.0),
            node("short", Some(0), 4.0, 3.0),
            node("shortest", Some(1), 1.0, 1.0),
            node("long", Some(0), 5.0, 0.0),
            node("whole", Some(3), 5.0, 5.0),
            node("other", None, 3.0, 3.0),
        ];
        let names = |most| {
            let paths = longest(&nodes, most);
            paths.map(|(at, depth)| (nodes[at].name.as_str(), depth)).collect::<Vec<_>>()
        };
        assert_eq!(names(3), [("main", 0), ("long", 1), ("whole", 2)]);
        let four = [("main", 0), ("long", 1), ("whole", 2), ("short", 1)];
        assert_eq!(names(4), four);
        assert_eq!(names(usize::MAX).len(), nodes.len());
    }
}
