//! The calls on this thread that have a bracket open, so that a bracket inside another one knows of it.

use std::cell::Cell;
use std::ptr;

use crate::base::thread_id;
use crate::record::stack;
use crate::record::stream_state::StreamState;
use crate::site::callsite::CallSite;
use crate::stats::call_tree::place::{PathId, Place};

/// The maximum number of open brackets. Those inside further ones do not know of them.
const MAX_OPEN: usize = 64;

/// A call timed by events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunningCall {
    /// Unique within the process.
    number: u64,
    /// The call's path in the call tree; `None` if the tree has no room for it.
    path: Option<PathId>,
}

/// A call and the stream on which it has an open bracket.
#[derive(Clone, Copy)]
struct OpenBracket {
    call: RunningCall,
    stream: Option<&'static StreamState>,
}

const NONE: OpenBracket = OpenBracket { call: RunningCall { number: 0, path: None }, stream: None };

/// The open brackets of one thread, in the order in which they were opened.
struct OpenBrackets {
    entries: [Cell<OpenBracket>; MAX_OPEN],
    len: Cell<usize>,
    /// The number of the last call; 0 before the first.
    last: Cell<u64>,
}

thread_local! {
    // Without a destructor, so that it can be used for as long as the thread runs.
    static OPEN: OpenBrackets = const {
        OpenBrackets {
            entries: [const { Cell::new(NONE) }; MAX_OPEN],
            len: Cell::new(0),
            last: Cell::new(0),
        }
    };
}

/// Begins a call on this thread, which must not be inside an opened call.
#[inline]
pub(crate) fn begin(site: &'static CallSite) -> RunningCall {
    RunningCall { number: OPEN.with(OpenBrackets::next_number), path: stack::path_inside(site) }
}

/// Notes that the call has ended or is suspended. Returns the stream of its open bracket, if it has one.
#[inline]
pub(crate) fn leave(call: RunningCall) -> Option<&'static StreamState> {
    OPEN.with(|open| open.remove(call))
}

/// Sets the stream on which the call has an open bracket, if any.
#[inline]
pub(crate) fn set(call: RunningCall, stream: Option<&'static StreamState>) {
    OPEN.with(|open| {
        open.remove(call);
        if stream.is_some() {
            open.push(OpenBracket { call, stream });
        }
    });
}

impl RunningCall {
    /// Returns the place in the call tree of a bracket that this call is about to open on `stream`.
    #[inline]
    pub fn place(self, stream: &'static StreamState) -> Option<Place> {
        let path = self.path?;
        let is_its = |entry: &OpenBracket| entry.stream.is_some_and(|open| ptr::eq(open, stream));
        let around = OPEN.with(|open| {
            let mut entries = open.entries().iter().map(Cell::get).rev();
            entries.find(is_its).and_then(|entry| entry.call.path)
        });
        Some(Place { path, around })
    }

    /// Returns the path of this call in the call tree.
    pub fn path(self) -> Option<PathId> {
        self.path
    }

    /// Returns this call's place in the call tree, as a call without a bracket.
    pub fn outside(self) -> Option<Place> {
        Some(Place { path: self.path?, around: None })
    }
}

impl OpenBrackets {
    #[inline]
    fn entries(&self) -> &[Cell<OpenBracket>] {
        &self.entries[..self.len.get()]
    }

    #[inline]
    fn push(&self, entry: OpenBracket) {
        let len = self.len.get();
        if let Some(free) = self.entries.get(len) {
            free.set(entry);
            self.len.set(len + 1);
        }
    }

    /// Removes the call, which is usually the last one.
    #[inline]
    fn remove(&self, call: RunningCall) -> Option<&'static StreamState> {
        let entries = self.entries();
        let at = entries.iter().rposition(|entry| entry.get().call.number == call.number)?;
        let removed = entries[at].get();
        // A guard may be dropped before one that was created after it.
        for next in at + 1..entries.len() {
            entries[next - 1].set(entries[next].get());
        }
        self.len.set(entries.len() - 1);
        removed.stream
    }

    fn next_number(&self) -> u64 {
        let number = match self.last.get() {
            0 => thread_id::current() << 40,
            last => last + 1,
        };
        self.last.set(number);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::fake::site;
    use crate::record::stack::StackPlace;
    use crate::record::stream_state::StreamKey;
    use crate::types::handles::Stream;

    /// Runs a test on a new thread, which has no open bracket.
    fn alone(test: impl FnOnce() + Send) {
        std::thread::scope(|scope| scope.spawn(test).join().unwrap());
    }

    /// Begins nested calls.
    fn nested<const N: usize>() -> [RunningCall; N] {
        std::array::from_fn(|at| {
            let site = site();
            site.set_id(90_000 + at as u32);
            let call = begin(site);
            StackPlace::default().enter(site);
            call
        })
    }

    fn stream(at: usize) -> &'static StreamState {
        Box::leak(Box::new(StreamState::new(StreamKey::new(Stream(64 + at), &()))))
    }

    fn around(call: RunningCall, stream: &'static StreamState) -> Option<PathId> {
        call.place(stream).unwrap().around
    }

    #[test]
    fn bracket_around_is_the_innermost_one_on_the_stream() {
        alone(|| {
            let [one, two] = [stream(0), stream(1)];
            let [outer, middle, inner] = nested();
            set(outer, Some(one));
            set(middle, Some(two));
            assert_eq!([one, two].map(|stream| around(inner, stream)), [outer.path, middle.path]);
            set(outer, None);
            assert_eq!(around(inner, one), None);
        });
    }

    #[test]
    fn bracket_of_suspended_call_is_not_around() {
        alone(|| {
            let one = stream(0);
            let [waiting, inner] = nested();
            set(waiting, Some(one));
            assert!(leave(waiting).is_some_and(|open| ptr::eq(open, one)));
            assert_eq!(around(inner, one), None);
            set(waiting, Some(one));
            // Cancelled on another thread, which does not have the bracket.
            alone(|| assert!(leave(waiting).is_none()));
            assert_eq!(around(inner, one), waiting.path);
        });
    }

    #[test]
    fn brackets_may_end_in_any_order() {
        alone(|| {
            let streams: [_; 3] = std::array::from_fn(stream);
            let [a, b, c, inner] = nested();
            [a, b, c].into_iter().zip(streams).for_each(|(call, stream)| set(call, Some(stream)));
            leave(b);
            assert!(leave(b).is_none());
            assert_eq!(streams.map(|stream| around(inner, stream)), [a.path, None, c.path]);
        });
    }

    #[test]
    fn number_of_open_brackets_is_bounded() {
        alone(|| {
            let one = stream(0);
            let calls: [RunningCall; MAX_OPEN + 1] = nested();
            calls.iter().for_each(|call| set(*call, Some(one)));
            assert_eq!(around(calls[0], one), calls[MAX_OPEN - 1].path);
            calls.iter().for_each(|call| _ = leave(*call));
            assert_eq!(around(calls[0], one), None);
        });
    }
}
