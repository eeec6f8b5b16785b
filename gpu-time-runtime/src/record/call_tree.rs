//! The process's call tree.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use crate::base::lock::{Mutex, MutexGuard, Rank, locked, locked_by};
use crate::site::{callsite::CallSite, registry};
use crate::stats::bias::Bias;
use crate::stats::call_tree::forest::Named;
use crate::stats::call_tree::place::PathId;
use crate::stats::call_tree::{CallTree, HELPERS, RecordedCall};
use crate::types::{attribute::ScopeKind, device::DeviceId};
use gpu_time_report::Node;

static TREE: LazyLock<Mutex<CallTree>> =
    LazyLock::new(|| Mutex::new(Rank::CallTree, CallTree::default()));

/// Set if only some root spans of `tracing` are recorded. Any function may then be inside a root
/// span that was not recorded.
static SPANS_ARE_SAMPLED: AtomicBool = AtomicBool::new(false);
/// Set once a root span has been chosen to be recorded.
static SPAN_IS_CHOSEN: AtomicBool = AtomicBool::new(false);

/// Notes that not all root spans are recorded.
#[cfg(feature = "tracing")]
pub(crate) fn note_sampled_spans() {
    SPANS_ARE_SAMPLED.store(true, Relaxed);
}

/// Notes that a root span is recorded.
#[cfg(feature = "tracing")]
pub(crate) fn note_chosen_span() {
    SPAN_IS_CHOSEN.store(true, Relaxed);
}

/// Returns `true` if root spans were passed over, and none has been chosen so far.
pub(crate) fn have_all_spans_passed() -> bool {
    SPANS_ARE_SAMPLED.load(Relaxed) && !SPAN_IS_CHOSEN.load(Relaxed)
}

/// The known part of a function's call.
pub(super) enum KnownWork<'a> {
    Call(RecordedCall<'a>),
    /// Only the function's own work, because the call is recorded in parts or has not ended.
    Own(RecordedCall<'a>),
    Nothing,
}

/// Adds the functions of one recorded call to the tree, from the outermost to the innermost.
pub(super) struct CallTreeWriter {
    tree: MutexGuard<'static, CallTree>,
    /// The path of each function, or of the function around it if there are too many paths.
    paths: Vec<Option<PathId>>,
    /// The path of the callers around the outermost function.
    around: Option<PathId>,
}

impl CallTreeWriter {
    /// Begins a call inside the function with this path, which was not recorded itself.
    pub fn begin(around: Option<PathId>) -> CallTreeWriter {
        CallTreeWriter { tree: locked(&TREE), paths: Vec::new(), around }
    }

    /// Adds the next function. `parent` is the index of the function around it, in the order in
    /// which the functions were added.
    pub fn add(&mut self, site: &'static CallSite, parent: Option<u32>, work: KnownWork<'_>) {
        let tree = &mut *self.tree;
        let around = match parent {
            Some(parent) => self.paths.get(parent as usize).copied().flatten(),
            None => self.around,
        };
        let path = tree.path(around, site.id());
        let may_lack_spans = !site.is_span() && SPANS_ARE_SAMPLED.load(Relaxed);
        if parent.is_none() && (site.is_sampled() || may_lack_spans) {
            path.into_iter().for_each(|path| tree.forget_callers(path));
        }
        match (work, path.or(around)) {
            (KnownWork::Call(call), Some(of)) if path.is_some() => tree.record(of, call),
            (KnownWork::Call(call) | KnownWork::Own(call), Some(of)) => {
                tree.record_inner(of, call);
            }
            _ => {}
        }
        self.paths.push(path.or(around));
    }

    /// Adds the work of helper threads for a function, by its index in the order in which the functions were added. It is
    /// left out if there are too many paths, because it must not be in the function's own time.
    pub fn add_helpers(&mut self, function: u32, work: KnownWork<'_>) {
        let Some(around) = self.paths.get(function as usize).copied().flatten() else { return };
        let tree = &mut *self.tree;
        match (work, tree.path(Some(around), HELPERS)) {
            (KnownWork::Call(call), Some(path)) => tree.record(path, call),
            (KnownWork::Own(call), Some(path)) => tree.record_inner(path, call),
            _ => {}
        }
    }
}

/// Returns the path of a site under a caller, or `None` if there are too many paths.
#[cold]
pub(super) fn path(parent: Option<PathId>, site: u32) -> Option<PathId> {
    locked(&TREE).path(parent, site)
}

/// Returns the tree, for calls timed by events.
pub(super) fn tree() -> MutexGuard<'static, CallTree> {
    locked(&TREE)
}

/// Returns the call tree for the report. `calls` returns the number of calls of a site, by its index in the report, that
/// those in the tree stand for, if it is known. `bias` returns the bias of a device. The tree is empty if another
/// thread still holds its lock at the deadline.
pub(crate) fn report(
    deadline: Instant,
    calls: impl Fn(usize) -> Option<f64>,
    bias: impl Fn(DeviceId) -> Option<Bias>,
) -> Vec<Node> {
    let tree = locked_by(&TREE, deadline).map(|tree| tree.clone());
    let Some(tree) = tree else { return Vec::new() };
    let named = |site: u32| {
        let known = registry::site(site);
        let unknown = if site == HELPERS { Node::HELPER_THREADS } else { "<unknown>" };
        let at = known.and_then(|_| (site as usize).checked_sub(1));
        Named {
            name: known.map_or(unknown, CallSite::name).to_owned(),
            site: at,
            calls: at.and_then(&calls),
            is_span: known.is_some_and(CallSite::is_span),
            is_body: known.is_some_and(|site| site.spec.scope == ScopeKind::Body),
            warms_up: known.is_some_and(|site| site.warmup() > 0),
            is_counted: known.is_some_and(|site| site.rate.get().is_counted()),
        }
    };
    tree.report(named, bias, SPANS_ARE_SAMPLED.load(Relaxed))
}
