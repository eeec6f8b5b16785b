//! A stack of this thread's running calls that are timed by events.
//!
//! The stack gives a new call its path in the call tree and the bracket around it. Suspended functions are not on it.

use std::cell::Cell;
use std::ptr;

use crate::base::thread_id;
use crate::record::call_tree;
use crate::record::opened::passed_over;
use crate::record::stream_state::StreamState;
use crate::site::callsite::CallSite;
use crate::stats::call_tree::place::{PathId, Place};

/// The maximum depth of the stack. Deeper calls count as parts of the innermost call on it.
const MAX_DEPTH: usize = 64;
/// The number of paths that a thread remembers, to avoid taking the lock on the tree.
const RECENT: usize = 128;

/// A call timed by events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunningCall {
    /// Unique within the process; 0 if the call is nested too deeply to be on the stack.
    number: u64,
    /// The call's path in the call tree; `None` if the tree has no room for it.
    path: Option<PathId>,
}

/// A call on the stack, and the stream on which it has an open bracket, if any.
#[derive(Clone, Copy)]
struct StackedCall {
    call: RunningCall,
    bracket: Option<&'static StreamState>,
}

/// A cached lookup: the path of a site under the path of its caller.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Recent {
    parent: u32,
    site: u32,
    path: u32,
}

const NO_CALL: StackedCall =
    StackedCall { call: RunningCall { number: 0, path: None }, bracket: None };

/// The calls that run on one thread, from the outermost to the innermost.
struct CallStack {
    entries: [Cell<StackedCall>; MAX_DEPTH],
    depth: Cell<usize>,
    /// The number of the last call; 0 before the first.
    last: Cell<u64>,
}

thread_local! {
    // Without destructors, so that they can be used for as long as the thread runs.
    static STACK: CallStack = const { CallStack::new() };
    static RECENT_PATHS: [Cell<Recent>; RECENT] =
        const { [const { Cell::new(Recent { parent: 0, site: 0, path: 0 }) }; RECENT] };
}

/// Pushes a call onto this thread's stack. The thread must not be inside an opened call.
#[inline]
pub(crate) fn begin(site: &'static CallSite) -> RunningCall {
    STACK.with(|stack| {
        let around = stack.running().last().map(|around| around.get().call.path);
        let path = match around {
            Some(around) if stack.depth.get() == MAX_DEPTH => around,
            Some(around) => around.and_then(|around| path_of(Some(around), site.id())),
            None => path_of(passed_over(), site.id()),
        };
        let call = RunningCall { number: stack.next_number(), path };
        let is_pushed = stack.push(StackedCall { call, bracket: None });
        if is_pushed { call } else { RunningCall { number: 0, path } }
    })
}

/// Removes a call from the stack, because it has ended or its function is suspended. Returns the stream of its open
/// bracket, if it has one.
#[inline]
pub(crate) fn leave(call: RunningCall) -> Option<&'static StreamState> {
    STACK.with(|stack| {
        let at = stack.position(call)?;
        let StackedCall { bracket, .. } = stack.entries[at].get();
        let depth = stack.depth.get();
        // A guard may be dropped before one that was created after it.
        for at in at + 1..depth {
            stack.entries[at - 1].set(stack.entries[at].get());
        }
        stack.depth.set(depth - 1);
        bracket
    })
}

/// Pushes the call of a suspended function that continues on this thread. `bracket` is the stream
/// on which the call has an open bracket, if any.
pub(crate) fn resume(call: RunningCall, bracket: Option<&'static StreamState>) {
    if call.number != 0 {
        STACK.with(|stack| stack.push(StackedCall { call, bracket }));
    }
}

/// Sets the stream on which the call has an open bracket, if any.
#[inline]
pub(crate) fn set_bracket(call: RunningCall, bracket: Option<&'static StreamState>) {
    STACK.with(|stack| {
        if let Some(at) = stack.position(call) {
            stack.entries[at].set(StackedCall { call, bracket });
        }
    });
}

impl RunningCall {
    /// Returns the place in the call tree of a bracket that this call is about to open on `stream`.
    #[inline]
    pub fn place(self, stream: &'static StreamState) -> Option<Place> {
        let path = self.path?;
        let is_its = |entry: &StackedCall| entry.bracket.is_some_and(|open| ptr::eq(open, stream));
        let around = STACK.with(|stack| {
            let entries = stack.running().iter().map(Cell::get);
            entries.rev().find(is_its).and_then(|entry| entry.call.path)
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

impl CallStack {
    const fn new() -> CallStack {
        CallStack {
            entries: [const { Cell::new(NO_CALL) }; MAX_DEPTH],
            depth: Cell::new(0),
            last: Cell::new(0),
        }
    }

    #[inline]
    fn running(&self) -> &[Cell<StackedCall>] {
        &self.entries[..self.depth.get()]
    }

    /// Pushes an entry. Returns `false` if the stack is full.
    #[inline]
    fn push(&self, entry: StackedCall) -> bool {
        let depth = self.depth.get();
        let Some(free) = self.entries.get(depth) else { return false };
        free.set(entry);
        self.depth.set(depth + 1);
        true
    }

    /// Returns the index of a call, which is usually the last one.
    #[inline]
    fn position(&self, call: RunningCall) -> Option<usize> {
        self.running().iter().rposition(|entry| entry.get().call.number == call.number)
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

/// Returns the path of a function under a caller, or the caller's path if there are too many paths.
#[inline]
fn path_of(parent: Option<PathId>, site: u32) -> Option<PathId> {
    let number = parent.map_or(0, PathId::number);
    RECENT_PATHS.with(|recent| {
        let slot = &recent[(number.wrapping_mul(31) ^ site) as usize % RECENT];
        let known = slot.get();
        if (known.parent, known.site) != (number, site) || known.path == 0 {
            let path = call_tree::path(parent, site).or(parent)?;
            slot.set(Recent { parent: number, site, path: path.number() });
            return Some(path);
        }
        PathId::numbered(known.path)
    })
}

/// Returns the path of the surrounding calls that were not chosen to be opened.
#[inline]
fn passed_over() -> Option<PathId> {
    let mut path = None;
    passed_over::for_each_site(|site| path = path_of(path, site));
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::fake::site;
    use crate::record::stream_state::StreamKey;
    use crate::types::handles::Stream;

    fn depth() -> usize {
        STACK.with(|stack| stack.depth.get())
    }

    /// Runs a test on a new thread, whose stack is empty.
    fn alone(test: impl FnOnce() + Send) {
        std::thread::scope(|scope| scope.spawn(test).join().unwrap());
    }

    fn sites<const N: usize>() -> [&'static CallSite; N] {
        std::array::from_fn(|at| {
            let site = site();
            site.set_id(90_000 + at as u32);
            site
        })
    }

    fn stream(at: usize) -> &'static StreamState {
        Box::leak(Box::new(StreamState::new(StreamKey::new(Stream(64 + at), &()))))
    }

    fn path(names: &[&'static CallSite]) -> Option<PathId> {
        names.iter().fold(None, |path, site| call_tree::path(path, site.id()))
    }

    #[test]
    fn path_has_every_running_call() {
        alone(|| {
            let [a, b, c] = sites();
            let outer = begin(a);
            let inner = begin(b);
            assert_eq!((outer.path, inner.path), (path(&[a]), path(&[a, b])));
            leave(inner);
            let other = begin(c);
            assert_eq!(other.path, path(&[a, c]));
            assert_eq!(begin(c).path, path(&[a, c, c]));
        });
    }

    #[test]
    fn suspended_call_is_not_around() {
        alone(|| {
            let [a, b] = sites();
            let waiting = begin(a);
            leave(waiting);
            assert_eq!(begin(b).path, path(&[b]));
        });
        alone(|| {
            let [a, b] = sites();
            let waiting = begin(a);
            leave(waiting);
            resume(waiting, None);
            assert_eq!(begin(b).path, path(&[a, b]));
            // Cancelled on another thread, which does not have the call on its stack.
            alone(|| _ = leave(waiting));
            assert_eq!(depth(), 2);
        });
    }

    #[test]
    fn calls_may_end_in_any_order() {
        alone(|| {
            let [a, b, c] = sites();
            let calls = [a, b, c].map(begin);
            leave(calls[1]);
            leave(calls[1]);
            assert_eq!(begin(b).path, path(&[a, b, c, b]));
            assert_eq!(depth(), 3);
        });
    }

    #[test]
    fn bracket_around_is_the_innermost_one_on_the_stream() {
        alone(|| {
            let [a, b, c] = sites();
            let [one, two] = [stream(0), stream(1)];
            let [outer, middle] = [begin(a), begin(b)];
            set_bracket(outer, Some(one));
            set_bracket(middle, Some(two));
            let inner = begin(c);
            let around = |stream| inner.place(stream).unwrap().around;
            assert_eq!([around(one), around(two)], [path(&[a]), path(&[a, b])]);
            set_bracket(outer, None);
            assert_eq!(around(one), None);
        });
    }

    #[test]
    fn too_deep_calls_belong_to_the_last_known_one() {
        alone(|| {
            let [a, b] = sites();
            let calls: Vec<_> = (0..MAX_DEPTH).map(|_| begin(a)).collect();
            let deep = begin(b);
            assert_eq!(deep.path, calls[MAX_DEPTH - 1].path);
            leave(deep);
            assert_eq!(depth(), MAX_DEPTH);
            calls.into_iter().rev().for_each(|call| _ = leave(call));
            assert_eq!(begin(b).path, path(&[b]));
        });
    }

    #[test]
    fn known_path_takes_no_lock() {
        alone(|| {
            let [a, b] = sites();
            let run = || {
                let outer = begin(a);
                leave(begin(b));
                leave(outer);
            };
            run();
            let _locked = call_tree::tree();
            run();
        });
    }
}
