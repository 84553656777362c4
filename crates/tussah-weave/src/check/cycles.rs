//! Cycles: the edges that close them, and cycles that could deadlock.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, VecDeque};

use super::build::Builder;
use super::conditions::{Case, cases};
use super::ports::spell_edge;
use crate::diagnostic::Diagnostic;
use crate::expr::Expr;
use crate::graph::{Edge, Limit, Via, WhenFull};
use crate::modules::Parallelism;

/// Marks the edges that close cycles. Reports the cycles that cannot work.
pub(super) fn check(builder: &mut Builder<'_, '_>) {
    mark_back_edges(builder);
    let edges = builder.graph.edges.clone();
    let is_call = |edge: &Edge| edge.via.is_call();
    let calls = cycles(builder.graph.nodes.len(), &edges, &is_call, &|_| true);
    let mut reported: BTreeSet<usize> = BTreeSet::new();
    for cycle in calls {
        report(
            builder,
            &edges,
            &cycle,
            "calls itself",
            "make one of its edges a queue",
        );
        reported.extend(&cycle);
    }
    for case in cases(&builder.graph.limits) {
        unbounded(builder, &edges, &case, &mut reported);
    }
    serial_calls(builder, &edges);
}

/// Reports the cycles that no limit bounds in one case.
fn unbounded(
    builder: &mut Builder<'_, '_>,
    edges: &[Edge],
    case: &Case,
    reported: &mut BTreeSet<usize>,
) {
    let holds = |condition: &Option<Expr>| condition.as_ref().is_none_or(|it| case.holds(it));
    let limits = builder.graph.limits.iter();
    let (limits, others): (Vec<_>, Vec<_>) = limits.partition(|limit| holds(&limit.condition));
    let contains = |limit: &Limit, edge: &Edge| {
        limit.nodes.contains(&edge.from.node) && limit.nodes.contains(&edge.to.node)
    };
    let waits = |edge: &Edge| {
        let ends = [edge.from.node, edge.to.node].map(|node| &builder.graph.nodes[node].condition);
        let mut conditions = ends.into_iter().chain([&edge.condition]).flatten();
        conditions.all(|condition| case.may_hold(condition))
            && match &edge.via {
                Via::Call | Via::Fused => true,
                Via::Queue { when_full, .. } => *when_full == WhenFull::Wait,
            }
    };
    // A cycle inside one limit is bounded. One that leaves the limit has an edge outside of it.
    let leaves = |edge: &Edge| !limits.iter().any(|limit| contains(limit, edge));
    let cycles = cycles(builder.graph.nodes.len(), edges, &waits, &leaves);
    let absent: Vec<Limit> = others.into_iter().cloned().collect();
    for cycle in cycles {
        if builder.has_lost_limit || cycle.iter().any(|edge| reported.contains(edge)) {
            continue;
        }
        let help = "let an edge give way with `via queue(1000, when_full: shed)`, or bound the items \
                    inside with `limit 1000 in { .. }`";
        let what = "can come to a standstill: each of its edges waits for room";
        let mut absent = absent.iter();
        let absent = absent.find(|limit| cycle.iter().any(|&at| contains(limit, &edges[at])));
        report(builder, edges, &cycle, what, help);
        if let (Some(limit), Some(error)) = (absent, builder.checker.diagnostics.last_mut()) {
            let note = "this limit does not apply in every case";
            *error = error.clone().other(limit.span, note);
        }
        reported.extend(&cycle);
    }
}

fn report(builder: &mut Builder<'_, '_>, edges: &[Edge], cycle: &[usize], what: &str, help: &str) {
    let (Some(&first), Some(&last)) = (cycle.first(), cycle.last()) else {
        return;
    };
    let mut names: Vec<&str> = cycle
        .iter()
        .map(|&edge| builder.graph.nodes[edges[edge].from.node].name.as_str())
        .collect();
    names.push(names[0]);
    let message = format!("the cycle {} {what}", names.join(" -> "));
    let mut error =
        Diagnostic::error(edges[last].span, message).label("this edge closes the cycle");
    for &edge in &cycle[..cycle.len() - 1] {
        if edges[edge].span != edges[last].span {
            error = error.other(edges[edge].span, "an edge of the cycle");
        }
    }
    debug_assert_eq!(edges[first].from.node, edges[last].to.node);
    builder.report(error.help(help));
}

/// Reports calls to serial modules that may lead back to the same module.
fn serial_calls(builder: &mut Builder<'_, '_>, edges: &[Edge]) {
    let components = components(builder.graph.nodes.len(), edges, &|_| true);
    for edge in edges {
        let is_inside = components[edge.from.node] == components[edge.to.node];
        let module = &builder.graph.nodes[edge.to.node].module;
        let is_element = builder.checker.signature(module).is_none_or(|signature| {
            matches!(
                signature.parallelism,
                Parallelism::Element | Parallelism::Ordered
            )
        });
        if !edge.via.is_call() || !is_inside || is_element {
            continue;
        }
        let name = builder.graph.nodes[edge.to.node].name.clone();
        let message = format!(
            "`{name}` handles one item at a time and is in a cycle, so it cannot be called"
        );
        let label = spell_edge(builder, edge);
        let error = Diagnostic::error(edge.to_span, message).label(format!("the call `{label}`"));
        builder.report(error.help("leave `via call` out, so that a queue leads to it"));
    }
}

/// Marks each edge that leads back to a node of the path that a depth-first search took to it.
/// The search begins at the sources, in the order of the file.
fn mark_back_edges(builder: &mut Builder<'_, '_>) {
    let nodes = builder.graph.nodes.len();
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    let mut has_input = vec![false; nodes];
    for (index, edge) in builder.graph.edges.iter().enumerate() {
        out[edge.from.node].push(index);
        has_input[edge.to.node] = true;
    }
    for boundary in &builder.graph.inputs {
        has_input[boundary.inner.node] = false;
    }
    let roots = (0..nodes).filter(|&node| !has_input[node]).chain(0..nodes);
    let (mut is_seen, mut is_open) = (vec![false; nodes], vec![false; nodes]);
    for root in roots {
        if is_seen[root] {
            continue;
        }
        is_seen[root] = true;
        is_open[root] = true;
        let mut stack = vec![(root, 0)];
        while let Some((node, next)) = stack.pop() {
            let Some(&index) = out[node].get(next) else {
                is_open[node] = false;
                continue;
            };
            stack.push((node, next + 1));
            let to = builder.graph.edges[index].to.node;
            builder.graph.edges[index].back = is_open[to];
            if !is_seen[to] {
                is_seen[to] = true;
                is_open[to] = true;
                stack.push((to, 0));
            }
        }
    }
}

/// Returns a cycle of each strongly connected component of the chosen edges, as edges: a shortest
/// one through the first edge for which `is_first` holds, if there is one.
fn cycles(
    nodes: usize,
    edges: &[Edge],
    is_chosen: &dyn Fn(&Edge) -> bool,
    is_first: &dyn Fn(&Edge) -> bool,
) -> Vec<Vec<usize>> {
    let components = components(nodes, edges, is_chosen);
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    for (index, edge) in edges.iter().enumerate() {
        if is_chosen(edge) && components[edge.from.node] == components[edge.to.node] {
            out[edge.from.node].push(index);
        }
    }
    let mut found: Vec<Vec<usize>> = Vec::new();
    let mut done: BTreeSet<usize> = BTreeSet::new();
    for (index, edge) in edges.iter().enumerate() {
        let component = components[edge.from.node];
        let is_cyclic = is_chosen(edge) && component == components[edge.to.node];
        if is_cyclic && is_first(edge) && done.insert(component) {
            found.extend(cycle(edges, &out, index));
        }
    }
    found
}

/// Returns a shortest cycle that begins with an edge, by breadth-first search. `out` has the edges
/// of each node that the cycle may take.
fn cycle(edges: &[Edge], out: &[Vec<usize>], first: usize) -> Option<Vec<usize>> {
    let (start, next) = (edges[first].from.node, edges[first].to.node);
    let mut came_by: HashMap<usize, usize> = HashMap::from([(next, first)]);
    let mut queue = VecDeque::from([next]);
    while let Some(node) = queue.pop_front() {
        for &index in &out[node] {
            let to = edges[index].to.node;
            if let Entry::Vacant(entry) = came_by.entry(to) {
                entry.insert(index);
                queue.push_back(to);
            }
        }
    }
    let mut path = vec![*came_by.get(&start)?];
    while edges[*path.last()?].from.node != start {
        path.push(*came_by.get(&edges[*path.last()?].from.node)?);
    }
    path.reverse();
    Some(path)
}

/// Returns the number of each node's strongly connected component (Kosaraju's algorithm).
pub(super) fn components(
    nodes: usize,
    edges: &[Edge],
    is_chosen: &dyn Fn(&Edge) -> bool,
) -> Vec<usize> {
    let (mut out, mut into) = (vec![Vec::new(); nodes], vec![Vec::new(); nodes]);
    for edge in edges.iter().filter(|edge| is_chosen(edge)) {
        out[edge.from.node].push(edge.to.node);
        into[edge.to.node].push(edge.from.node);
    }
    let mut order = Vec::with_capacity(nodes);
    let mut is_seen = vec![false; nodes];
    for root in 0..nodes {
        if is_seen[root] {
            continue;
        }
        is_seen[root] = true;
        let mut stack = vec![(root, 0)];
        while let Some((node, next)) = stack.pop() {
            let Some(&to) = out[node].get(next) else {
                order.push(node);
                continue;
            };
            stack.push((node, next + 1));
            if !is_seen[to] {
                is_seen[to] = true;
                stack.push((to, 0));
            }
        }
    }
    let mut components = vec![usize::MAX; nodes];
    for &root in order.iter().rev() {
        let mut stack = vec![root];
        while let Some(node) = stack.pop() {
            if components[node] == usize::MAX {
                components[node] = root;
                stack.extend(&into[node]);
            }
        }
    }
    components
}
