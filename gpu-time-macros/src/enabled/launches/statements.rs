//! Walks statements, including macros that make up a whole statement.
//!
//! A macro may expand to a place or to several statements, and the value of a `let` may keep its
//! temporaries alive. Marks before and after the statement preserve this behavior. Marks around the
//! macro itself would not.

use std::mem;

use syn::spanned::Spanned;
use syn::visit_mut::VisitMut;
use syn::{Expr, ExprMacro, Local, Macro, MacroDelimiter, Pat, PatIdent, Stmt, StmtMacro};

use super::{Walk, put_attrs};
use crate::enabled::awaits::{awaits_by_name, may_await};
use crate::enabled::bindings::{HANDING_ON, bare, is_one_of, untyped};
use crate::enabled::marks::is_cfg;
use crate::enabled::positions::names_variable;

impl Walk<'_> {
    pub(super) fn statements(&mut self, stmts: &mut Vec<Stmt>) {
        let last = stmts.len().saturating_sub(1);
        for (at, mut stmt) in mem::take(stmts).into_iter().enumerate() {
            if let Stmt::Macro(call) = stmt {
                if at == last && call.semi_token.is_none() {
                    stmts.push(self.tail_macro(call));
                } else {
                    self.macro_statement(Stmt::Macro(call), stmts);
                }
            } else if sole_macro(&stmt).is_some() {
                self.macro_statement(stmt, stmts);
            } else if let Some(after) = self.await_statement(&mut stmt) {
                stmts.extend([stmt, after]);
            } else {
                self.visit_stmt_mut(&mut stmt);
                stmts.push(stmt);
            }
        }
    }

    /// Marks an await that is a statement or the whole value of a `let`, and returns the statement after
    /// it. A mark around the await itself would hide it from lints.
    fn await_statement(&mut self, stmt: &mut Stmt) -> Option<Stmt> {
        let marks = self.await_marks()?;
        let (expr, outer) = match stmt {
            Stmt::Expr(expr, Some(_)) => (expr, None),
            Stmt::Local(local) => match &mut local.init {
                Some(init) if init.diverge.is_none() => (&mut *init.expr, Some(&local.attrs)),
                _ => return None,
            },
            _ => return None,
        };
        let Expr::Await(awaited) = &mut *expr else { return None };
        if self.launch_name(bare(&awaited.base)).is_some() {
            return None;
        }
        self.visit_expr_mut(&mut awaited.base);
        let after = marks.watched(outer.unwrap_or(&awaited.attrs), awaited.await_token.span);
        marks.watch_operand(expr);
        Some(after)
    }

    /// Walks a macro at the end of a block. Its value is the value of the block.
    fn tail_macro(&mut self, call: StmtMacro) -> Stmt {
        let is_braced = matches!(call.mac.delimiter, MacroDelimiter::Brace(_));
        // With braces, it may expand to several statements instead of an expression. Attributes
        // other than `cfg` are allowed only on a statement.
        if is_braced || !call.attrs.iter().all(is_cfg) {
            self.skip(&call);
            return match self.await_marks() {
                Some(marks) if awaits_by_name(&call.mac) => marks.watch_tail(call),
                _ => Stmt::Macro(call),
            };
        }
        let StmtMacro { attrs, mac, .. } = call;
        let mut expr = Expr::Macro(ExprMacro { attrs: Vec::new(), mac });
        self.visit_expr_mut(&mut expr);
        if let Expr::Macro(ExprMacro { mac, .. }) = expr {
            return Stmt::Macro(StmtMacro { attrs, mac, semi_token: None });
        }
        put_attrs(&mut expr, attrs);
        Stmt::Expr(expr, None)
    }

    /// Walks a statement that consists of one macro.
    fn macro_statement(&mut self, mut stmt: Stmt, out: &mut Vec<Stmt>) {
        let Some(mac) = sole_macro(&stmt).cloned() else { return out.push(stmt) };
        self.skip(&mac.tokens);
        let name = mac.path.segments.last().map(|last| last.ident.clone());
        let launch = name.filter(|name| self.is_launch(name));
        let number = self.found.launches.len() as u32;
        self.found.repeated |= launch.is_some() && self.loops > 0;
        self.found.launches.extend(launch.clone());
        if let Stmt::Local(local) = &mut stmt {
            if let Some((_, otherwise)) = local.init.as_mut().and_then(|init| init.diverge.as_mut())
            {
                self.visit_expr_mut(otherwise);
            }
            self.visit_pat_mut(&mut local.pat);
        }
        let at = mac.path.span();
        match (self.launch_marks(), self.await_marks(), launch) {
            (Some(marks), _, Some(name)) => match stmt {
                Stmt::Local(local) if binds_a_name(&local) => {
                    out.extend(marks.bracket_let(local, &name, number));
                }
                stmt => out.extend(marks.bracket_statement(stmt, at, number)),
            },
            (_, Some(marks), _) if may_await(&mac) => out.extend(marks.watch_statement(stmt, at)),
            _ => out.push(stmt),
        }
    }
}

/// Returns the macro that a statement consists of: `m!();`, `m!().unwrap();`, or one of these as the
/// value of a `let` or of `_ = …;`.
fn sole_macro(stmt: &Stmt) -> Option<&Macro> {
    match stmt {
        Stmt::Macro(call) => Some(&call.mac),
        Stmt::Local(local) => value_of_macro(&local.init.as_ref()?.expr),
        Stmt::Expr(expr @ Expr::MethodCall(_), Some(_)) => value_of_macro(expr),
        Stmt::Expr(Expr::Assign(assign), Some(_)) if matches!(*assign.left, Expr::Infer(_)) => {
            value_of_macro(&assign.right)
        }
        _ => None,
    }
}

/// Returns the macro that an expression consists of, ignoring enclosing blocks and calls to `unwrap` or
/// `expect`.
fn value_of_macro(expr: &Expr) -> Option<&Macro> {
    let block = match bare(expr) {
        Expr::Macro(call) => return Some(&call.mac),
        Expr::MethodCall(call) if is_one_of(&call.method, &HANDING_ON) => {
            let is_plain = call.args.iter().all(|arg| matches!(arg, Expr::Lit(_)));
            return if is_plain { value_of_macro(&call.receiver) } else { None };
        }
        Expr::Block(expr) if expr.label.is_none() => &expr.block,
        Expr::Unsafe(expr) => &expr.block,
        _ => return None,
    };
    match block.stmts.as_slice() {
        [Stmt::Macro(call)] if call.semi_token.is_none() => Some(&call.mac),
        [Stmt::Expr(expr, None)] => value_of_macro(expr),
        _ => None,
    }
}

/// Returns `true` for a `let` that moves its whole value into a name, and has no attributes that the
/// marks would have to repeat.
fn binds_a_name(local: &Local) -> bool {
    let is_plain = local.init.as_ref().is_some_and(|init| init.diverge.is_none());
    let names_one = match untyped(&local.pat) {
        Pat::Ident(PatIdent { ident, by_ref: None, subpat: None, .. }) => names_variable(ident),
        _ => false,
    };
    is_plain && names_one && local.attrs.iter().all(is_cfg)
}
