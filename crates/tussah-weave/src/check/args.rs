//! Arguments. The check gives each argument the name of its parameter.

use std::collections::BTreeMap;

use super::Checker;
use super::values::Params;
use crate::diagnostic::Diagnostic;
use crate::domain::Domain;
use crate::graph::{Arg, Param};
use crate::modules::Signature;
use crate::suggest;
use crate::token::Span;
use crate::value::{Kind, Value};

/// A parameter of a module or of a graph.
pub(super) struct Wanted<'s> {
    pub(super) name: &'s str,
    pub(super) kind: &'s Kind,
    /// The accepted values, if the kind alone does not determine them.
    pub(super) domain: Option<&'s Domain>,
    pub(super) optional: bool,
}

impl<'s> Wanted<'s> {
    pub(super) fn of_module(signature: &'s Signature) -> Vec<Self> {
        let params = signature.params.iter().map(|param| Self {
            name: &param.name,
            kind: &param.kind,
            domain: Some(&param.domain),
            optional: param.optional,
        });
        params.collect()
    }

    pub(super) fn of_graph(params: &'s [Param]) -> Vec<Self> {
        let params = params.iter().map(|param| Self {
            name: &param.name,
            kind: &param.kind,
            domain: None,
            optional: param.default.is_some(),
        });
        params.collect()
    }
}

impl Checker<'_> {
    /// Checks arguments, and gives each its name.
    pub(super) fn check_args(
        &mut self,
        params: &mut Params,
        args: &[Arg],
        wanted: &[Wanted<'_>],
        role: &str,
        span: Span,
    ) -> Vec<Arg> {
        let by_name = wanted.iter().map(|param| (param.name, param));
        let by_name: BTreeMap<_, _> = by_name.collect();
        let mut named: Vec<Arg> = Vec::new();
        // The places of the arguments among those that have their names.
        let mut given: BTreeMap<&str, usize> = BTreeMap::new();
        for (index, arg) in args.iter().enumerate() {
            let param = match &arg.name {
                Some(name) => by_name.get(name.as_str()).copied(),
                None => wanted.get(index),
            };
            let Some(param) = param else {
                params.mark_used(&arg.value);
                self.report(superfluous(arg, wanted, role));
                continue;
            };
            let what = format!("`{}` of {role}", param.name);
            let value = self.check_value(params, &arg.value, Some(param.kind), &what);
            if let (Some(value), Some(domain)) = (value, param.domain) {
                self.check_domain(&value, domain, arg.value.span, &what);
            }
            let name = Some(param.name.to_owned());
            let kind = Some(param.kind.clone());
            if let Some(&first) = given.get(param.name) {
                let error = given_twice(
                    &Arg {
                        name,
                        ..arg.clone()
                    },
                    &named[first],
                );
                self.report(error);
                continue;
            }
            let value = arg.value.clone();
            let span = arg.span;
            given.insert(param.name, named.len());
            named.push(Arg {
                name,
                value,
                kind,
                span,
            });
        }
        let missing: Vec<&Wanted<'_>> = wanted
            .iter()
            .filter(|param| !param.optional && !given.contains_key(param.name))
            .collect();
        if !missing.is_empty() {
            let names: Vec<String> = missing
                .iter()
                .map(|param| format!("`{}: {}`", param.name, param.kind))
                .collect();
            let plural = if missing.len() == 1 { "" } else { "s" };
            let message = format!("missing argument{plural} of {role}: {}", names.join(", "));
            self.report(Diagnostic::error(span, message));
        }
        named
    }

    /// Reports a value that a parameter does not accept.
    fn check_domain(&mut self, value: &Value, domain: &Domain, span: Span, what: &str) {
        if let Err(expected) = domain.check(value) {
            let message = format!("{what} is {value}: expected {expected}");
            let mut error = Diagnostic::error(span, message);
            error.help = domain.help(value);
            self.report(error);
        }
    }
}

pub(super) fn given_twice(arg: &Arg, first: &Arg) -> Diagnostic {
    let name = arg.name.as_deref().unwrap_or_default();
    let message = format!("the argument `{name}` is given twice");
    Diagnostic::error(arg.span, message).other(first.span, "it is given here first")
}

fn superfluous(arg: &Arg, wanted: &[Wanted<'_>], role: &str) -> Diagnostic {
    let names = || wanted.iter().map(|param| param.name);
    match &arg.name {
        Some(name) => {
            let message = format!("{role} has no parameter `{name}`");
            let mut error = Diagnostic::error(arg.span, message);
            error.help = match wanted.is_empty() {
                true => Some("it has no parameters".into()),
                false => suggest::help(name, names()),
            };
            error
        }
        None if wanted.is_empty() => {
            Diagnostic::error(arg.span, format!("{role} has no parameters"))
        }
        None => {
            let count = wanted.len();
            let plural = if count == 1 { "" } else { "s" };
            let message =
                format!("{role} has {count} parameter{plural}, this argument is one more");
            let error = Diagnostic::error(arg.span, message);
            error.help(format!("parameters: {}", suggest::list(names())))
        }
    }
}
