//! The call tree as folded stacks, which tools such as `inferno` draw as a flame graph.

use super::{Node, depth_first};
use crate::Snapshot;
use crate::units::printable;

impl Snapshot {
    /// Returns a line for each path with self time: the functions from the outermost to the
    /// innermost, separated by semicolons, and the self time in nanoseconds. Lines name at most 64 functions. The time
    /// of those deeper inside has the name of the 64th.
    pub fn to_folded(&self) -> String {
        let mut text = String::new();
        let mut stack: Vec<String> = Vec::new();
        for (at, depth) in depth_first(&self.tree) {
            let Node { name, self_ns, .. } = &self.tree[at];
            stack.truncate(depth);
            if depth < Node::MAX_LEVELS {
                stack.push(frame(name));
            }
            let ns = self_ns.round();
            if ns >= 1.0 {
                text.push_str(&format!("{} {ns}\n", stack.join(";")));
            }
        }
        text
    }
}

/// Returns a name as in the table, without the characters that separate frames and lines.
fn frame(name: &str) -> String {
    if name.is_empty() { "<unnamed>".to_owned() } else { printable(name).replace(';', ",") }
}
