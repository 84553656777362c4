//! Edges that need copies of items, because they begin at one output.

use std::collections::{BTreeMap, BTreeSet};

use super::{Edge, Graph, PortRef};
use crate::expr::Expr;

/// An edge by its number, and the conditions under which it exists.
type Present = (usize, BTreeSet<String>);

impl Graph {
    /// Returns a pair of edges for each output whose items must be copied. The second edge of the
    /// pair needs the copies.
    ///
    /// Two edges form a pair only if one of them exists whenever the other does. Edges with
    /// unrelated conditions form no pair, even if both conditions can be true at once. If the edges
    /// of an output form several pairs, only the first pair is returned.
    #[must_use]
    pub fn copies(&self) -> Vec<(usize, usize)> {
        let mut ports: BTreeMap<&PortRef, Vec<Present>> = BTreeMap::new();
        for (number, edge) in self.edges.iter().enumerate() {
            let port = ports.entry(&edge.from).or_default();
            port.push((number, self.conditions(edge)));
        }
        let copies = ports.values().filter_map(|edges| {
            edges
                .iter()
                .enumerate()
                .find_map(|(at, (second, present))| {
                    // If the conditions of one edge include those of the other, both may exist.
                    let mut before = edges[..at].iter();
                    let (first, _) = before
                        .find(|(_, other)| present.is_subset(other) || other.is_subset(present))?;
                    Some((*first, *second))
                })
        });
        copies.collect()
    }

    /// Returns the conditions under which an edge and its nodes exist.
    fn conditions(&self, edge: &Edge) -> BTreeSet<String> {
        let nodes = [&edge.from, &edge.to].map(|port| &self.nodes[port.node].condition);
        conjuncts(nodes.into_iter().chain([&edge.condition]).flatten())
    }
}

/// Returns whether two edges may exist at the same time: the conditions of one include those of the
/// other.
pub(crate) fn may_coexist(one: Option<&Expr>, other: Option<&Expr>) -> bool {
    let [one, other] = [one, other].map(conjuncts);
    one.is_subset(&other) || other.is_subset(&one)
}

/// Returns the parts of conditions that all have to hold.
fn conjuncts<'e>(conditions: impl IntoIterator<Item = &'e Expr>) -> BTreeSet<String> {
    let parts = conditions.into_iter().flat_map(Expr::conjuncts);
    parts.map(ToString::to_string).collect()
}
