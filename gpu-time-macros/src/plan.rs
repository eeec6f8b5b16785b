//! Combines [`Args`] and [`TimedFn`] into a [`Plan`], and checks the rules that need both.
//!
//! A `Plan` is created nowhere else. It holds everything that the expansion needs, so that the
//! expansion cannot fail.

use proc_macro2::{Ident, TokenTree};
use syn::ext::IdentExt;
use syn::{Expr, LitStr, Stmt};

use crate::args::Args;
use crate::awaits::{await_in, contains};
use crate::conflicts::{conflicts, not_async};
use crate::errors::Errors;
use crate::func::{TimedFn, tail_future};
use crate::launches::{Findings, LAUNCHES, find, mark};
use crate::marks::Marks;
use crate::paths::Paths;
use crate::source::{Source, is_elsewhere, needed_by, no_await};
use crate::values::{Arg, Clock, Scope};

/// The decisions about one annotated function.
pub struct Plan {
    pub func: TimedFn,
    pub paths: Paths,
    pub name: Option<Expr>,
    pub warmup: Option<Expr>,
    pub sample: Option<Expr>,
    pub every: Option<Expr>,
    /// The name of a variant of the runtime's `Cold`.
    pub cold: Option<&'static str>,
    /// A time in nanoseconds, or `None` to hold the stream until the bracket is enqueued.
    pub hold: Option<Option<u64>>,
    /// Launches in a stream capture become timed nodes of the graph.
    pub graph: bool,
    pub scope: Scope,
    pub clock: Clock,
    pub source: Source,
    /// The argument that needs a stream, as the user would write it.
    pub needed_by: Option<&'static str>,
    /// Neither a stream nor a clock is given, so the default stream applies.
    pub is_unnamed: bool,
    /// The value that splits the site into series.
    pub key: Option<Expr>,
    /// The number of bytes that a call moves.
    pub bytes: Option<Expr>,
    pub flops: Option<Expr>,
    /// The names of the marked launches, in the order of their numbers.
    pub launches: Vec<Ident>,
    /// A call makes at most one launch.
    pub is_single: bool,
    pub options: String,
    /// The name of a variant of the runtime's `Remark`, which limits the meaning of the times.
    pub remark: Option<&'static str>,
    /// The timed code may await.
    pub is_async: bool,
    pub body: Body,
}

/// The code after the statement that enters the scope.
pub enum Body {
    /// The user's tokens, unchanged.
    Verbatim,
    /// Statements with marks.
    Marked(Vec<Stmt>),
    /// All statements of a function that ends in a future. The statement that enters the scope goes
    /// into the future.
    Future(Vec<Stmt>),
}

impl Plan {
    /// Applies every rule. Returns `None` if there are errors.
    pub fn new(args: Args, mut func: TimedFn, errors: &mut Errors) -> Option<Plan> {
        conflicts(&args, errors);
        let names = launch_names(&args);
        let mut stmts = func.stmts.take();
        let (found, is_future) = findings(stmts.as_deref_mut(), &func, &names);
        let source = Source::new(&args, &func, &found, errors);
        let clock = clock(&args, &source);
        let scope = scope(&args, clock, stmts.is_some(), &found, errors);
        let is_async = is_future || func.sig.asyncness.is_some();
        unused_names(&args, &func, errors);
        if let (Scope::Body, Some(graph), Clock::Events) = (scope, &args.graph, clock) {
            let message = graph_in_body_scope(&args, stmts.is_some(), &found);
            errors.about(&["graph", "scope"], &graph.key, message);
        }
        if is_async {
            not_async(&args, errors);
        }
        if scope == Scope::Body && !is_future {
            returns_when_done(&func, errors);
        }
        for value in [&args.series, &args.bytes, &args.flops].into_iter().flatten() {
            if let Some(at) = await_in(&value.value) {
                errors.at(at, no_await(&value.key));
            }
        }
        if !errors.is_empty() {
            return None;
        }

        let remark = match stmts {
            Some(_) => remark(&args, &func, &source, clock, scope, &found),
            None => Some("UnparsedBody"),
        };
        let needed_by = needed_by(&args);
        let paths = Paths::new(value(args.krate));
        let marks = Marks { paths: &paths, launches: scope == Scope::Launches, awaits: is_async };
        let body = body(stmts, is_future, &names, marks);
        let is_single = scope == Scope::Launches && found.launches.len() == 1 && !found.repeated;
        Some(Plan {
            func,
            paths,
            name: value(args.name),
            warmup: value(args.warmup),
            sample: value(args.sample),
            every: value(args.every),
            cold: value(args.cold),
            hold: value(args.sleep),
            graph: args.graph.is_some(),
            scope,
            clock,
            needed_by,
            is_unnamed: args.clock.is_none() && matches!(source, Source::None),
            source,
            key: value(args.series),
            bytes: value(args.bytes),
            flops: value(args.flops),
            launches: match scope {
                Scope::Launches => found.launches,
                Scope::Body => Vec::new(),
            },
            is_single,
            options: args.text,
            remark,
            is_async,
            body,
        })
    }
}

fn value<T>(arg: Option<Arg<T>>) -> Option<T> {
    arg.map(|arg| arg.value)
}

/// Returns the names of all methods, functions and macros that are launches.
fn launch_names(args: &Args) -> Vec<String> {
    let further = args.launch.iter().flat_map(|arg| &arg.value);
    LAUNCHES.map(str::to_owned).into_iter().chain(further.map(LitStr::value)).collect()
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
fn clock(args: &Args, source: &Source) -> Clock {
    match (&args.clock, source) {
        (Some(arg), _) => arg.value,
        (None, Source::None) if args.needing_stream().is_none() => Clock::Kernels,
        (None, _) => Clock::Events,
    }
}

/// Returns the remark about a body that was parsed.
fn remark(
    args: &Args,
    func: &TimedFn,
    source: &Source,
    clock: Clock,
    scope: Scope,
    found: &Findings,
) -> Option<&'static str> {
    let is_partly_hidden = found.hidden && !found.launches.is_empty();
    match scope {
        Scope::Launches => is_elsewhere(source, func, found).then_some("OtherStream"),
        // A body in body scope may fork from its stream and join it again, and CUPTI also records hidden
        // launches.
        Scope::Body => (args.scope.is_none() && clock != Clock::Kernels && is_partly_hidden)
            .then_some("HiddenLaunch"),
    }
}

/// Puts the marks into the body.
fn body(stmts: Option<Vec<Stmt>>, is_future: bool, names: &[String], marks: Marks) -> Body {
    let Some(mut stmts) = stmts else { return Body::Verbatim };
    if is_future {
        if let Some(block) = tail_future(&mut stmts) {
            mark(&mut block.stmts, names, marks);
        }
        return Body::Future(stmts);
    }
    if !marks.launches && !marks.awaits {
        return Body::Verbatim;
    }
    mark(&mut stmts, names, marks);
    Body::Marked(stmts)
}

/// Returns the requested scope. By default, it is `launches` if a launch is visible and none is
/// hidden.
fn scope(args: &Args, clock: Clock, parsed: bool, found: &Findings, errors: &mut Errors) -> Scope {
    let visible = !found.launches.is_empty();
    match &args.scope {
        _ if clock != Clock::Events => Scope::Body,
        Some(arg) if arg.value == Scope::Launches && !visible => {
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
            errors.about(&["scope"], &arg.key, message);
            Scope::Launches
        }
        Some(arg) => arg.value,
        None if visible && !found.hidden => Scope::Launches,
        None => Scope::Body,
    }
}

/// The error for `graph` in body scope, which says why the scope is not launches.
fn graph_in_body_scope(args: &Args, parsed: bool, found: &Findings) -> &'static str {
    match (&args.scope, parsed, found.hidden) {
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
    for name in args.launch.iter().flat_map(|arg| &arg.value) {
        let wanted = name.value();
        let occurs = |tree: &TokenTree| matches!(tree, TokenTree::Ident(i) if i.unraw() == wanted);
        if !contains(&func.lead, &occurs) && !contains(&func.rest, &occurs) {
            errors.at(name, format!("`{wanted}` does not occur in this body: expected a method, function or macro that it calls"));
        }
    }
}
