//! The annotated functions that a thread is inside of, timed or not.
//!
//! The stack gives what begins on the thread its path in the call tree, and with a budget tells which whole call is
//! [compared](trial). A suspended function is on no stack.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::base::{clock, fork, inside, switches};
use crate::record::open_frames::{self, Enclosing};
use crate::record::trial::{Drawn, EndedTimes};
use crate::record::{call_tree, trial};
use crate::site::{callsite::CallSite, cost};
use crate::stats::{call_tree::place::PathId, effect};

/// The maximum depth. Deeper calls count as parts of the innermost call on the stack.
const MAX_DEPTH: usize = 64;
/// The number of paths that a thread remembers, to avoid taking the lock on the tree.
const RECENT: usize = 128;

/// A function on the stack.
#[derive(Clone, Copy)]
struct StackFrame {
    /// `None` above the top of the stack only.
    site: Option<&'static CallSite>,
    /// The number of its path; 0 if it has not been needed so far.
    path: u32,
}

/// The functions that a thread is inside of, from the outermost to the innermost.
struct ThreadStack {
    frames: [Cell<StackFrame>; MAX_DEPTH],
    /// The number of functions, including those that are too deep to be on the stack.
    depth: Cell<u32>,
}

/// A cached lookup: the path of a site under the path of its caller.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Recent {
    parent: u32,
    site: u32,
    path: u32,
}

thread_local! {
    // Without destructors, so that callbacks can use them until the thread ends.
    static STACK: ThreadStack = const {
        ThreadStack {
            frames: [const { Cell::new(StackFrame { site: None, path: 0 }) }; MAX_DEPTH],
            depth: Cell::new(0),
        }
    };
    static RECENT_PATHS: [Cell<Recent>; RECENT] =
        const { [const { Cell::new(Recent { parent: 0, site: 0, path: 0 }) }; RECENT] };
}

/// The place of a call on the stack of the thread that it runs on.
#[derive(Debug)]
pub(crate) struct StackPlace {
    // Atomic because threads may share a future. Only the one that runs it uses them.
    /// The number of calls below it, or more than there can be before it is pushed.
    depth: AtomicU32,
    /// The number of the call's path, if it was known when the call was suspended.
    path: AtomicU32,
    /// The time at which the call began, with a budget, and otherwise 0.
    entered_ns: AtomicU64,
    /// The [draw](Drawn) of a suspended call.
    drawn: AtomicU64,
}

impl Default for StackPlace {
    #[inline]
    fn default() -> StackPlace {
        StackPlace {
            depth: AtomicU32::new(u32::MAX),
            path: AtomicU32::new(0),
            entered_ns: AtomicU64::new(0),
            drawn: AtomicU64::new(0),
        }
    }
}

impl StackPlace {
    /// Pushes a call that begins on this thread.
    #[inline]
    pub fn enter(&self, site: &'static CallSite) {
        self.push(site);
        if cost::is_on() {
            self.entered_ns.store(clock::now_ns(), Relaxed);
        }
    }

    /// Pushes a call that continues on this thread.
    pub fn resume(&self, site: &'static CallSite) {
        self.push(site);
        trial::resume(site, self.depth.load(Relaxed), Drawn(self.drawn.swap(0, Relaxed)));
    }

    #[inline]
    fn push(&self, site: &'static CallSite) {
        STACK.with(|stack| {
            let depth = stack.depth.get();
            self.depth.store(depth, Relaxed);
            if let Some(frame) = stack.frames.get(depth as usize) {
                frame.set(StackFrame { site: Some(site), path: self.path.load(Relaxed) });
            }
            stack.depth.set(depth.saturating_add(1));
            if depth == 0 {
                open_frames::enter(Enclosing::Functions);
            }
        });
    }

    /// Removes the call, because it ends, if it was pushed. Returns what is to be noted of its time.
    #[inline]
    pub fn end(&self, site: &'static CallSite) -> EndedTimes {
        self.leave();
        let drawn = trial::take(site, self.depth.load(Relaxed));
        EndedTimes { entered_ns: self.entered_ns.load(Relaxed), drawn }
    }

    /// Removes the call from the stack, if it was pushed. What began inside the call and has not ended by now may never
    /// end, such as a guard that was leaked, and is removed as well.
    #[inline]
    fn leave(&self) {
        let depth = self.depth.load(Relaxed);
        // The stack is lower if guards are not dropped in the reverse order of their creation.
        STACK.with(|stack| stack.depth.set(stack.depth.get().min(depth)));
        if depth == 0 {
            open_frames::leave(Enclosing::Functions);
        }
    }

    /// Removes a call that may continue on another thread, where it keeps its path.
    pub fn suspend(&self, site: &'static CallSite) {
        self.drawn.store(trial::take(site, self.depth.load(Relaxed)).0, Relaxed);
        if fork::is_forked() {
            // Another thread may have held the lock on the tree at the fork.
            return self.leave();
        }
        let _inside = inside::enter();
        let depth = self.depth.load(Relaxed) as usize;
        let path =
            STACK.with(|stack| if depth < stack.len() { stack.path(depth + 1) } else { None });
        if let Some(path) = path {
            self.path.store(path.number(), Relaxed);
        }
        self.leave();
    }
}

impl ThreadStack {
    fn len(&self) -> usize {
        (self.depth.get() as usize).min(MAX_DEPTH)
    }

    /// Returns `true` if this function is on the stack with this number of functions below it.
    fn has(&self, site: &'static CallSite, depth: u32) -> bool {
        let frame = self.frames[..self.len()].get(depth as usize);
        frame.and_then(|frame| frame.get().site).is_some_and(|other| ptr::eq(site, other))
    }

    /// Returns the outermost function whose calls are compared as a whole, with the number of functions below it, if
    /// `site` is pushed next.
    fn unit(&self, site: &'static CallSite) -> Option<(&'static CallSite, u32)> {
        let on_stack = self.frames[..self.len()].iter().filter_map(|frame| frame.get().site);
        let mut all = on_stack.chain([site]).take(MAX_DEPTH).zip(0..);
        all.find(|(site, _)| site.trials.is_unit())
    }

    /// Returns the path of the last of the outermost `depth` functions.
    fn path(&self, depth: usize) -> Option<PathId> {
        let frames = &self.frames[..depth];
        let known = frames.iter().rposition(|frame| frame.get().path != 0);
        let mut path = known.and_then(|at| PathId::numbered(frames[at].get().path));
        for frame in &frames[known.map_or(0, |at| at + 1)..] {
            let StackFrame { site, .. } = frame.get();
            path = path_of(path, site.map_or(0, CallSite::id));
            frame.set(StackFrame { site, path: path.map_or(0, PathId::number) });
        }
        path
    }
}

/// Returns the id of the site of the innermost function that the thread is inside of. Takes no lock.
pub(crate) fn innermost_site() -> Option<u32> {
    STACK.with(|stack| Some(stack.frames[..stack.len()].last()?.get().site?.id()))
}

/// Decides about a call that sampling has chosen, and that is about to begin. Returns the number of chosen calls that
/// it stands for, or `None` if it is left alone.
pub(crate) fn admit(site: &'static CallSite) -> Option<f32> {
    if switches::is_recording() {
        // CUPTI records whatever is left alone as well.
        return Some(1.0);
    }
    STACK.with(|stack| {
        // A call that was drawn and then not entered has no end.
        let drawn = trial::drawn().filter(|(unit, depth, _)| stack.has(unit, *depth));
        let drawn = drawn.or_else(|| {
            let (unit, depth) = stack.unit(site)?;
            Some((unit, depth, trial::draw(unit, depth)))
        });
        let Some((unit, _, is_timed)) = drawn else { return Some(1.0) };
        site.trials.set_unit(&unit.trials);
        is_timed.then_some(effect::WEIGHT as f32)
    })
}

/// Returns the path of the innermost function that the thread is inside of.
#[inline]
pub(crate) fn path() -> Option<PathId> {
    STACK.with(|stack| stack.path(stack.len()))
}

/// Returns the path of a function that begins on this thread.
#[inline]
pub(crate) fn path_inside(site: &'static CallSite) -> Option<PathId> {
    let is_full = STACK.with(|stack| stack.depth.get() as usize >= MAX_DEPTH);
    if is_full { path() } else { path_of(path(), site.id()) }
}

/// Returns the path of a function under a caller, or the caller's path if there are too many paths.
#[inline]
pub(crate) fn path_of(parent: Option<PathId>, site: u32) -> Option<PathId> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::fake::site;

    /// Runs a test on a new thread, whose stack is empty.
    fn alone(test: impl FnOnce() + Send) {
        std::thread::scope(|scope| scope.spawn(test).join().unwrap());
    }

    fn sites<const N: usize>() -> [&'static CallSite; N] {
        std::array::from_fn(|at| {
            let site = site();
            site.set_id(80_000 + at as u32);
            site
        })
    }

    fn enter(site: &'static CallSite) -> StackPlace {
        let place = StackPlace::default();
        place.enter(site);
        place
    }

    fn expected(sites: &[&'static CallSite]) -> Option<PathId> {
        sites.iter().fold(None, |path, site| call_tree::path(path, site.id()))
    }

    #[test]
    fn path_has_every_function() {
        alone(|| {
            let [a, b, c] = sites();
            let (_outer, inner) = (enter(a), enter(b));
            assert_eq!((path(), path_inside(c)), (expected(&[a, b]), expected(&[a, b, c])));
            inner.leave();
            assert_eq!((path(), path_inside(a)), (expected(&[a]), expected(&[a, a])));
        });
    }

    #[test]
    fn end_of_a_call_ends_what_was_leaked_inside() {
        alone(|| {
            let [a, b] = sites();
            let [outer, _leaked] = [a, b].map(enter);
            outer.leave();
            assert_eq!(path(), None);
        });
    }

    #[test]
    fn calls_may_end_in_any_order() {
        alone(|| {
            let [a, b] = sites();
            let [first, second] = [a, b].map(enter);
            first.leave();
            let [third, fourth] = [a, b].map(enter);
            second.leave();
            fourth.leave();
            assert_eq!(path(), expected(&[a]));
            third.leave();
            assert_eq!(path(), None);
        });
    }

    #[test]
    fn suspended_call_keeps_its_path() {
        alone(|| {
            let [a, b, c] = sites();
            let outer = enter(a);
            let waits = enter(b);
            waits.suspend(b);
            outer.leave();
            let other = enter(c);
            waits.enter(b);
            assert_eq!(path_inside(c), expected(&[a, b, c]));
            waits.leave();
            assert_eq!(path(), expected(&[c]));
            other.leave();
            assert_eq!(path(), None);
        });
    }

    #[test]
    fn too_deep_calls_belong_to_the_last_known_one() {
        alone(|| {
            let [a, b] = sites();
            let calls: Vec<_> = (0..MAX_DEPTH).map(|_| enter(a)).collect();
            let last = path();
            let deep = enter(b);
            assert_eq!((path(), path_inside(b)), (last, last));
            deep.leave();
            calls.into_iter().rev().for_each(|call| call.leave());
            assert_eq!(path_inside(b), expected(&[b]));
        });
    }

    #[test]
    fn known_path_takes_no_lock() {
        alone(|| {
            let [a, b] = sites();
            let run = || {
                let (outer, inner) = (enter(a), enter(b));
                path();
                inner.leave();
                outer.leave();
            };
            run();
            let _locked = call_tree::tree();
            run();
        });
    }
}
