//! Combines [`Args`] and [`TimedFn`] into a [`Plan`], and checks the rules that need both.
//!
//! A `Plan` is created nowhere else. It holds everything that the expansion needs, so that the
//! expansion cannot fail.

use proc_macro2::Ident;
use syn::{LitStr, Stmt};

use crate::enabled::args::{Args, Clock, Scope};
use crate::enabled::awaits::mentions;
use crate::enabled::conflicts::{conflicts, not_async};
use crate::enabled::errors::Errors;
use crate::enabled::func::{TimedFn, tail_future};
use crate::enabled::launches::{Findings, LAUNCHES, find, mark};
use crate::enabled::marks::Marks;
use crate::enabled::paths::Paths;
use crate::enabled::renamed::renamed;
use crate::enabled::source::{Stream, is_elsewhere, no_awaits, streams};

/// The decisions about one annotated function.
pub struct Plan {
    pub func: TimedFn,
    pub paths: Paths,
    pub args: Args,
    pub scope: Scope,
    pub clock: Clock,
    /// The candidates for the stream, of which the one that no `cfg` removes applies. At most one candidate has no
    /// `cfg`. Empty for a clock that needs no stream.
    pub streams: Vec<Stream>,
    /// Neither a stream nor a clock is given, so the default stream applies.
    pub is_unnamed: bool,
    /// The names of the marked launches, in the order of their numbers.
    pub launches: Vec<Ident>,
    /// A call makes at most one launch.
    pub is_single: bool,
    /// The name of a variant of the runtime's `Remark`, which limits the meaning of the times.
    pub remark: Option<&'static str>,
    /// The timed code may await.
    pub is_async: bool,
    /// The function ends in a future, into which the statement that enters the scope goes.
    pub is_future: bool,
    /// The statements with marks; `None` if the user's tokens stay as they are. With `is_future`, all statements of the
    /// function, otherwise those after the leading items.
    pub marked: Option<Vec<Stmt>>,
}

impl Plan {
    /// Applies every rule. Returns `None` if there are errors.
    pub fn new(args: Args, mut func: TimedFn, errors: &mut Errors) -> Option<Plan> {
        conflicts(&args, errors);
        let names = launch_names(&args);
        let mut stmts = func.stmts.take();
        let (found, is_future) = findings(stmts.as_deref_mut(), &func, &names);
        let streams = streams(&args, &func, &found, errors);
        let clock = clock(&args, &streams);
        let scope = scope(&args, clock, stmts.is_some(), &found, errors);
        let is_async = is_future || func.sig.asyncness.is_some();
        unused_names(&args, &func, errors);
        if scope == Scope::Body && args.graph && clock == Clock::Events {
            let message = graph_in_body_scope(&args, stmts.is_some(), &found);
            errors.about(&["graph", "scope"], args.key("graph"), message);
        }
        if is_async {
            not_async(&args, errors);
        }
        if scope == Scope::Body && !is_future {
            returns_when_done(&func, errors);
        }
        no_awaits(&[("key", &args.series), ("bytes", &args.bytes), ("flops", &args.flops)], errors);
        if !errors.is_empty() {
            return None;
        }

        let remark = match stmts {
            Some(_) => remark(&args, &func, &streams, clock, scope, &found),
            None => Some("UnparsedBody"),
        };
        let paths = Paths::new(args.krate.clone().or_else(renamed));
        let marks = Marks { paths: &paths, launches: scope == Scope::Launches, awaits: is_async };
        let marked = marked(stmts, is_future, &names, marks);
        let is_single = scope == Scope::Launches && found.launches.len() == 1 && !found.repeated;
        Some(Plan {
            func,
            paths,
            is_unnamed: args.clock.is_none() && streams.is_empty(),
            args,
            scope,
            clock,
            streams,
            launches: match scope {
                Scope::Launches => found.launches,
                Scope::Body => Vec::new(),
            },
            is_single,
            remark,
            is_async,
            is_future,
            marked,
        })
    }
}

/// Returns the names of all methods, functions and macros that are launches.
fn launch_names(args: &Args) -> Vec<String> {
    LAUNCHES.map(str::to_owned).into_iter().chain(args.launch.iter().map(LitStr::value)).collect()
}

/// Searches the timed code, which is only the future if the function ends in one. Returns `true` in that
/// case.
fn findings(stmts: Option<&mut [Stmt]>, func: &TimedFn, names: &[String]) -> (Findings, bool) {
    let Some(stmts) = stmts else { return Default::default() };
    let found = find(stmts, names);
    // Launches before the future are not part of its work, so the function is then not treated as a
    // future.
    if func.sig.asyncness.is_some() || !found.launches.is_empty() {
        return (found, false);
    }
    match tail_future(stmts) {
        Some(block) => (find(&block.stmts, names), true),
        None => (found, false),
    }
}

/// Returns the requested clock. By default, it is `events` if there is a stream or a key needs one.
fn clock(args: &Args, streams: &[Stream]) -> Clock {
    let needs_none = streams.is_empty() && args.needing_stream().is_none();
    args.clock.unwrap_or(if needs_none { Clock::Kernels } else { Clock::Events })
}

/// Returns the remark about a body that was parsed.
fn remark(
    args: &Args,
    func: &TimedFn,
    streams: &[Stream],
    clock: Clock,
    scope: Scope,
    found: &Findings,
) -> Option<&'static str> {
    let is_partly_hidden = found.hidden && !found.launches.is_empty();
    match scope {
        Scope::Launches => is_elsewhere(streams, func, found).then_some("OtherStream"),
        // A body in body scope may fork from its stream and join it again, and CUPTI also records hidden
        // launches.
        Scope::Body => (args.scope.is_none() && clock != Clock::Kernels && is_partly_hidden)
            .then_some("HiddenLaunch"),
    }
}

/// Puts the marks into the statements. Returns `None` if they need none.
fn marked(
    stmts: Option<Vec<Stmt>>,
    is_future: bool,
    names: &[String],
    marks: Marks,
) -> Option<Vec<Stmt>> {
    let mut stmts = stmts.filter(|_| is_future || marks.launches || marks.awaits)?;
    if !is_future {
        mark(&mut stmts, names, marks);
    } else if let Some(block) = tail_future(&mut stmts) {
        mark(&mut block.stmts, names, marks);
    }
    Some(stmts)
}

/// Returns the requested scope. By default, it is `launches` if a launch is visible and none is
/// hidden.
fn scope(args: &Args, clock: Clock, parsed: bool, found: &Findings, errors: &mut Errors) -> Scope {
    let visible = !found.launches.is_empty();
    match args.scope {
        _ if clock != Clock::Events => Scope::Body,
        Some(Scope::Launches) if !visible => {
            let message = match (parsed, found.hidden) {
                (false, _) => "cannot parse this body to find launches: write `scope = \"body\"`",
                (_, false) => {
                    "no visible launch in this body: name one, as in `launch = \"gemm\"`, or write \
                     `scope = \"body\"`"
                }
                (_, true) => {
                    "no visible launch: every launch of this body is in a closure, an async block, a \
                     nested item or a macro's arguments; move one out, or write `scope = \"body\"`"
                }
            };
            errors.about(&["scope"], args.key("scope"), message);
            Scope::Launches
        }
        Some(scope) => scope,
        None if visible && !found.hidden => Scope::Launches,
        None => Scope::Body,
    }
}

/// The error for `graph` in body scope, which says why the scope is not launches.
fn graph_in_body_scope(args: &Args, parsed: bool, found: &Findings) -> &'static str {
    match (args.scope, parsed, found.hidden) {
        (Some(_), ..) => "`graph` conflicts with `scope = \"body\"`: it times single launches",
        (None, false, _) => {
            "`graph` needs visible launches, and this body cannot be parsed: move the launches into \
             a function of their own and annotate that"
        }
        (None, true, true) => {
            "`graph` needs visible launches, and one is in a closure, an async block, a nested item \
             or a macro's arguments: move it out, or write `scope = \"launches\"` to time only the \
             others"
        }
        (None, true, false) => {
            "`graph` needs visible launches, and this body has none: name one, as in \
             `launch = \"gemm\"`"
        }
    }
}

/// Reports a function that returns before its work is done, which body scope would miss.
fn returns_when_done(func: &TimedFn, errors: &mut Errors) {
    if let Some(lazy) = func.returns_lazily() {
        let message = format!(
            "this function returns before its work is done (`{lazy}`): annotate the function that \
             does the work"
        );
        errors.at(lazy, message);
        errors.returns_early = true;
    }
}

/// Reports launch names that do not occur in the body, which are probably misspelt.
fn unused_names(args: &Args, func: &TimedFn, errors: &mut Errors) {
    // Inherited names may belong to the launches of other functions.
    if errors.inherits("launch") {
        return;
    }
    for name in &args.launch {
        let wanted = name.value();
        if !mentions(&func.lead, &wanted) && !mentions(&func.rest, &wanted) {
            errors.at(name, format!("`{wanted}` does not occur in this body: expected a method, function or macro that it calls"));
        }
    }
}
