//! Instances of modules and of graphs.

use std::collections::BTreeMap;

use super::args::{Wanted, given_twice};
use super::build::{Builder, COPIED_MAX, PARTS_MAX};
use super::expand::{Expansion, arg_values, parts};
use super::scope::{Content, Place};
use super::{Checker, Target};
use crate::diagnostic::Diagnostic;
use crate::graph::{Arg, Graph, Group, Node, Shards};
use crate::modules::Signature;
use crate::token::Span;
use crate::tree::{Instance, TypeRef};
use crate::value::{Kind, Value};

/// Bound, in operators and operands: the maximum size of an expression inside a graph. A larger one
/// is an error, because arguments multiply in graphs inside graphs.
const EXPR_SIZE_MAX: usize = 500;

/// Bound, in shards: the maximum of an instance, because each shard is a stage with its own
/// memory. More are an error.
pub(crate) const SHARDS_MAX: u64 = 4096;

impl<'a> Checker<'a> {
    /// Returns the signature of a module, if there is one.
    pub(super) fn signature(&self, module: &str) -> Option<&'a Signature> {
        self.modules?.signatures.get(module)
    }

    /// Checks the number of types for a generic module.
    pub(super) fn check_type_count(
        &mut self,
        types: &[TypeRef],
        signature: &Signature,
        role: &str,
    ) {
        let (Some(first), Some(last)) = (types.first(), types.last()) else {
            return;
        };
        let span = first.span.to(last.span);
        let message = match (signature.generics.len(), types.len()) {
            (wanted, found) if wanted == found => return,
            (0, _) => format!("{role} has no type parameters"),
            (1, found) => format!("{role} has 1 type parameter, found {found}"),
            (wanted, found) => format!("{role} has {wanted} type parameters, found {found}"),
        };
        self.report(Diagnostic::error(span, message));
    }
}

impl Builder<'_, '_> {
    /// Adds the nodes of an instance.
    pub(super) fn instance(&mut self, instance: &Instance, place: &Place) -> Content {
        match self.checker.resolve(&instance.module) {
            Target::Unknown => {
                self.is_broken = true;
                instance
                    .args
                    .iter()
                    .for_each(|arg| self.params.mark_used(&arg.value));
                Content::Unknown
            }
            Target::Module(module) => self.module(instance, place, module),
            Target::Graph(index) => match self.built.get(&index) {
                Some(graph) => self.inner(instance, place, graph),
                None => {
                    self.is_broken = true;
                    Content::Unknown
                }
            },
        }
    }

    fn module(&mut self, instance: &Instance, place: &Place, module: String) -> Content {
        let signature = self.checker.signature(&module);
        let role = format!("`{}`", instance.module.last());
        let args = match signature {
            Some(signature) => {
                let wanted = Wanted::of_module(signature);
                self.args(&instance.args, &wanted, &role, instance.module.span())
            }
            None => {
                self.check_free_args(&instance.args);
                instance.args.clone()
            }
        };
        if let Some(signature) = signature {
            let errors = self.checker.diagnostics.len();
            self.checker
                .check_type_count(&instance.types, signature, &role);
            self.is_broken |= self.checker.diagnostics.len() > errors;
        }
        let shards = instance
            .shards
            .as_ref()
            .map(|shards| self.shards(shards, signature));
        if self.graph.nodes.len() >= PARTS_MAX {
            self.report_too_large(instance.name.span);
            return Content::Unknown;
        }
        self.graph.nodes.push(Node {
            name: instance.name.text.clone(),
            module,
            types: instance
                .types
                .iter()
                .map(|found| found.ty.clone())
                .collect(),
            args,
            shards,
            condition: place.condition.clone(),
            needs_input: signature.is_some_and(|signature| !signature.inputs.is_empty()),
            needs_outputs: signature.map(required_outputs).unwrap_or_default(),
            doc: instance.doc.clone(),
            span: instance.name.span,
            module_span: instance.module.span(),
            type_spans: instance.types.iter().map(|found| found.span).collect(),
        });
        Content::Node(self.graph.nodes.len() - 1)
    }

    /// Reports the first part that exceeds the bound; further reports would say the same.
    pub(super) fn report_too_large(&mut self, span: Span) {
        self.report_once(
            span,
            &format!("the graph has more than {PARTS_MAX} instances and edges"),
        );
    }

    fn report_once(&mut self, span: Span, message: &str) {
        if !std::mem::replace(&mut self.checker.is_too_large, true) {
            self.report(Diagnostic::error(span, message));
        }
        self.is_broken = true;
    }

    /// Checks arguments without a signature.
    fn check_free_args(&mut self, args: &[Arg]) {
        let mut named = BTreeMap::new();
        for arg in args {
            self.checker
                .check_value(&mut self.params, &arg.value, None, "");
            let Some(name) = &arg.name else {
                continue;
            };
            let first = *named.entry(name).or_insert(arg);
            if !std::ptr::eq(first, arg) {
                self.report(given_twice(arg, first));
            }
        }
    }

    fn shards(&mut self, shards: &Shards, signature: Option<&Signature>) -> Shards {
        let role = "the number of shards";
        let count =
            self.checker
                .check_value(&mut self.params, &shards.count, Some(&Kind::Count), role);
        let message = match count {
            Some(Value::Count(0)) => "an instance has at least 1 shard".to_owned(),
            Some(Value::Count(count)) if count > SHARDS_MAX => {
                format!("an instance has at most {SHARDS_MAX} shards")
            }
            _ => String::new(),
        };
        if !message.is_empty() {
            self.report(Diagnostic::error(shards.count.span, message));
        }
        if signature.is_some_and(|signature| signature.inputs.is_empty()) {
            let message = "a source has no shards: it receives no items to divide";
            self.report(Diagnostic::error(shards.span, message));
        }
        shards.clone()
    }

    /// Checks arguments, and gives each its name.
    pub(super) fn args(
        &mut self,
        args: &[Arg],
        wanted: &[Wanted<'_>],
        role: &str,
        span: Span,
    ) -> Vec<Arg> {
        self.checker
            .check_args(&mut self.params, args, wanted, role, span)
    }

    /// Expands a graph inside this one.
    fn inner(&mut self, instance: &Instance, place: &Place, inner: &Graph) -> Content {
        let role = format!("`{}`", instance.module.last());
        let wanted = Wanted::of_graph(&inner.params);
        let errors = self.checker.diagnostics.len();
        let args = self.args(&instance.args, &wanted, &role, instance.module.span());
        if let Some(shards) = &instance.shards {
            let message = format!("{role} is a graph, and only a module has shards");
            let help = "write the shards at the instances inside the graph";
            self.report(Diagnostic::error(shards.span, message).help(help));
        }
        if let (Some(first), Some(last)) = (instance.types.first(), instance.types.last()) {
            let message = format!("{role} is a graph, which has no type parameters");
            self.report(Diagnostic::error(first.span.to(last.span), message));
        }
        if parts(&self.graph) + parts(inner) > PARTS_MAX {
            self.report_too_large(instance.name.span);
            return Content::Unknown;
        }
        if self.checker.diagnostics.len() > errors && self.is_broken {
            return Content::Unknown;
        }
        let expansion = Expansion {
            name: &instance.name.text,
            args: arg_values(&args, &inner.params),
            offset: self.graph.nodes.len(),
            place,
        };
        let expanded = expansion.expand(inner);
        if expanded.size_max > EXPR_SIZE_MAX {
            let message = "the arguments of this graph become too large inside it";
            self.report(Diagnostic::error(instance.span, message));
            return Content::Unknown;
        }
        self.checker.copied += expanded.size;
        if self.checker.copied > COPIED_MAX {
            let message = format!(
                "the graphs inside other graphs have more than {COPIED_MAX} instances and edges"
            );
            self.report_once(instance.name.span, &message);
            return Content::Unknown;
        }
        let start = self.graph.nodes.len();
        self.graph.nodes.extend(expanded.nodes);
        self.graph.edges.extend(expanded.edges);
        self.graph.sheds.extend(expanded.sheds);
        self.graph.limits.extend(expanded.limits);
        self.graph.groups.extend(expanded.groups);
        let group = Group {
            name: instance.name.text.clone(),
            graph: inner.name.clone(),
            nodes: start..self.graph.nodes.len(),
            inputs: expanded.inputs,
            outputs: expanded.outputs,
        };
        self.graph.groups.push(group.clone());
        Content::Graph(group)
    }
}

fn required_outputs(signature: &Signature) -> Vec<String> {
    let required = signature.outputs.iter().filter(|port| port.required);
    required.map(|port| port.name.clone()).collect()
}
