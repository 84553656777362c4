//! Ports that have to be connected, and calls that cannot be created.

use std::collections::BTreeSet;

use super::build::Builder;
use super::ends::{DROPPED, OUT, RUN};
use super::scope::Content;
use crate::diagnostic::Diagnostic;
use crate::graph::{Boundary, Edge, Group, PortRef, Via};
use crate::modules::Body;
use crate::suggest;
use crate::token::Span;
use crate::value::Value;

/// Checks the ports of all instances.
pub(super) fn check(builder: &mut Builder<'_, '_>) {
    calls(builder);
    sheds_of_calls(builder);
    rejected_twice(builder);
    // A missing edge may be one that did not parse, or that has an error.
    if builder.is_broken {
        return;
    }
    let connected = Connected::new(builder);
    for index in 0..builder.scope.entities.len() {
        let entity = builder.scope.entities[index].clone();
        if entity.is_faulty {
            continue;
        }
        match &entity.content {
            Content::Node(node) => check_node(builder, &connected, *node),
            Content::Graph(inner) => check_inner(builder, &connected, inner, entity.span),
            Content::Unknown => {}
        }
    }
}

/// Refuses two ways for rejected items. The plan refuses those under conditions.
fn rejected_twice(builder: &mut Builder<'_, '_>) {
    for shed in builder.graph.sheds.clone() {
        if shed.to.is_none() {
            continue;
        }
        let dropped = PortRef {
            node: shed.node,
            port: DROPPED.to_owned(),
        };
        let always = |condition: &Option<_>| shed.condition.is_none() || condition.is_none();
        let graph = &builder.graph;
        let edges = graph.edges.iter();
        let edges = edges.filter(|edge| edge.from == dropped && always(&edge.condition));
        let outputs = graph.outputs.iter();
        let outputs = outputs.filter(|it| it.inner == dropped && always(&it.condition));
        let mut spans = edges.map(|edge| edge.span).chain(outputs.map(|it| it.span));
        if let Some(span) = spans.next() {
            let error = two_ways(&graph.nodes[shed.node].name, shed.span, span);
            builder.report(error);
        }
    }
}

/// Returns an error if a rule and an edge both take the rejected items of an instance.
pub(crate) fn two_ways(name: &str, rule: Span, edge: Span) -> Diagnostic {
    let message = format!("the rejected items of `{name}` would arrive twice");
    Diagnostic::error(rule, message)
        .other(edge, "this edge takes them, too")
        .help("keep the edge, and leave the `->` out of the rule")
}

/// The ports with edges.
struct Connected {
    inputs: BTreeSet<PortRef>,
    outputs: BTreeSet<PortRef>,
}

impl Connected {
    fn new(builder: &Builder<'_, '_>) -> Self {
        let graph = &builder.graph;
        let rejected = graph.sheds.iter().filter_map(|shed| shed.to.clone());
        let inputs = graph.edges.iter().map(|edge| edge.to.clone());
        let outputs = graph.edges.iter().map(|edge| edge.from.clone());
        Self {
            inputs: inputs
                .chain(graph.inputs.iter().map(|boundary| boundary.inner.clone()))
                .chain(rejected)
                .collect(),
            outputs: outputs
                .chain(graph.outputs.iter().map(|boundary| boundary.inner.clone()))
                .collect(),
        }
    }

    fn has_input(&self, node: usize) -> bool {
        self.inputs.iter().any(|port| port.node == node)
    }

    fn has_output(&self, node: usize, port: &str) -> bool {
        let port = port.to_owned();
        self.outputs.contains(&PortRef { node, port })
    }
}

fn check_node(builder: &mut Builder<'_, '_>, connected: &Connected, index: usize) {
    let node = builder.graph.nodes[index].clone();
    let is_used =
        connected.has_input(index) || connected.outputs.iter().any(|port| port.node == index);
    if node.needs_input && !connected.has_input(index) {
        let signature = builder.checker.signature(&node.module);
        let inputs = signature
            .map(|signature| suggest::list(signature.inputs.iter().map(|port| port.name.as_str())));
        let message = format!("no edge leads to `{}`", node.name);
        let error = Diagnostic::error(node.span, message).label("it receives nothing");
        let error = match inputs.as_deref() {
            Some("`run`") | None => error.help(format!("add an edge: `.. -> {}`", node.name)),
            Some(inputs) => error.help(format!("inputs: {inputs}")),
        };
        builder.report(error);
        return;
    }
    let missing: Vec<&str> = node
        .needs_outputs
        .iter()
        .map(String::as_str)
        .filter(|port| !connected.has_output(index, port))
        .collect();
    if !missing.is_empty() {
        let plural = if missing.len() == 1 { "" } else { "s" };
        let message = format!(
            "the output{plural} {} of `{}` must be connected",
            suggest::list(missing.iter().copied()),
            node.name
        );
        let port = if missing[0] == OUT {
            String::new()
        } else {
            format!(".{}", missing[0])
        };
        let help = format!("add an edge: `{}{port} -> ..`", node.name);
        builder.report(Diagnostic::error(node.span, message).help(help));
    } else if !is_used {
        let message = format!("the instance `{}` is in no edge", node.name);
        builder.report(Diagnostic::warning(node.span, message));
    }
}

fn check_inner(builder: &mut Builder<'_, '_>, connected: &Connected, inner: &Group, span: Span) {
    let is_fed = |input: &PortRef| {
        builder
            .graph
            .edges
            .iter()
            .any(|edge| edge.to == *input && !inner.nodes.contains(&edge.from.node))
            || builder
                .graph
                .inputs
                .iter()
                .any(|boundary| boundary.inner == *input)
            || builder
                .graph
                .sheds
                .iter()
                .any(|shed| shed.to.as_ref() == Some(input))
    };
    if !inner.inputs.is_empty() && !inner.inputs.iter().any(|boundary| is_fed(&boundary.inner)) {
        let message = format!("no edge leads to this instance of `{}`", inner.graph);
        let inputs: BTreeSet<&str> = inner
            .inputs
            .iter()
            .map(|boundary| boundary.port.as_str())
            .collect();
        let error = Diagnostic::error(span, message).label("it receives nothing");
        builder.report(error.help(format!("inputs: {}", suggest::list(inputs))));
        return;
    }
    let graph = &builder.graph;
    // A condition with constant arguments can leave out the instance inside.
    let is_absent = |node: usize| {
        let condition = graph.nodes[node].condition.as_ref();
        condition.is_some_and(|it| it.eval(&|_| None) == Ok(Value::Flag(false)))
    };
    let missing = |boundaries: &[Boundary], is_missing: &dyn Fn(&PortRef) -> bool| {
        let missing = boundaries.iter().filter(|boundary| {
            let inner = &boundary.inner;
            !is_absent(inner.node) && is_missing(inner)
        });
        missing.map(|it| it.port.clone()).collect::<BTreeSet<_>>()
    };
    let inputs = missing(&inner.inputs, &|PortRef { node, .. }| {
        graph.nodes[*node].needs_input && !connected.has_input(*node)
    });
    let outputs = missing(&inner.outputs, &|PortRef { node, port }| {
        graph.nodes[*node].needs_outputs.contains(port) && !connected.has_output(*node, port)
    });
    for (missing, kind) in [(inputs, "input"), (outputs, "output")] {
        if missing.is_empty() {
            continue;
        }
        let plural = if missing.len() == 1 { "" } else { "s" };
        let message = format!(
            "the {kind}{plural} {} of this instance of `{}` must be connected",
            suggest::list(missing.iter().map(String::as_str)),
            inner.graph
        );
        builder.report(Diagnostic::error(span, message));
    }
}

/// Reports calls to modules that only a queue can feed.
fn calls(builder: &mut Builder<'_, '_>) {
    let calls: Vec<Edge> = builder
        .graph
        .edges
        .iter()
        .filter(|edge| edge.via == Via::Call)
        .cloned()
        .collect();
    for edge in calls {
        let node = &builder.graph.nodes[edge.to.node];
        let Some(signature) = builder.checker.signature(&node.module) else {
            continue;
        };
        let what = match signature.body {
            Body::Plain => continue,
            Body::Async => "it awaits",
            Body::Blocking => "it blocks its OS thread",
        };
        let (name, module) = (node.name.clone(), node.module.clone());
        let message = format!("`{name}` cannot be called: {what}");
        let error = Diagnostic::error(edge.to_span, message)
            .label(format!("an instance of `{module}`"))
            .help("leave `via call` out, so that a queue leads to it");
        builder.report(error);
    }
}

/// Reports rules at instances that only calls lead to: a call passes no queue from which the rule
/// could reject items. Fused chains have an error of their own.
fn sheds_of_calls(builder: &mut Builder<'_, '_>) {
    let graph = &builder.graph;
    let is_fed = |node: usize| {
        graph.inputs.iter().any(|input| input.inner.node == node)
            || graph
                .sheds
                .iter()
                .flat_map(|shed| &shed.to)
                .any(|to| to.node == node)
    };
    let sheds = graph.sheds.iter().filter_map(|shed| {
        let edges = graph.edges.iter().filter(|edge| edge.to.node == shed.node);
        let edges: Vec<&Edge> = edges.collect();
        let is_called = edges.iter().all(|edge| edge.via == Via::Call) && !is_fed(shed.node);
        let message = format!(
            "`{}` gets its items by calls only, so it cannot reject them",
            graph.nodes[shed.node].name
        );
        let first = edges.first().filter(|_| is_called)?;
        let error = Diagnostic::error(shed.span, message).other(first.span, "a call");
        Some(error.help("leave `via call` out, so that a queue leads to it"))
    });
    let errors: Vec<Diagnostic> = sheds.collect();
    errors.into_iter().for_each(|error| builder.report(error));
}

/// Returns the two ends of an edge as they are written.
pub(super) fn spell_edge(builder: &Builder<'_, '_>, edge: &Edge) -> String {
    let from = builder.graph.spell(&edge.from, OUT);
    format!("{from} -> {}", builder.graph.spell(&edge.to, RUN))
}
