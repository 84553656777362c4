//! The expansion of a graph inside another.

use std::collections::BTreeMap;

use super::scope::Place;
use crate::expr::{Expr, LONG};
use crate::graph::{
    Arg, Boundary, Edge, Graph, Group, Limit, Node, Param, PortRef, Shards, Shed, Via,
};
use crate::types::Type;

/// Returns the value of each parameter of a graph: the argument or the default.
pub(super) fn arg_values(args: &[Arg], params: &[Param]) -> Vec<(String, Expr)> {
    let given = args.iter().map(|arg| (arg.name.as_ref(), arg));
    let given: BTreeMap<_, _> = given.collect();
    let mut values: Vec<(String, Expr)> = Vec::new();
    for param in params {
        let value = match (given.get(&Some(&param.name)), &param.default) {
            (Some(arg), _) => arg.value.clone(),
            // A default can use the parameters before it.
            (None, Some(default)) => default.substitute(&|name| find(&values, name)),
            (None, None) => continue,
        };
        values.push((param.name.clone(), value));
    }
    values
}

fn find(values: &[(String, Expr)], name: &str) -> Option<Expr> {
    let found = values.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value.clone())
}

/// Returns the number of parts that an expansion copies.
pub(super) fn parts(graph: &Graph) -> usize {
    let groups = graph
        .groups
        .iter()
        .map(|group| 1 + group.inputs.len() + group.outputs.len());
    graph.nodes.len()
        + graph.edges.len()
        + graph.sheds.len()
        + graph.limits.len()
        + graph.inputs.len()
        + graph.outputs.len()
        + groups.sum::<usize>()
        + 1
}

/// Returns the number of parts that an expansion copies, without their expressions. A part with
/// long texts or types counts as several.
fn size(graph: &Graph) -> usize {
    let ports = |boundaries: &[Boundary]| -> usize {
        let ports = boundaries.iter();
        ports.map(|it| it.port.len() + it.inner.port.len()).sum()
    };
    let nodes = graph.nodes.iter().map(|node| {
        let by = node.shards.as_ref().and_then(|shards| shards.by.as_ref());
        let texts = [&node.name, &node.module, &node.doc].into_iter().chain(by);
        let names = node.args.iter().filter_map(|arg| arg.name.as_ref());
        texts.chain(names).map(String::len).sum::<usize>()
    });
    let edges = graph.edges.iter();
    let edges = edges.map(|edge| edge.from.port.len() + edge.to.port.len());
    let groups = graph.groups.iter().map(|group| {
        let names = group.name.len() + group.graph.len();
        names + ports(&group.inputs) + ports(&group.outputs)
    });
    let texts = nodes.chain(edges).chain(groups).sum::<usize>();
    let texts = texts + ports(&graph.inputs) + ports(&graph.outputs);
    let types = graph.nodes.iter().flat_map(|node| &node.types);
    let types = types.chain(graph.edges.iter().flat_map(|edge| &edge.item));
    parts(graph) + texts / LONG + types.map(Type::size).sum::<usize>()
}

/// The conversion of the parts of an inner graph into parts of the outer graph.
pub(super) struct Expansion<'e> {
    pub(super) name: &'e str,
    pub(super) args: Vec<(String, Expr)>,
    pub(super) offset: usize,
    pub(super) place: &'e Place,
}

/// The parts of an inner graph.
pub(super) struct Expanded {
    pub(super) nodes: Vec<Node>,
    pub(super) edges: Vec<Edge>,
    pub(super) sheds: Vec<Shed>,
    pub(super) limits: Vec<Limit>,
    pub(super) groups: Vec<Group>,
    pub(super) inputs: Vec<Boundary>,
    pub(super) outputs: Vec<Boundary>,
    /// The size of the largest expression.
    pub(super) size_max: usize,
    /// The size of all parts.
    pub(super) size: usize,
}

impl Expansion<'_> {
    /// Returns the parts of an inner graph.
    pub(super) fn expand(&self, inner: &Graph) -> Expanded {
        let (mut size_max, mut size) = (0, size(inner));
        let mut expr = |expr: &Expr| {
            let expr = expr.substitute(&|name| find(&self.args, name));
            size_max = size_max.max(expr.size());
            size += expr.size();
            expr
        };
        let nodes = inner
            .nodes
            .iter()
            .map(|node| self.node(node, &mut expr))
            .collect();
        let edges = inner.edges.iter().map(|edge| Edge {
            from: self.port(&edge.from),
            to: self.port(&edge.to),
            via: via(&edge.via, &mut expr),
            after: edge.after.as_ref().map(&mut expr),
            condition: edge.condition.as_ref().map(&mut expr),
            ..edge.clone()
        });
        let edges = edges.collect();
        let sheds = inner.sheds.iter().map(|shed| Shed {
            node: shed.node + self.offset,
            above: expr(&shed.above),
            to: shed.to.as_ref().map(|to| self.port(to)),
            condition: shed.condition.as_ref().map(&mut expr),
            span: shed.span,
        });
        let sheds = sheds.collect();
        let limits = inner.limits.iter().map(|limit| Limit {
            count: expr(&limit.count),
            nodes: limit.nodes.iter().map(|node| node + self.offset).collect(),
            condition: limit.condition.as_ref().map(&mut expr),
            span: limit.span,
        });
        let limits = limits.collect();
        let mut boundaries = |inner: &[Boundary]| -> Vec<Boundary> {
            let boundaries = inner.iter().map(|boundary| Boundary {
                inner: self.port(&boundary.inner),
                via: boundary.via.as_ref().map(|inner| via(inner, &mut expr)),
                after: boundary.after.as_ref().map(&mut expr),
                condition: boundary.condition.as_ref().map(&mut expr),
                ..boundary.clone()
            });
            boundaries.collect()
        };
        let groups = inner.groups.iter().map(|group| Group {
            name: format!("{}.{}", self.name, group.name),
            graph: group.graph.clone(),
            nodes: group.nodes.start + self.offset..group.nodes.end + self.offset,
            inputs: boundaries(&group.inputs),
            outputs: boundaries(&group.outputs),
        });
        let groups = groups.collect();
        let inputs = boundaries(&inner.inputs);
        let outputs = boundaries(&inner.outputs);
        Expanded {
            nodes,
            edges,
            sheds,
            limits,
            groups,
            inputs,
            outputs,
            size_max,
            size,
        }
    }

    fn port(&self, port: &PortRef) -> PortRef {
        PortRef {
            node: port.node + self.offset,
            port: port.port.clone(),
        }
    }

    fn node(&self, node: &Node, expr: &mut impl FnMut(&Expr) -> Expr) -> Node {
        let inside = node.condition.as_ref().map(&mut *expr);
        let condition = match (self.place.condition.clone(), inside) {
            (Some(outer), Some(inside)) => Some(outer.and(inside)),
            (outer, inside) => outer.or(inside),
        };
        Node {
            name: format!("{}.{}", self.name, node.name),
            args: node
                .args
                .iter()
                .map(|arg| Arg {
                    value: expr(&arg.value),
                    ..arg.clone()
                })
                .collect(),
            shards: node.shards.as_ref().map(|shards| Shards {
                count: expr(&shards.count),
                ..shards.clone()
            }),
            condition,
            ..node.clone()
        }
    }
}

fn via(via: &Via, expr: &mut impl FnMut(&Expr) -> Expr) -> Via {
    match via {
        Via::Call | Via::Fused => via.clone(),
        Via::Queue { room, when_full } => Via::Queue {
            room: room.as_ref().map(expr),
            when_full: *when_full,
        },
    }
}
