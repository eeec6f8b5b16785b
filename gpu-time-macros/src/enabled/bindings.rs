//! Resolves the names that a body binds. The result is an expression that is valid before the body.

use proc_macro2::Ident;
use syn::visit::{self, Visit};
use syn::{Expr, ExprField, ExprIndex, ExprMethodCall, ExprTry, Local, Pat};

/// Methods of a cudarc context or stream that make a stream.
pub const STREAM_MAKERS: [&str; 3] = ["new_stream", "new_stream_with_priority", "fork"];

/// Methods that return the value inside their receiver.
pub const HANDING_ON: [&str; 2] = ["unwrap", "expect"];

/// The value of an expression in a body, in terms that are valid before the body.
#[derive(Clone)]
pub enum Meaning {
    /// This expression, which names nothing that the body binds.
    Before(Expr),
    /// A stream that the body creates.
    Made,
    /// Cannot be determined.
    Unknown,
}

/// The names bound by the statements so far, in the blocks that are still open.
#[derive(Default)]
pub struct Bindings(Vec<(String, Meaning)>);

impl Bindings {
    /// Returns the number of bindings.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Drops the bindings of a block at its end; `count` is the number before the block.
    pub fn truncate(&mut self, count: usize) {
        self.0.truncate(count);
    }

    /// Binds a name to an unknown value.
    pub fn bind(&mut self, name: &Ident) {
        self.0.push((name.to_string(), Meaning::Unknown));
    }

    /// Returns the name that a plain `let` binds, and the meaning of its value. `None` for any
    /// other `let`.
    pub fn of_let<'a>(&self, local: &'a Local) -> Option<(&'a Ident, Meaning)> {
        let (Pat::Ident(name), Some(init)) = (untyped(&local.pat), &local.init) else {
            return None;
        };
        // A mutable variable may change, and a `let` with a `cfg` may be absent.
        let is_plain = name.mutability.is_none() && name.subpat.is_none() && local.attrs.is_empty();
        is_plain.then(|| (&name.ident, self.meaning(&init.expr)))
    }

    /// Binds a name to a value of this meaning.
    pub fn bind_to(&mut self, name: &Ident, meaning: Meaning) {
        self.0.push((name.to_string(), meaning));
    }

    fn get(&self, expr: &Expr) -> Option<&Meaning> {
        let Expr::Path(path) = expr else { return None };
        let name = path.path.get_ident()?;
        self.0.iter().rev().find(|(bound, _)| name == bound).map(|(_, meaning)| meaning)
    }

    /// Returns the meaning of an expression in the body.
    pub fn meaning(&self, expr: &Expr) -> Meaning {
        self.chain(same(expr))
    }

    /// Returns the meaning of a chain of fields and calls that starts at a name.
    fn chain(&self, expr: &Expr) -> Meaning {
        match bare(expr) {
            Expr::MethodCall(call) if is_one_of(&call.method, &STREAM_MAKERS) => Meaning::Made,
            Expr::MethodCall(call) if call.args.iter().all(|arg| self.is_before(arg)) => {
                let link = |receiver| {
                    Expr::MethodCall(ExprMethodCall {
                        receiver: Box::new(receiver),
                        ..call.clone()
                    })
                };
                self.linked(&call.receiver, is_one_of(&call.method, &HANDING_ON), link)
            }
            Expr::Field(field) => self.linked(&field.base, false, |base| {
                Expr::Field(ExprField { base: Box::new(base), ..field.clone() })
            }),
            Expr::Index(at) if self.is_before(&at.index) => self.linked(&at.expr, false, |expr| {
                Expr::Index(ExprIndex { expr: Box::new(expr), ..at.clone() })
            }),
            Expr::Try(tried) => self.linked(&tried.expr, true, |expr| {
                Expr::Try(ExprTry { expr: Box::new(expr), ..tried.clone() })
            }),
            expr => match self.get(expr) {
                Some(meaning) => meaning.clone(),
                None if self.is_before(expr) => Meaning::Before(expr.clone()),
                None => Meaning::Unknown,
            },
        }
    }

    /// Extends the meaning of a chain by one link. A link with `hands_on` returns the value inside
    /// its receiver, like `unwrap` and `?`.
    fn linked(&self, chain: &Expr, hands_on: bool, link: impl FnOnce(Expr) -> Expr) -> Meaning {
        match self.chain(chain) {
            Meaning::Before(expr) => Meaning::Before(link(expr)),
            Meaning::Made if hands_on => Meaning::Made,
            _ => Meaning::Unknown,
        }
    }

    /// Returns `true` if the expression means the same before the body.
    fn is_before(&self, expr: &Expr) -> bool {
        struct Look<'a>(&'a Bindings, bool);
        impl<'ast> Visit<'ast> for Look<'_> {
            fn visit_expr(&mut self, expr: &'ast Expr) {
                self.1 &= match expr {
                    Expr::Path(_) => self.0.get(expr).is_none(),
                    Expr::MethodCall(call) => !is_one_of(&call.method, &STREAM_MAKERS),
                    // Other expressions are too long to repeat, or invalid in the attribute.
                    _ => matches!(
                        expr,
                        Expr::Binary(_)
                            | Expr::Call(_)
                            | Expr::Cast(_)
                            | Expr::Field(_)
                            | Expr::Index(_)
                            | Expr::Lit(_)
                            | Expr::Paren(_)
                            | Expr::Reference(_)
                            | Expr::Try(_)
                            | Expr::Unary(_)
                    ),
                };
                visit::visit_expr(self, expr);
            }
        }
        let mut look = Look(self, true);
        look.visit_expr(expr);
        look.1
    }
}

/// Strips parentheses.
pub fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Paren(paren) => bare(&paren.expr),
        expr => expr,
    }
}

/// Strips the type of a pattern.
pub fn untyped(pat: &Pat) -> &Pat {
    if let Pat::Type(typed) = pat { &typed.pat } else { pat }
}

/// Strips references and parentheses.
pub fn place(expr: &Expr) -> &Expr {
    match bare(expr) {
        Expr::Reference(reference) => place(&reference.expr),
        expr => expr,
    }
}

/// Strips references and clones: a clone of a stream is the same stream.
fn same(expr: &Expr) -> &Expr {
    match place(expr) {
        Expr::MethodCall(call) if call.method == "clone" => same(&call.receiver),
        Expr::Call(call) => match (bare(&call.func), call.args.first()) {
            (Expr::Path(path), Some(arg))
                if path.path.segments.last().is_some_and(|last| last.ident == "clone") =>
            {
                same(arg)
            }
            _ => bare(expr),
        },
        expr => expr,
    }
}

pub fn is_one_of(name: &Ident, names: &[&str]) -> bool {
    names.iter().any(|one| name == one)
}
