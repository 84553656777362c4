//! Fused chains: the modules that can get all of their items by calls.

use super::build::Builder;
use super::ports::spell_edge;
use crate::diagnostic::Diagnostic;
use crate::graph::{Edge, Via};
use crate::modules::{Body, Parallelism};
use crate::token::Span;

/// Reports instances that cannot be a later part of a fused chain.
pub(super) fn check(builder: &mut Builder<'_, '_>) {
    let fused = builder.graph.edges.iter();
    let fused: Vec<Edge> = fused
        .filter(|edge| edge.via == Via::Fused)
        .cloned()
        .collect();
    for edge in fused {
        let Some((why, other)) = reason(builder, &edge) else {
            continue;
        };
        let name = &builder.graph.nodes[edge.to.node].name;
        let error = Diagnostic::error(edge.to_span, format!("`{name}` cannot be fused: {why}"));
        let error = match other {
            Some(span) => error.other(span, "here"),
            None => error,
        };
        builder.report(error.help("leave `fuse` out, so that a queue leads to it"));
    }
}

/// Returns the reason why the receiver of an edge needs a queue, and the place that shows it.
fn reason(builder: &Builder<'_, '_>, edge: &Edge) -> Option<(String, Option<Span>)> {
    let (graph, to) = (&builder.graph, edge.to.node);
    let node = &graph.nodes[to];
    let signature = builder.checker.signature(&node.module);
    let why = signature.and_then(|signature| match (signature.body, signature.parallelism) {
        (Body::Async, _) => Some("it awaits"),
        (Body::Blocking, _) => Some("it blocks its OS thread"),
        (_, Parallelism::Flow) => Some("it keeps state for each flow"),
        (_, Parallelism::Ordered) => Some("the order of its output is that of its queue"),
        _ => None,
    });
    if let Some(why) = why {
        return Some((why.to_owned(), None));
    }
    let mut edges = graph.edges.iter();
    if let Some(other) = edges.find(|it| it.to.node == to && it.from != edge.from) {
        let why = format!("another edge leads to it, `{}`", spell_edge(builder, other));
        return Some((why, Some(other.span)));
    }
    if let Some(input) = graph.inputs.iter().find(|input| input.inner.node == to) {
        return Some((
            "an input of the graph leads to it".to_owned(),
            Some(input.span),
        ));
    }
    if let Some(shards) = &node.shards {
        return Some(("it has shards".to_owned(), Some(shards.span)));
    }
    if let Some(shed) = graph.sheds.iter().find(|shed| shed.node == to) {
        let why = "a rule sheds items from its queue".to_owned();
        return Some((why, Some(shed.span)));
    }
    let mut limits = graph.limits.iter();
    let crosses = |nodes: &[usize]| nodes.contains(&to) && !nodes.contains(&edge.from.node);
    let limit = limits.find(|limit| crosses(&limit.nodes))?;
    Some(("a limit begins at it".to_owned(), Some(limit.span)))
}
