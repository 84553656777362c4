//! The order in which a network drains its stages: each one after its senders.
//!
//! Stages are numbers here, and an edge is a pair of them.

use std::collections::BTreeSet;

/// Returns all nodes in an order in which each follows the nodes that lead to it. If no remaining
/// node is free of senders, the next one is the first node that can reach all nodes from which it
/// can be reached: the first one of a cycle.
pub(super) fn senders_first(nodes: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let mut next = vec![Vec::new(); nodes];
    let mut senders = vec![0_usize; nodes];
    for &(from, to) in edges.iter().filter(|(from, to)| from != to) {
        next[from].push(to);
        senders[to] += 1;
    }
    let mut free: BTreeSet<usize> = (0..nodes).filter(|&node| senders[node] == 0).collect();
    let mut left = BTreeSet::from_iter(0..nodes);
    let mut order = Vec::with_capacity(nodes);
    while !left.is_empty() {
        let in_cycle = || first_in_cycle(&left, &next);
        let Some(node) = free.pop_first().or_else(in_cycle) else {
            break;
        };
        left.remove(&node);
        order.push(node);
        for &to in &next[node] {
            senders[to] -= 1;
            if senders[to] == 0 && left.contains(&to) {
                free.insert(to);
            }
        }
    }
    order
}

/// Returns the first of these nodes that can reach all nodes from which it can be reached.
fn first_in_cycle(left: &BTreeSet<usize>, next: &[Vec<usize>]) -> Option<usize> {
    let mut place = vec![None; next.len()];
    for (at, &node) in left.iter().enumerate() {
        place[node] = Some(at);
    }
    let mut edges = Vec::new();
    for (from, &node) in left.iter().enumerate() {
        edges.extend(next[node].iter().filter_map(|&to| Some((from, place[to]?))));
    }
    let components = components(left.len(), &edges);
    let mut receives = vec![false; left.len()];
    for (from, to) in edges {
        receives[components[to]] |= components[from] != components[to];
    }
    let mut nodes = left.iter().zip(&components);
    let found = nodes.find(|(_, component)| !receives[**component]);
    found.map(|(node, _)| *node)
}

/// Returns the number of each node's strongly connected component (Tarjan 1972, without recursion).
/// Two nodes have the same number if each can be reached from the other.
pub(super) fn components(nodes: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let mut next = vec![Vec::new(); nodes];
    for &(from, to) in edges {
        next[from].push(to);
    }
    let mut search = Search {
        next,
        found: vec![None; nodes],
        low: vec![0; nodes],
        count: 0,
        open: Vec::new(),
        components: vec![None; nodes],
    };
    let mut number = 0;
    for node in 0..nodes {
        if search.found[node].is_none() {
            search.from(node, &mut number);
        }
    }
    let components = search.components.into_iter();
    components
        .map(|it| it.expect("each node was found"))
        .collect()
}

struct Search {
    /// The edges that the search has not followed yet.
    next: Vec<Vec<usize>>,
    /// The place of each node in the order in which the nodes were found.
    found: Vec<Option<usize>>,
    /// The first node, in that order, that a node is known to reach.
    low: Vec<usize>,
    count: usize,
    /// The nodes whose component is not complete.
    open: Vec<usize>,
    components: Vec<Option<usize>>,
}

impl Search {
    fn from(&mut self, first: usize, number: &mut usize) {
        let mut path = vec![first];
        self.find(first);
        while let Some(&node) = path.last() {
            if let Some(to) = self.next[node].pop() {
                match self.found[to] {
                    None => {
                        self.find(to);
                        path.push(to);
                    }
                    Some(found) if self.components[to].is_none() => {
                        self.low[node] = self.low[node].min(found);
                    }
                    Some(_) => {}
                }
                continue;
            }
            path.pop();
            if let Some(&before) = path.last() {
                self.low[before] = self.low[before].min(self.low[node]);
            }
            if self.found[node] == Some(self.low[node]) {
                while let Some(member) = self.open.pop() {
                    self.components[member] = Some(*number);
                    if member == node {
                        break;
                    }
                }
                *number += 1;
            }
        }
    }

    fn find(&mut self, node: usize) {
        self.found[node] = Some(self.count);
        self.low[node] = self.count;
        self.count += 1;
        self.open.push(node);
    }
}

#[cfg(test)]
mod tests {
    use super::{components, senders_first};

    #[test]
    fn senders_are_drained_first() {
        let check = |nodes, edges: &[_], expected: &[usize]| {
            assert_eq!(senders_first(nodes, edges), expected);
        };
        check(0, &[], &[]);
        check(2, &[], &[0, 1]);
        check(3, &[(1, 0), (2, 1)], &[2, 1, 0]);
        check(4, &[(3, 1), (3, 2), (1, 0), (2, 0)], &[3, 1, 2, 0]);
        check(2, &[(0, 0), (0, 1)], &[0, 1]);
        // A cycle, before its receivers and after its senders.
        check(3, &[(1, 2), (2, 1), (1, 0)], &[1, 0, 2]);
        check(4, &[(1, 2), (2, 1), (1, 0), (3, 2)], &[3, 1, 0, 2]);
        // Two cycles with a common stage: the second one is still a cycle without the first stage.
        let edges = [(0, 1), (1, 0), (1, 2), (2, 1)];
        check(3, &edges, &[0, 1, 2]);
    }

    #[test]
    fn nodes_that_reach_each_other_are_in_one_component() {
        let check = |nodes, edges: &[_], expected: &[&[usize]]| {
            let found = components(nodes, edges);
            let parts = (0..nodes).map(|number| {
                let members = (0..nodes).filter(|&node| found[node] == number);
                members.collect::<Vec<_>>()
            });
            let mut parts: Vec<_> = parts.filter(|part| !part.is_empty()).collect();
            parts.sort();
            assert_eq!(parts, expected);
        };
        check(0, &[], &[]);
        check(2, &[(0, 1)], &[&[0], &[1]]);
        check(2, &[(0, 0), (0, 1), (1, 0)], &[&[0, 1]]);
        check(4, &[(0, 1), (1, 2), (2, 0), (2, 3)], &[&[0, 1, 2], &[3]]);
        let edges = [(0, 1), (1, 0), (1, 2), (2, 3), (3, 2), (0, 3)];
        check(4, &edges, &[&[0, 1], &[2, 3]]);
    }
}
