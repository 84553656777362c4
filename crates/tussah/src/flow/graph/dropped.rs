//! The waits for room at the receivers of ports `dropped`.
//!
//! If an instance rejects an item, the sender of the item waits until the receiver of the port
//! `dropped` has room for it. This wait adds to those of the sender's own edges. A deadlock needs a
//! cycle of instances, each of which waits for the next. A port therefore lets senders wait only
//! if its receivers lead to none of these senders, along edges that wait and along the other
//! waits of this kind. All instances in one limit count as one, because they wait for each
//! other's permits.

use std::collections::BTreeSet;

use super::{End, Graph};
use crate::flow::via::Via;

impl Graph {
    /// Lets the ports for unhandled items wait for their receivers, except for those whose waits
    /// could close a cycle.
    pub(super) fn let_dropped_wait(&mut self, edges: &[(End, End, Via)]) {
        let waiting = edges.iter().filter(|(_, _, via)| via.waits());
        let ends = waiting.flat_map(|(from, to, _)| self.pairs(from, to));
        let mut waits: BTreeSet<(usize, usize)> = ends.collect();
        let mut granted = Vec::new();
        for place in 0..self.instances.len() {
            let own = edges
                .iter()
                .filter(|(from, ..)| from.instances.contains(&place) && is_for_dropped(&from.port));
            let receivers = own.flat_map(|(_, to, _)| to.instances.clone());
            let receivers: Vec<usize> = receivers.map(|to| self.whole(to)).collect();
            if receivers.is_empty() {
                continue;
            }
            let senders = self.senders(place, edges);
            let more = senders
                .iter()
                .flat_map(|&from| receivers.iter().map(move |&to| (from, to)));
            let mut all = waits.clone();
            all.extend(more);
            let reached = reached(&receivers, &all);
            if senders.is_disjoint(&reached) {
                waits = all;
                granted.push(place);
            }
        }
        for place in granted {
            self.instances[place].instance.outs(&mut |port, outlet| {
                if is_for_dropped(port) {
                    outlet.set_waits();
                }
            });
        }
    }

    /// Returns the instances whose items an instance may reject: those with an edge to it. If this
    /// edge is for unhandled items of another instance, the senders of that one wait, too.
    fn senders(&self, place: usize, edges: &[(End, End, Via)]) -> BTreeSet<usize> {
        let (mut senders, mut seen) = (BTreeSet::new(), BTreeSet::from([place]));
        let mut to_do = vec![place];
        while let Some(place) = to_do.pop() {
            for (from, ..) in edges
                .iter()
                .filter(|(_, to, _)| to.instances.contains(&place))
            {
                senders.extend(from.instances.clone().map(|from| self.whole(from)));
                if is_for_dropped(&from.port) {
                    to_do.extend(from.instances.clone().filter(|&from| seen.insert(from)));
                }
            }
        }
        senders
    }

    /// Returns the pairs of instances at the ends of an edge. An edge inside a limit has none.
    fn pairs(&self, from: &End, to: &End) -> Vec<(usize, usize)> {
        let froms = from.instances.clone();
        let all = froms.flat_map(|from| to.instances.clone().map(move |to| (from, to)));
        let all = all.map(|(from, to)| (self.whole(from), self.whole(to)));
        all.filter(|(from, to)| from != to).collect()
    }

    /// Returns the number of an instance, or that of the first instance in the same limit.
    fn whole(&self, place: usize) -> usize {
        let mut limits = self.limits.iter();
        let limit = limits.find(|(_, inside)| inside.contains(&place));
        limit.map_or(place, |(_, inside)| inside[0])
    }
}

/// Returns whether a port is for items that its instance did not handle.
fn is_for_dropped(port: &str) -> bool {
    port == "dropped" || port.ends_with("_dropped")
}

/// Returns the numbers that can be reached from `first`, including these.
fn reached(first: &[usize], edges: &BTreeSet<(usize, usize)>) -> BTreeSet<usize> {
    let mut reached: BTreeSet<usize> = first.iter().copied().collect();
    let mut to_do = first.to_vec();
    while let Some(at) = to_do.pop() {
        for &(_, to) in edges.range((at, 0)..=(at, usize::MAX)) {
            if reached.insert(to) {
                to_do.push(to);
            }
        }
    }
    reached
}
