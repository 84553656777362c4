//! The waits for room at the receivers of ports `dropped`.
//!
//! If an instance rejects an item, the sender of the item waits until the receiver of the port
//! `dropped` has room for it. This wait adds to those of the sender's own edges. A deadlock needs a
//! cycle of instances, each of which waits for the next. A port therefore lets senders wait only
//! if its receivers lead to none of these senders, along edges that wait and along the other
//! waits of this kind. All instances in one limit count as one, because they wait for each
//! other's permits. All shards of an instance also count as one, because they have the same edges.

use std::collections::BTreeSet;
use std::ops::Range;

use super::{End, Graph};
use crate::flow::via::Via;

impl Graph {
    /// Lets the ports for unhandled items wait for their receivers, except for those whose waits
    /// could close a cycle.
    pub(super) fn let_dropped_wait(&mut self, edges: &[(End, End, Via)]) {
        let wholes = self.wholes();
        let waiting = edges.iter().filter(|(_, _, via)| via.waits());
        let ends = waiting.flat_map(|(from, to, _)| pairs(&wholes, from, to));
        let mut waits: BTreeSet<(usize, usize)> = ends.collect();
        let mut granted = Vec::new();
        for places in self.apart() {
            let place = places.start;
            let own = edges
                .iter()
                .filter(|(from, ..)| from.instances.contains(&place) && is_for_dropped(&from.port));
            let receivers = own.flat_map(|(_, to, _)| all_of(&wholes, &to.instances));
            let receivers: Vec<usize> = receivers.collect();
            if receivers.is_empty() {
                continue;
            }
            let senders = senders(&wholes, place, edges);
            let more = senders
                .iter()
                .flat_map(|&from| receivers.iter().map(move |&to| (from, to)));
            let mut all = waits.clone();
            all.extend(more);
            let reached = reached(&receivers, &all);
            if senders.is_disjoint(&reached) {
                waits = all;
                granted.extend(places);
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

    /// Returns the places of each instance, or of all of its shards.
    fn apart(&self) -> Vec<Range<usize>> {
        let mut apart = Vec::new();
        let mut groups = self.groups.iter().map(|group| &group.shards).peekable();
        let mut place = 0;
        while place < self.instances.len() {
            let shards = groups.next_if(|shards| shards.start == place);
            let places = shards.cloned().unwrap_or(place..place + 1);
            place = places.end;
            apart.push(places);
        }
        apart
    }

    /// Returns the number that stands for each instance: that of the first instance in the same
    /// limit, or else that of the first shard.
    fn wholes(&self) -> Vec<usize> {
        let mut wholes = Vec::with_capacity(self.instances.len());
        for places in self.apart() {
            wholes.extend(places.clone().map(|_| places.start));
        }
        for inside in self.limits.iter().map(|(_, inside)| inside) {
            for &place in inside {
                wholes[place] = inside.first().copied().unwrap_or(place);
            }
        }
        wholes
    }
}

/// Returns the instances whose items an instance may reject: those with an edge to it. If this edge
/// is for unhandled items of another instance, the senders of that one wait, too.
fn senders(wholes: &[usize], place: usize, edges: &[(End, End, Via)]) -> BTreeSet<usize> {
    let (mut senders, mut seen) = (BTreeSet::new(), BTreeSet::from([place]));
    let mut to_do = vec![place];
    while let Some(place) = to_do.pop() {
        for (from, ..) in edges
            .iter()
            .filter(|(_, to, _)| to.instances.contains(&place))
        {
            senders.extend(all_of(wholes, &from.instances));
            // All shards have the same senders.
            let first = from.instances.start;
            if is_for_dropped(&from.port) && seen.insert(first) {
                to_do.push(first);
            }
        }
    }
    senders
}

/// Returns the pairs of instances at the ends of an edge. An edge inside a limit has none.
fn pairs(wholes: &[usize], from: &End, to: &End) -> Vec<(usize, usize)> {
    let (froms, tos) = (
        all_of(wholes, &from.instances),
        all_of(wholes, &to.instances),
    );
    let all = froms
        .iter()
        .flat_map(|&from| tos.iter().map(move |&to| (from, to)));
    all.filter(|(from, to)| from != to).collect()
}

/// Returns the numbers that stand for these instances, each once.
fn all_of(wholes: &[usize], instances: &Range<usize>) -> BTreeSet<usize> {
    wholes[instances.clone()].iter().copied().collect()
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
