//! The numbers of records that launches of graphs have.
//!
//! Nothing tells how many records a graph has, so the number is learned from its launches. With it, a launch that has
//! all of its records needs no later launch on its stream to be complete, and one that lacks some is noticed.

use std::collections::HashMap;

use crate::types::activity::GraphExec;

/// The number of launches that must agree before one with as many records counts as complete at once. Some of them may
/// lack records that CUPTI withholds, but not as many by the same number.
const AGREEING: u32 = 64;
/// The number of launches in a row with fewer records after which the graph must have changed unobserved.
const CHANGED: u32 = 8;
/// The maximum number of graphs. When it is reached, all are forgotten.
const MAX_GRAPHS: usize = 4_096;

/// The numbers of records of graphs.
#[derive(Default)]
pub(crate) struct GraphSizes {
    graphs: HashMap<GraphExec, GraphSize>,
}

#[derive(Clone, Copy, Default)]
struct GraphSize {
    /// The largest number of records that a launch had.
    most: u32,
    /// The number of launches with as many.
    agreeing: u32,
    /// The number of launches with fewer since the last one with as many.
    short: u32,
    has_changed: bool,
    /// The number differs from launch to launch, as with conditional nodes, so nothing follows from it.
    varies: bool,
}

impl GraphSizes {
    /// Notes a launch that has had no further record for a while, but may still get some.
    pub fn note_quiet(&mut self, graph: GraphExec, records: u32) {
        let size = self.of(graph);
        if records > size.most {
            size.raise(records);
        } else if records == size.most {
            size.agreeing += 1;
        }
    }

    /// Notes a launch that is expected to get no further record. `was_quiet` means that it was noted as quiet before.
    pub fn note_ended(&mut self, graph: GraphExec, records: u32, was_quiet: bool) {
        let size = self.of(graph);
        if records < size.most {
            size.note_short(records);
            return;
        }
        if records > size.most {
            size.raise(records);
        } else if !was_quiet {
            size.agreeing += 1;
        }
        size.short = 0;
    }

    /// Notes that a launch got records after it had counted as complete.
    pub fn note_late(&mut self, graph: GraphExec) {
        self.of(graph).varies = true;
    }

    /// Returns `true` if a launch with so many records has all.
    pub fn are_all(&self, graph: GraphExec, records: u32) -> bool {
        self.get(graph).is_some_and(|of| of.agreeing >= AGREEING && records >= of.most)
    }

    /// Returns `true` if a launch with so many records lacks some.
    pub fn are_short(&self, graph: GraphExec, records: u32) -> bool {
        self.get(graph).is_some_and(|of| records < of.most)
    }

    fn get(&self, graph: GraphExec) -> Option<&GraphSize> {
        self.graphs.get(&graph).filter(|size| !size.varies)
    }

    fn of(&mut self, graph: GraphExec) -> &mut GraphSize {
        let graphs = &mut self.graphs;
        if graphs.len() >= MAX_GRAPHS && !graphs.contains_key(&graph) {
            graphs.clear();
        }
        graphs.entry(graph).or_default()
    }
}

impl GraphSize {
    fn raise(&mut self, records: u32) {
        self.varies |= self.agreeing >= AGREEING;
        (self.most, self.agreeing, self.short) = (records, 1, 0);
    }

    fn note_short(&mut self, records: u32) {
        self.short += 1;
        if self.short >= CHANGED {
            let varies = self.varies || self.has_changed;
            *self = GraphSize { most: records, has_changed: true, varies, ..GraphSize::default() };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;

    const GRAPH: GraphExec = graph(0x50);

    const fn graph(handle: usize) -> GraphExec {
        GraphExec { handle: NonZeroUsize::new(handle).unwrap(), changes: 0 }
    }

    /// Notes launches with these numbers of records.
    fn after(launches: impl IntoIterator<Item = u32>) -> GraphSizes {
        let mut sizes = GraphSizes::default();
        launches.into_iter().for_each(|records| sizes.note_ended(GRAPH, records, false));
        sizes
    }

    #[test]
    fn launch_with_fewer_records_than_another_lacks_some() {
        let sizes = after([2, 3, 2]);
        let short = [0, 1, 2, 3, 4].map(|records| sizes.are_short(GRAPH, records));
        assert_eq!(short, [true, true, true, false, false]);
        assert!(!sizes.are_short(GraphExec { changes: 1, ..GRAPH }, 2));
        assert!(!sizes.are_all(GRAPH, 3));
    }

    #[test]
    fn launch_is_whole_once_many_agree() {
        let mut sizes = after([3; AGREEING as usize - 2]);
        sizes.note_quiet(GRAPH, 2);
        sizes.note_quiet(GRAPH, 3);
        sizes.note_ended(GRAPH, 3, true);
        assert!(!sizes.are_all(GRAPH, 3), "one launch counts once");
        sizes.note_ended(GRAPH, 3, false);
        assert_eq!([2, 3].map(|records| sizes.are_all(GRAPH, records)), [false, true]);
        assert!(!sizes.are_all(graph(0x60), 3));
    }

    #[test]
    fn nothing_follows_from_a_number_that_varies() {
        let mut late = after([3; AGREEING as usize]);
        late.note_late(GRAPH);
        let more = after([3; AGREEING as usize].into_iter().chain([4]));
        for sizes in [late, more] {
            assert!(!sizes.are_all(GRAPH, 4) && !sizes.are_short(GRAPH, 2));
        }
    }

    /// Another graph may have its handle, if it was destroyed with its context.
    #[test]
    fn smaller_number_in_a_row_is_the_new_one() {
        let smaller = |records| [records; CHANGED as usize];
        let sizes = after([9, 3].into_iter().chain(smaller(3)));
        assert!(!sizes.are_short(GRAPH, 3) && sizes.are_short(GRAPH, 2));
        // Launches of a loop on the GPU get there again and again.
        let sizes = after([9, 3].into_iter().chain(smaller(3)).chain(smaller(2)));
        assert!(!sizes.are_short(GRAPH, 1));
        let others = (0..CHANGED - 1).chain([9]).cycle().take(100);
        assert!(after(others).are_short(GRAPH, 8));
    }

    #[test]
    fn graphs_are_bounded() {
        let mut sizes = GraphSizes::default();
        (0..=MAX_GRAPHS).for_each(|nth| sizes.note_quiet(graph(0x50 + nth), 1));
        assert_eq!(sizes.graphs.len(), 1);
    }
}
