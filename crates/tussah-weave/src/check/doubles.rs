//! Doubles: the modules that take the places of others in a test.

use super::Checker;
use super::ends::{DROPPED, OUT, RUN};
use super::fields;
use super::unify::{NodeTypes, Unifier};
use crate::diagnostic::Diagnostic;
use crate::graph::{Graph, Place, PortRef, Step};
use crate::suggest;
use crate::token::Span;

/// Determines the types of doubles. Reports edges that do not fit them.
pub(super) fn check(checker: &mut Checker<'_>, graph: &Graph, steps: &mut [Step]) {
    let mut unifier = Unifier::default();
    let mut doubles: Vec<Double<'_>> = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let Step::Replace {
            node,
            module,
            types,
            span,
            ..
        } = step
        else {
            continue;
        };
        let Some(signature) = checker.signature(module) else {
            continue;
        };
        if let Some(first) = doubles.iter().find(|double| double.node == *node) {
            let message = format!("`{node}` is replaced twice");
            let error = Diagnostic::error(*span, message);
            checker.report(error.other(first.span, "it is replaced here first"));
            continue;
        }
        doubles.push(Double {
            step: index,
            node: node.clone(),
            types: NodeTypes::new(signature, types, &mut unifier),
            span: *span,
        });
    }
    if doubles.is_empty() {
        return;
    }
    let originals = graph.nodes.iter().map(|node| {
        let signature = checker.signature(&node.module)?;
        Some(NodeTypes::new(signature, &node.types, &mut unifier))
    });
    let fit = Fit {
        originals: originals.collect(),
        graph,
        doubles: &doubles,
    };
    fit.check(checker, &mut unifier, steps);
    for double in &doubles {
        let (found, missing) = double.types.resolve(&unifier);
        match missing.is_empty() {
            true => checker.check_types(double.types.signature, &found, double.span),
            false => checker.report(undetermined(double, &missing)),
        }
        if let Step::Replace { types, args, .. } = &mut steps[double.step] {
            let modules = checker.modules;
            let wrong = modules.map(|it| fields::args(it, &double.types, args, &unifier));
            let wrong = wrong.into_iter().flatten();
            wrong.for_each(|error| checker.report(error));
            *types = found;
        }
    }
}

struct Double<'a> {
    step: usize,
    node: String,
    types: NodeTypes<'a>,
    span: Span,
}

impl Double<'_> {
    /// Returns the error for a port that the double does not have.
    fn lacks(&self, port: &str, is_input: bool, at: Span) -> Diagnostic {
        let signature = self.types.signature;
        let (kind, ports) = match is_input {
            true => ("input", &signature.inputs),
            false => ("output", &signature.outputs),
        };
        let last = signature.name.rsplit("::").next().unwrap_or_default();
        let error = Diagnostic::error(at, format!("`{last}` has no {kind} `{port}`"));
        match ports.is_empty() {
            true => error.help(format!("it has no {kind}s")),
            false => {
                let known = suggest::list(ports.iter().map(|port| port.name.as_str()));
                error.help(format!("{kind}s: {known}"))
            }
        }
    }
}

/// The edges of a graph with doubles.
struct Fit<'f, 'a> {
    graph: &'f Graph,
    doubles: &'f [Double<'a>],
    originals: Vec<Option<NodeTypes<'a>>>,
}

impl<'a> Fit<'_, 'a> {
    /// Reports the edges and the steps that do not fit the doubles.
    fn check(&self, checker: &mut Checker<'_>, unifier: &mut Unifier, steps: &[Step]) {
        let dropped = |node| PortRef {
            node,
            port: DROPPED.to_owned(),
        };
        let errors = checker.diagnostics.len();
        let edges = self.graph.edges.iter();
        let edges = edges.map(|edge| (edge.from.clone(), edge.to.clone(), edge.span));
        let sheds = self.graph.sheds.iter().filter_map(|shed| {
            let to = shed.to.clone()?;
            Some((dropped(shed.node), to, shed.span))
        });
        for (from, to, span) in edges.chain(sheds) {
            if let Err(error) = self.edge(unifier, &from, &to, span) {
                checker.report(error);
            }
        }
        for error in self.boundaries(unifier) {
            checker.report(error);
        }
        // The error of an edge covers the steps that need the same port.
        if checker.diagnostics.len() == errors {
            let wrong = steps.iter().filter_map(|step| self.step(step));
            wrong.for_each(|error| checker.report(error));
        }
    }

    fn double(&self, port: &PortRef) -> Option<&Double<'a>> {
        let name = &self.graph.nodes[port.node].name;
        self.doubles.iter().find(|double| double.node == *name)
    }

    fn edge(
        &self,
        unifier: &mut Unifier,
        from: &PortRef,
        to: &PortRef,
        span: Span,
    ) -> Result<(), Diagnostic> {
        let (sender, receiver) = (self.double(from), self.double(to));
        let Some(double) = sender.or(receiver) else {
            return Ok(());
        };
        let ends = [(from, sender, false), (to, receiver, true)];
        let mut items = [None, None];
        for ((port, double, is_input), item) in ends.into_iter().zip(&mut items) {
            let types = double.map(|double| &double.types);
            let types = types.or(self.originals[port.node].as_ref());
            *item = types.and_then(|types| types.port(&port.port, is_input));
            if let (Some(double), None) = (double, &item) {
                return Err(self.missing(double, port, is_input, span));
            }
        }
        let [Some(sent), Some(expected)] = items else {
            return Ok(());
        };
        if unifier.unify(&sent, &expected) {
            return Ok(());
        }
        let (from, to) = (self.graph.spell(from, OUT), self.graph.spell(to, RUN));
        let message = unifier.differ((&from, &sent), (&to, &expected));
        let error = Diagnostic::error(double.span, message).label("with this module");
        Err(error.other(span, "along this edge"))
    }

    /// Returns the error for an edge that leads to no port of a double.
    fn missing(
        &self,
        double: &Double<'_>,
        port: &PortRef,
        is_input: bool,
        span: Span,
    ) -> Diagnostic {
        let error = double.lacks(&port.port, is_input, double.span);
        error.other(span, format!("this edge of `{}` needs it", double.node))
    }

    /// Lets the types of the graph's own ports determine those of doubles. Returns the errors for
    /// the ports that the doubles lack.
    fn boundaries(&self, unifier: &mut Unifier) -> Vec<Diagnostic> {
        let mut errors = Vec::new();
        let inputs = self.graph.inputs.iter().map(|it| (it, true));
        let outputs = self.graph.outputs.iter().map(|it| (it, false));
        for (boundary, is_input) in inputs.chain(outputs) {
            let port = &boundary.inner;
            let Some(double) = self.double(port) else {
                continue;
            };
            let Some(one) = double.types.port(&port.port, is_input) else {
                errors.push(self.missing(double, port, is_input, boundary.span));
                continue;
            };
            let original = self.originals[port.node].as_ref();
            if let Some(other) = original.and_then(|types| types.port(&port.port, is_input)) {
                unifier.unify(&one, &other);
            }
        }
        errors
    }

    /// Returns the error for a step that needs a port which a double lacks.
    fn step(&self, step: &Step) -> Option<Diagnostic> {
        let (place, span) = match step {
            Step::Send { to, span, .. } => (to, span),
            Step::Expect { at, span, .. } => (at, span),
            Step::Replace { .. } | Step::Advance(_) | Step::Drain(_) => return None,
        };
        let (node, port, is_input) = match place {
            Place::Input { node, port } => (node, port, true),
            Place::Output { node, port } => (node, port, false),
            Place::GraphInput(_) | Place::GraphOutput(_) => return None,
        };
        let mut doubles = self.doubles.iter();
        let double = doubles.find(|double| double.node == *node)?;
        if double.types.port(port, is_input).is_some() {
            return None;
        }
        let error = double.lacks(port, is_input, *span);
        Some(error.other(double.span, format!("it replaces `{node}` here")))
    }
}

fn undetermined(double: &Double<'_>, missing: &[&str]) -> Diagnostic {
    let name = &double.types.signature.name;
    let last = name.rsplit("::").next().unwrap_or_default();
    let missing = suggest::list(missing.iter().copied());
    let message = format!(
        "no edge of `{}` determines {missing} of `{last}`",
        double.node
    );
    Diagnostic::error(double.span, message).help(format!("write the type: `{last}<..>`"))
}
