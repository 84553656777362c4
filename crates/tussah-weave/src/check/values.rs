//! The check of expressions: kinds, units, and constants without a value.

use std::collections::{BTreeMap, BTreeSet};

use super::Checker;
use crate::diagnostic::Diagnostic;
use crate::expr::{EvalCause, EvalError, Expr};
use crate::graph::Param;
use crate::suggest;
use crate::value::{Kind, Value};

/// The parameters that expressions can name.
#[derive(Default)]
pub(super) struct Params {
    pub(super) kinds: BTreeMap<String, Kind>,
    pub(super) used: BTreeSet<String>,
    /// True if some parameters did not parse.
    pub(super) is_incomplete: bool,
}

impl Params {
    /// Marks the parameters in an expression as used.
    pub(super) fn mark_used(&mut self, expr: &Expr) {
        expr.each_param(&mut |name| {
            self.used.insert(name.to_owned());
        });
    }
}

/// Returns the error of a parameter whose name one of the parameters before it has. Names that
/// differ only in case are the same, because they lead to the same variable in the environment.
pub(super) fn conflict(params: &[Param], param: &Param) -> Option<Diagnostic> {
    let mut before = params.iter().take_while(|it| it.span != param.span);
    let first = before.find(|it| it.name.eq_ignore_ascii_case(&param.name))?;
    let error = if first.name == param.name {
        let message = format!("the parameter `{}` exists twice", param.name);
        Diagnostic::error(param.span, message).other(first.span, "it exists here first")
    } else {
        let message = format!(
            "the names of the parameters `{}` and `{}` differ only in case",
            first.name, param.name
        );
        let error = Diagnostic::error(param.span, message).other(first.span, "the other one");
        error.help("rename one of them: both have the same variable in the environment")
    };
    Some(error)
}

impl Checker<'_> {
    /// Checks an expression, and compares its kind with the expected kind if that is known.
    ///
    /// Returns the value if the expression is constant and correct.
    pub(super) fn check_value(
        &mut self,
        params: &mut Params,
        expr: &Expr,
        wanted: Option<&Kind>,
        role: &str,
    ) -> Option<Value> {
        params.mark_used(expr);
        let lookup = |name: &str| match name {
            "workers" => Some(Kind::Count),
            name => params.kinds.get(name).cloned(),
        };
        let kind = match expr.kind(&lookup) {
            Ok(kind) => kind,
            Err(error) => {
                let is_unknown = matches!(error.cause, EvalCause::Unknown(_));
                if !(is_unknown && params.is_incomplete) {
                    self.report(explain(&error, params));
                }
                return None;
            }
        };
        if let Some(wanted) = wanted.filter(|wanted| !suits(&kind, wanted)) {
            let message = format!("{role} is {}, found {}", a(wanted), a(&kind));
            let mut error =
                Diagnostic::error(expr.span, message).label(format!("expected {}", a(wanted)));
            if let Kind::Rust(_) = kind {
                error = error.help(format!(
                    "a parameter of the type `{wanted}` has such values"
                ));
            } else if let Some(example) = wanted.example() {
                error = error.help(format!("{} looks like this: {example}", a(wanted)));
            }
            self.report(error);
            return None;
        }
        let value = match expr.eval(&|_| None) {
            Ok(value) => value,
            Err(error) if matches!(error.cause, EvalCause::Unknown(_)) => return None,
            Err(error) => {
                self.report(Diagnostic::error(error.span, error.to_string()));
                return None;
            }
        };
        let Some(wanted) = wanted else {
            return Some(value);
        };
        match value.convert(wanted) {
            Ok(value) => Some(value),
            Err(error) => {
                self.report(Diagnostic::error(expr.span, error.to_string()));
                None
            }
        }
    }
}

/// Returns whether a value of a kind can be given where another is expected.
fn suits(kind: &Kind, wanted: &Kind) -> bool {
    match (kind, wanted) {
        // One of the types may be written with more of its path; the Rust compiler knows more.
        (Kind::Rust(found), Kind::Rust(wanted)) => {
            found.short() == wanted.short() || is_generic(wanted)
        }
        _ => kind.suits(wanted),
    }
}

/// Returns whether a type stands for any type: a type parameter, or `_`.
fn is_generic(wanted: &crate::Type) -> bool {
    wanted.args.is_empty() && wanted.name.len() == 1
}

fn explain(error: &EvalError, params: &Params) -> Diagnostic {
    let diagnostic = Diagnostic::error(error.span, error.to_string());
    match &error.cause {
        EvalCause::Unknown(name) => {
            let known = params.kinds.keys().map(String::as_str).chain(["workers"]);
            match suggest::nearest(name, known) {
                Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
                None => {
                    let known = match params.kinds.len() {
                        0 | 13.. => "a parameter of the graph".to_owned(),
                        _ => suggest::list(params.kinds.keys().map(String::as_str)),
                    };
                    diagnostic.help(format!(
                        "a value is a literal, {known}, or `workers`; text needs quotes"
                    ))
                }
            }
        }
        _ => diagnostic,
    }
}

/// Returns the name of a kind with its article.
pub(super) fn a(kind: &Kind) -> String {
    match kind {
        Kind::Text => "text".to_owned(),
        Kind::Address => "an address".to_owned(),
        Kind::Rust(ty) => format!("a `{ty}`"),
        kind => format!("a {kind}"),
    }
}
