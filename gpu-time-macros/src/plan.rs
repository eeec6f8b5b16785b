//! Combines [`Args`] and [`TimedFn`] into a [`Plan`], and checks the rules that need both.
//!
//! A `Plan` is created nowhere else. It holds everything that the expansion needs, so that the
//! expansion cannot fail.

use proc_macro2::{Ident, TokenTree};
use syn::ext::IdentExt;
use syn::{Expr, LitStr, Stmt};

use crate::args::{Arg, Args, Clock, Cold, Hold, Kernels, Scope};
use crate::awaits::{await_in, contains};
use crate::errors::Errors;
use crate::func::{TimedFn, tail_future};
use crate::launches::{Findings, LAUNCHES, find, mark};
use crate::marks::Marks;
use crate::paths::Paths;
use crate::source::{Source, is_elsewhere, no_await};

/// The decisions about one annotated function.
pub struct Plan {
    pub func: TimedFn,
    pub paths: Paths,
    pub name: Option<Expr>,
    pub warmup: Option<Expr>,
    pub sampling: Sampling,
    pub cold: Option<Cold>,
    pub hold: Option<Hold>,
    /// The timed calls whose kernels are recorded.
    pub kernels: Option<Kernels>,
    /// Launches in a stream capture become timed nodes of the graph.
    pub graph: bool,
    pub scope: Scope,
    pub clock: Clock,
    pub source: Source,
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
    pub remark: Option<Remark>,
    /// The timed code may await.
    pub is_async: bool,
    pub body: Body,
}

/// The calls that are timed.
pub enum Sampling {
    All,
    Share(Expr),
    Every(Expr),
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

/// A property of the body that limits the meaning of its times. The report explains each of them.
#[derive(Clone, Copy)]
pub enum Remark {
    /// The macro could not parse the body.
    UnparsedBody,
    /// A launch is where the macro cannot bracket it, so the whole body is timed.
    HiddenLaunch,
    /// Every visible launch is on another stream than the timed one.
    OtherStream,
}

impl Plan {
    /// Applies every rule; `None` if there are errors.
    pub fn new(args: Args, mut func: TimedFn, errors: &mut Errors) -> Option<Plan> {
        conflicts(&args, errors);
        let mut names: Vec<String> = LAUNCHES.map(str::to_owned).to_vec();
        let further = args.launch.iter().flat_map(|arg| &arg.value);
        names.extend(further.map(LitStr::value));

        let mut stmts = func.stmts.take();
        let found = stmts.as_deref().map(|stmts| find(stmts, &names)).unwrap_or_default();
        let future = match stmts.as_deref_mut().and_then(tail_future) {
            // Launches before the future are not part of its work, so the function is then not
            // treated as a future.
            Some(_) if func.sig.asyncness.is_some() || !found.launches.is_empty() => None,
            future => future,
        };
        let is_future = future.is_some();
        let found = future.map_or(found, |block| find(&block.stmts, &names));
        let source = Source::new(&args, &func, &found, errors);
        let is_unnamed = args.clock.is_none() && matches!(source, Source::None);
        let clock = match (&args.clock, &source) {
            (Some(arg), _) => arg.value,
            (None, Source::None) if args.needing_stream().is_none() => Clock::Kernels,
            (None, _) => Clock::Events,
        };
        let scope = scope(&args, clock, stmts.is_some(), &found, errors);
        unused_names(&args, &func, errors);
        if let (Scope::Body, Some(graph), Clock::Events) = (scope, &args.graph, clock) {
            let message = graph_in_body_scope(&args, stmts.is_some(), &found);
            errors.about(&["graph", "scope"], &graph.key, message);
        }

        let is_async = is_future || func.sig.asyncness.is_some();
        if is_async {
            not_async(&args, errors);
        }
        if scope == Scope::Body && !is_future {
            returns_when_done(&func, errors);
        }
        // A body in body scope may fork from its stream and join it again.
        let is_elsewhere = scope == Scope::Launches && is_elsewhere(&source, &func, &found);
        for value in [&args.series, &args.bytes, &args.flops].into_iter().flatten() {
            if let Some(at) = await_in(&value.value) {
                errors.at(at, no_await(&value.key));
            }
        }

        if !errors.is_empty() {
            return None;
        }
        let paths = Paths::new(args.krate.map(|arg| arg.value));
        let is_single = scope == Scope::Launches && found.launches.len() == 1 && !found.repeated;
        // CUPTI also records hidden launches.
        let is_partly_hidden = scope == Scope::Body
            && clock != Clock::Kernels
            && found.hidden
            && !found.launches.is_empty();
        let launches = match scope {
            Scope::Launches => found.launches,
            Scope::Body => Vec::new(),
        };
        let marks = Marks { paths: &paths, launches: scope == Scope::Launches, awaits: is_async };
        let remark = match stmts {
            None => Some(Remark::UnparsedBody),
            Some(_) if is_elsewhere => Some(Remark::OtherStream),
            Some(_) if args.scope.is_none() && is_partly_hidden => Some(Remark::HiddenLaunch),
            Some(_) => None,
        };
        let body = match stmts {
            Some(mut stmts) if is_future => {
                if let Some(block) = tail_future(&mut stmts) {
                    mark(&mut block.stmts, &names, marks);
                }
                Body::Future(stmts)
            }
            Some(mut stmts) if marks.launches || marks.awaits => {
                mark(&mut stmts, &names, marks);
                Body::Marked(stmts)
            }
            _ => Body::Verbatim,
        };
        Some(Plan {
            func,
            paths,
            name: args.name.map(|arg| arg.value),
            warmup: args.warmup.map(|arg| arg.value),
            sampling: match (args.sample, args.every) {
                (Some(share), _) => Sampling::Share(share.value),
                (None, Some(every)) => Sampling::Every(every.value),
                (None, None) => Sampling::All,
            },
            cold: args.cold.map(|arg| arg.value),
            hold: args.sleep.map(|arg| arg.value),
            kernels: args.kernels.map(|arg| arg.value),
            graph: args.graph.is_some(),
            scope,
            clock,
            source,
            is_unnamed,
            key: args.series.map(|arg| arg.value),
            bytes: args.bytes.map(|arg| arg.value),
            flops: args.flops.map(|arg| arg.value),
            launches,
            is_single,
            options: args.text,
            remark,
            is_async,
            body,
        })
    }
}

/// Reports keys that contradict each other.
pub fn conflicts(args: &Args, errors: &mut Errors) {
    let launches = args.scope.as_ref().filter(|arg| arg.value == Scope::Launches);
    let launches = [
        launches.map(|arg| ("scope", &arg.key, "scope = \"launches\"", "times the whole body")),
        args.launch.as_ref().map(|arg| ("launch", &arg.key, "launch", "times the whole body")),
    ];
    if args.has_clock(Clock::Host) {
        let keys = [
            args.stream.as_ref().map(|arg| ("stream", &arg.key, "stream", "uses no stream")),
            args.cold.as_ref().map(|arg| ("cold", &arg.key, "cold", "does not involve an L2")),
            args.sleep.as_ref().map(|arg| ("sleep", &arg.key, "sleep", "uses no stream")),
            args.graph.as_ref().map(|arg| ("graph", &arg.key, "graph", "uses no events")),
            args.kernels
                .as_ref()
                .map(|arg| ("kernels", &arg.key, "kernels", "does not involve the GPU")),
        ];
        for (name, key, what, why) in launches.into_iter().chain(keys).flatten() {
            let message = format!("`{what}` conflicts with `clock = \"host\"`, which {why}");
            errors.about(&[name, "clock"], key, message);
        }
    }
    if args.has_clock(Clock::Kernels) {
        let keys = [
            args.stream
                .as_ref()
                .map(|arg| ("stream", &arg.key, "stream", "times the work on all streams")),
            args.cold
                .as_ref()
                .map(|arg| ("cold", &arg.key, "cold", "has no stream to flush the L2 on")),
            args.sleep.as_ref().map(|arg| ("sleep", &arg.key, "sleep", "holds no stream")),
            args.graph.as_ref().map(|arg| ("graph", &arg.key, "graph", "uses no events")),
        ];
        for (name, key, what, why) in launches.into_iter().chain(keys).flatten() {
            let message = format!("`{what}` conflicts with `clock = \"kernels\"`, which {why}");
            errors.about(&[name, "clock"], key, message);
        }
    }
    if args.has_clock(Clock::Sync) {
        let keys = [
            args.sleep.as_ref().map(|arg| ("sleep", &arg.key, "sleep", "waits for the stream")),
            args.graph.as_ref().map(|arg| ("graph", &arg.key, "graph", "uses no events")),
        ];
        for (name, key, what, why) in launches.into_iter().chain(keys).flatten() {
            let message = format!("`{what}` conflicts with `clock = \"sync\"`, which {why}");
            errors.about(&[name, "clock"], key, message);
        }
    }
    if let (Some(_), Some(every)) = (&args.sample, &args.every) {
        let message = "`every` conflicts with `sample`: give one of them";
        errors.about(&["every", "sample"], &every.key, message);
    }
    if let (Some(launch), Some(Arg { value: Scope::Body, .. })) = (&args.launch, &args.scope) {
        let message = "`launch` conflicts with `scope = \"body\"`, which times the whole body";
        errors.about(&["launch", "scope"], &launch.key, message);
    }
}

/// Reports keys that would block an executor.
fn not_async(args: &Args, errors: &mut Errors) {
    let keys = [
        args.sleep
            .as_ref()
            .map(|arg| ("sleep", &arg.key, "sleep", "it would hold the stream across an await")),
        args.clock.as_ref().filter(|arg| arg.value == Clock::Sync).map(|arg| {
            ("clock", &arg.key, "clock = \"sync\"", "its barriers would block the executor")
        }),
    ];
    for (name, key, what, why) in keys.into_iter().flatten() {
        let message = format!("`{what}` cannot be used on async code: {why}");
        errors.about(&[name], key, message);
    }
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
