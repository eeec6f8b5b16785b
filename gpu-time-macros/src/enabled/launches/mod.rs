//! Finds and marks the launches, and in async code the awaits, in the statements of a body.
//!
//! Walks only the function's own control flow: not closures, async blocks, nested items, macro
//! arguments, or code that the compiler evaluates.

mod statements;

use std::mem;

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::visit_mut::{self, VisitMut};
use syn::{
    AngleBracketedGenericArguments, Attribute, Block, Expr, ExprAssign, ExprRepeat, Item, Local,
    PatIdent, Stmt, Type,
};

use crate::enabled::awaits::may_await;
use crate::enabled::bindings::{Bindings, Meaning, STREAM_MAKERS, bare};
use crate::enabled::marks::Marks;
use crate::enabled::positions::{hide_places, is_constant};

/// Methods, functions and macros that are launches by default.
pub const LAUNCHES: [&str; 14] = [
    // cudarc, cust and the driver.
    "launch",
    "launch_cooperative",
    "launch_kernel",
    "cuLaunchKernel",
    "cuLaunchKernelEx",
    // cuda-core.
    "launch_kernel_on_stream",
    "launch_kernel_ex",
    "launch_kernel_pdl",
    "launch_kernel_ex_on_stream",
    "launch_kernel_cooperative",
    "launch_kernel_cooperative_on_stream",
    "launch_kernel_ex_cooperative",
    "launch_kernel_ex_cooperative_on_stream",
    "cuda_launch",
];

/// The result of a walk.
#[derive(Default)]
pub struct Findings {
    /// The names of the visible launches, in source order.
    pub launches: Vec<Ident>,
    /// A visible launch is in a loop.
    pub repeated: bool,
    /// A launch name occurs in code that is not walked.
    pub hidden: bool,
    /// The `X` of every visible `X.launch_builder(…)`.
    pub builders: Vec<Builder>,
    /// Calls that create a stream.
    pub made: Vec<Ident>,
}

/// The `X` of an `X.launch_builder(…)`.
pub struct Builder {
    /// The expression in the source.
    pub expr: Expr,
    pub meaning: Meaning,
}

/// Finds the launches without changing the statements.
pub fn find(stmts: &[Stmt], names: &[String]) -> Findings {
    let mut stmts = stmts.to_vec();
    let mut walk = Walk::new(names, None);
    walk.statements(&mut stmts);
    walk.found
}

/// Puts marks around the launches and awaits in the statements.
pub fn mark(stmts: &mut Vec<Stmt>, names: &[String], marks: Marks) {
    Walk::new(names, Some(marks)).statements(stmts);
}

struct Walk<'a> {
    names: &'a [String],
    marks: Option<Marks<'a>>,
    found: Findings,
    bindings: Bindings,
    /// The number of loops around the current expression.
    loops: usize,
}

impl<'a> Walk<'a> {
    fn new(names: &'a [String], marks: Option<Marks<'a>>) -> Walk<'a> {
        let (found, bindings) = Default::default();
        Walk { names, marks, found, bindings, loops: 0 }
    }

    fn launch_marks(&self) -> Option<Marks<'a>> {
        self.marks.filter(|marks| marks.launches)
    }

    fn await_marks(&self) -> Option<Marks<'a>> {
        self.marks.filter(|marks| marks.awaits)
    }

    fn is_launch(&self, name: &Ident) -> bool {
        self.names.iter().any(|launch| name.unraw() == launch)
    }

    /// Returns the name of the called launch, if the expression itself is a launch.
    fn launch_name(&self, expr: &Expr) -> Option<Ident> {
        let name = match expr {
            Expr::MethodCall(call) => &call.method,
            Expr::Call(call) => match bare(&call.func) {
                Expr::Path(path) => &path.path.segments.last()?.ident,
                _ => return None,
            },
            Expr::Macro(call) => &call.mac.path.segments.last()?.ident,
            _ => return None,
        };
        self.is_launch(name).then(|| name.clone())
    }

    /// Skips tokens, and sets `hidden` if a launch name is called or defined in them.
    fn skip(&mut self, tokens: impl ToTokens) {
        self.found.hidden = self.found.hidden || self.mentions(tokens.into_token_stream());
    }

    fn mentions(&self, tokens: TokenStream) -> bool {
        let mut trees = tokens.into_iter().peekable();
        while let Some(tree) = trees.next() {
            let found = match tree {
                TokenTree::Ident(name) if self.is_launch(&name) => match trees.peek() {
                    Some(TokenTree::Group(group)) => group.delimiter() == Delimiter::Parenthesis,
                    Some(TokenTree::Punct(next)) => matches!(next.as_char(), '!' | ':' | '<'),
                    _ => false,
                },
                TokenTree::Group(group) => self.mentions(group.stream()),
                _ => false,
            };
            if found {
                return true;
            }
        }
        false
    }

    /// Walks the parts of a launch in source order, and returns the launch's number.
    fn number(&mut self, launch: &mut Expr, name: &Ident) -> u32 {
        match launch {
            Expr::Await(awaited) => {
                let operand = bare_mut(&mut awaited.base);
                hide_places(operand);
                return self.number(operand, name);
            }
            Expr::MethodCall(call) => self.visit_expr_mut(&mut call.receiver),
            _ => {}
        }
        let number = self.found.launches.len() as u32;
        self.found.launches.push(name.clone());
        self.found.repeated |= self.loops > 0;
        match launch {
            Expr::MethodCall(call) => call.args.iter_mut().for_each(|arg| self.visit_expr_mut(arg)),
            Expr::Call(call) => call.args.iter_mut().for_each(|arg| self.visit_expr_mut(arg)),
            Expr::Macro(call) => self.skip(&call.mac.tokens),
            _ => {}
        }
        number
    }

    /// Marks an expression that awaits.
    fn watch(&self, expr: &mut Expr) {
        let Some(marks) = self.await_marks() else { return };
        match expr {
            Expr::Await(_) => marks.watch(expr),
            Expr::Macro(call) if may_await(&call.mac) => marks.watch_macro(expr),
            _ => {}
        }
    }
}

impl VisitMut for Walk<'_> {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        match expr {
            Expr::Closure(_) | Expr::Async(_) | Expr::Verbatim(_) => return self.skip(expr),
            // `launch` may be a tuple struct here, and the reference may be promoted to `'static`.
            // A mark would prevent that.
            Expr::Reference(borrow) if is_constant(&borrow.expr) => return self.skip(expr),
            Expr::Const(_) => return,
            _ => hide_places(expr),
        }
        let launch = self.launch_name(awaited(expr));
        let number = match &launch {
            Some(name) => Some(self.number(expr, name)),
            None => {
                self.note(expr);
                let is_loop = matches!(expr, Expr::ForLoop(_) | Expr::Loop(_) | Expr::While(_));
                self.loops += usize::from(is_loop);
                visit_mut::visit_expr_mut(self, expr);
                self.loops -= usize::from(is_loop);
                None
            }
        };
        // The expression becomes an argument of a generated call. Its attributes move to that call.
        let attrs = take_attrs(expr);
        self.watch(expr);
        if let (Some(marks), Some(name), Some(number)) = (self.launch_marks(), launch, number) {
            marks.bracket(expr, &name, number);
        }
        put_attrs(expr, attrs);
    }

    fn visit_block_mut(&mut self, block: &mut Block) {
        let outside = self.bindings.count();
        self.statements(&mut block.stmts);
        self.bindings.truncate(outside);
    }

    fn visit_item_mut(&mut self, item: &mut Item) {
        self.skip(item);
    }

    fn visit_local_mut(&mut self, local: &mut Local) {
        let bound = self.bindings.of_let(local).map(|(name, meaning)| (name.clone(), meaning));
        // The names are in scope only after the `let`.
        if let Some(init) = &mut local.init {
            self.visit_local_init_mut(init);
        }
        match bound {
            Some((name, meaning)) => self.bindings.bind_to(&name, meaning),
            None => self.visit_pat_mut(&mut local.pat),
        }
    }

    fn visit_pat_ident_mut(&mut self, pat: &mut PatIdent) {
        self.bindings.bind(&pat.ident);
        visit_mut::visit_pat_ident_mut(self, pat);
    }

    fn visit_expr_assign_mut(&mut self, assign: &mut ExprAssign) {
        self.assignee(&mut assign.left);
        self.visit_expr_mut(&mut assign.right);
    }

    fn visit_expr_repeat_mut(&mut self, repeat: &mut ExprRepeat) {
        self.visit_expr_mut(&mut repeat.expr);
    }

    fn visit_type_mut(&mut self, _: &mut Type) {}

    fn visit_angle_bracketed_generic_arguments_mut(
        &mut self,
        _: &mut AngleBracketedGenericArguments,
    ) {
    }
}

impl Walk<'_> {
    /// Walks the left side of an assignment, in which `launch(a, b)` is a pattern and a macro expands to a
    /// place or a pattern.
    fn assignee(&mut self, expr: &mut Expr) {
        match expr {
            Expr::Array(array) => array.elems.iter_mut().for_each(|part| self.assignee(part)),
            Expr::Call(pattern) => pattern.args.iter_mut().for_each(|part| self.assignee(part)),
            Expr::Macro(_) => self.skip(expr),
            Expr::Paren(paren) => self.assignee(&mut paren.expr),
            Expr::Struct(pattern) => {
                pattern.fields.iter_mut().for_each(|field| self.assignee(&mut field.expr));
            }
            Expr::Tuple(tuple) => tuple.elems.iter_mut().for_each(|part| self.assignee(part)),
            expr => self.visit_expr_mut(expr),
        }
    }

    /// Records the calls from which a stream is inferred.
    fn note(&mut self, expr: &Expr) {
        match expr {
            Expr::MethodCall(call) if call.method == "launch_builder" => {
                let meaning = self.bindings.meaning(&call.receiver);
                self.found.builders.push(Builder { expr: (*call.receiver).clone(), meaning });
            }
            Expr::MethodCall(call) if STREAM_MAKERS.iter().any(|name| call.method == name) => {
                self.found.made.push(call.method.clone());
            }
            Expr::Macro(call) => self.skip(&call.mac.tokens),
            _ => {}
        }
    }
}

/// Returns the operand of an await, or else the expression itself.
fn awaited(expr: &Expr) -> &Expr {
    match expr {
        Expr::Await(awaited) => bare(&awaited.base),
        expr => expr,
    }
}

fn bare_mut(expr: &mut Expr) -> &mut Expr {
    match expr {
        Expr::Paren(paren) => bare_mut(&mut paren.expr),
        expr => expr,
    }
}

/// Returns the attributes of an expression that can be marked.
fn attrs(expr: &mut Expr) -> Option<&mut Vec<Attribute>> {
    match expr {
        Expr::MethodCall(expr) => Some(&mut expr.attrs),
        Expr::Call(expr) => Some(&mut expr.attrs),
        Expr::Macro(expr) => Some(&mut expr.attrs),
        Expr::Await(expr) => Some(&mut expr.attrs),
        _ => None,
    }
}

fn take_attrs(expr: &mut Expr) -> Vec<Attribute> {
    attrs(expr).map(mem::take).unwrap_or_default()
}

fn put_attrs(expr: &mut Expr, taken: Vec<Attribute>) {
    if taken.is_empty() {
        return;
    }
    match attrs(expr) {
        Some(attrs) => *attrs = taken,
        None => *expr = Expr::Verbatim(quote!(#(#taken)* #expr)),
    }
}
