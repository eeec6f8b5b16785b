//! The call tree as a profile in the format of pprof, a message of Protocol Buffers.
//!
//! The numbers of the fields are those of pprof's `profile.proto`.

use std::collections::BTreeMap;

use super::depth_first;
use crate::Snapshot;
use crate::units::printable;

impl Snapshot {
    /// Returns the call tree as an uncompressed profile for [pprof](https://github.com/google/pprof), with a sample for
    /// each path: the estimated number of its calls, and its self time in nanoseconds.
    pub fn to_pprof(&self) -> Vec<u8> {
        let mut profile = Message::default();
        let mut texts = BTreeMap::from([(String::new(), 0)]);
        for [kind, unit] in [["calls", "count"], ["gpu", "nanoseconds"]] {
            let [kind, unit] = [kind, unit].map(|text| number(&mut texts, text));
            profile = profile.message(1, &Message::default().number(1, kind).number(2, unit));
        }
        // The numbers of functions, from 1.
        let mut functions: BTreeMap<(&str, Option<usize>), u64> = BTreeMap::new();
        let mut stack: Vec<u64> = Vec::new();
        for (at, depth) in depth_first(&self.tree) {
            let Some(node) = self.tree.get(at) else { continue };
            let next = functions.len() as u64 + 1;
            stack.truncate(depth);
            stack.push(*functions.entry((&node.name, node.site)).or_insert(next));
            let values = [node.calls, node.self_ns].map(|value| value.round() as u64);
            if values != [0; 2] {
                let innermost_first: Vec<u64> = stack.iter().rev().copied().collect();
                let sample = Message::default().packed(1, &innermost_first).packed(2, &values);
                profile = profile.message(2, &sample);
            }
        }
        for ((name, site), id) in functions {
            let site = site.and_then(|at| self.sites.get(at));
            let line = site.map_or(0, |site| u64::from(site.line));
            let file = number(&mut texts, site.map_or("", |site| &site.file));
            let name = number(&mut texts, &printable(name));
            let function = Message::default().number(1, id).number(2, name).number(4, file);
            let line = Message::default().number(1, id).number(2, line);
            let location = Message::default().number(1, id).message(4, &line);
            profile = profile.message(4, &location).message(5, &function);
        }
        let mut texts: Vec<(u64, String)> =
            texts.into_iter().map(|(text, at)| (at, text)).collect();
        texts.sort_unstable();
        for (_, text) in texts {
            profile = profile.bytes(6, text.as_bytes());
        }
        profile.number(10, self.process.wall_ns).0
    }
}

/// Returns the number of a text in the table, which begins with the empty one.
fn number(texts: &mut BTreeMap<String, u64>, text: &str) -> u64 {
    let next = texts.len() as u64;
    *texts.entry(text.to_owned()).or_insert(next)
}

/// A message of Protocol Buffers.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(mut self, mut number: u64) -> Message {
        while number >= 1 << 7 {
            self.0.push(number as u8 | 1 << 7);
            number >>= 7;
        }
        self.0.push(number as u8);
        self
    }

    fn number(self, field: u64, number: u64) -> Message {
        self.varint(field << 3).varint(number)
    }

    fn bytes(self, field: u64, bytes: &[u8]) -> Message {
        let mut message = self.varint(field << 3 | 2).varint(bytes.len() as u64);
        message.0.extend_from_slice(bytes);
        message
    }

    fn message(self, field: u64, message: &Message) -> Message {
        self.bytes(field, &message.0)
    }

    fn packed(self, field: u64, numbers: &[u64]) -> Message {
        let packed =
            numbers.iter().fold(Message::default(), |packed, &number| packed.varint(number));
        self.message(field, &packed)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::Node;
    use super::super::fixtures::node;
    use crate::{Snapshot, fixtures as reports};

    fn snapshot(tree: Vec<Node>) -> Snapshot {
        Snapshot::new(reports::process(None), Vec::new(), Vec::new()).with_tree(tree)
    }

    /// Reads a varint.
    fn varint(bytes: &mut &[u8]) -> u64 {
        let (mut number, mut shift) = (0, 0);
        loop {
            let (&byte, rest) = bytes.split_first().unwrap();
            *bytes = rest;
            number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return number;
            }
        }
    }

    /// Reads the fields of a message: numbers, and bytes.
    fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, &[u8])> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let number = varint(&mut bytes);
            let length = if key & 7 == 2 { number as usize } else { 0 };
            let (value, rest) = bytes.split_at(length);
            fields.push((key >> 3, number, value));
            bytes = rest;
        }
        fields
    }

    fn packed(mut bytes: &[u8]) -> Vec<u64> {
        let mut numbers = Vec::new();
        while !bytes.is_empty() {
            numbers.push(varint(&mut bytes));
        }
        numbers
    }

    /// Reads a profile as folded stacks.
    fn folded(profile: &[u8]) -> BTreeMap<String, u64> {
        let all = fields(profile);
        let of =
            |field: u64| all.iter().filter(move |(of, ..)| *of == field).map(|(.., value)| *value);
        let get = |message: &[u8], field: u64| {
            fields(message).iter().find(|(of, ..)| *of == field).map_or(0, |(_, number, _)| *number)
        };
        let texts: Vec<&str> = of(6).map(|text| str::from_utf8(text).unwrap()).collect();
        let text = |at: u64| texts[at as usize];
        let kinds: Vec<_> = of(1).map(|kind| [get(kind, 1), get(kind, 2)].map(text)).collect();
        assert_eq!(kinds, [["calls", "count"], ["gpu", "nanoseconds"]]);
        let name = |location: u64| {
            let place = of(4).find(|place| get(place, 1) == location).unwrap();
            let line = fields(place).into_iter().find(|(field, ..)| *field == 4).unwrap().2;
            text(get(of(5).find(|function| get(function, 1) == get(line, 1)).unwrap(), 2))
        };
        let sample = |sample: &[u8]| {
            let [locations, values] = [1, 2].map(|field| {
                packed(fields(sample).into_iter().find(|(of, ..)| *of == field).unwrap().2)
            });
            let stack: Vec<&str> = locations.into_iter().rev().map(name).collect();
            (stack.join(";"), values[1])
        };
        of(2).map(sample).filter(|(_, ns)| *ns > 0).collect()
    }

    #[test]
    fn profile_has_the_stacks_and_the_nanoseconds_of_the_folded_ones() {
        let large = 3.0e12 + 7.0;
        let tree = vec![
            node("train", None, 2.0 * large, 1.6),
            node("step", Some(0), large, large - 300.0),
            node("saxpy", Some(1), 300.0, 300.0),
            node("saxpy", None, 9.0, 9.0),
        ];
        let snapshot = snapshot(tree);
        let lines = snapshot.to_folded();
        let expected = lines.lines().map(|line| {
            let (stack, ns) = line.rsplit_once(' ').unwrap();
            (stack.to_owned(), ns.parse().unwrap())
        });
        let expected: BTreeMap<String, u64> = expected.collect();
        assert_eq!(expected.len(), 4);
        assert_eq!(folded(&snapshot.to_pprof()), expected);
    }

    #[test]
    fn run_without_a_tree_is_an_empty_profile() {
        assert!(folded(&snapshot(vec![]).to_pprof()).is_empty());
    }
}
