//! The edges of a network, which are found by their ends and by their holders.
//!
//! A network may have thousands of stages with edges to one stage, so nothing here looks at all
//! edges to add or to remove one.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::table::{Edge, EdgeKind};

/// The edges of a network.
#[derive(Default)]
pub(super) struct Links {
    /// By number: in the order in which the edges were made.
    edges: BTreeMap<u64, Held>,
    last: u64,
    ahead: Ends,
    behind: Ends,
    /// The edges of each holder.
    held: HashMap<u32, BTreeSet<u64>>,
    /// The edges with a proxy.
    proxied: BTreeSet<u64>,
}

/// An edge, with the numbers of its holders: makers of handlers, and proxies. An edge that has a
/// proxy exists even without holders.
pub(super) struct Held {
    pub(super) edge: Edge,
    by: Vec<u32>,
    /// The credits that an offer has requested. If it is a back edge, these credits are its own
    /// room.
    pub(super) room: u64,
}

/// The numbers of the edges at each stage, by the stage at their other end.
type Ends = HashMap<Arc<str>, BTreeMap<Arc<str>, Vec<u64>>>;

impl Links {
    /// Returns all edges, in the order in which they were made.
    pub(super) fn all(&self) -> impl Iterator<Item = &Held> {
        self.edges.values()
    }

    /// Returns the edges from one stage to another.
    pub(super) fn between(&self, from: &str, to: &str) -> impl Iterator<Item = &Held> {
        let numbers = self.ahead.get(from).and_then(|ends| ends.get(to));
        let numbers = numbers.into_iter().flatten();
        numbers.filter_map(|number| self.edges.get(number))
    }

    /// Adds a holder to an edge, which is made if it does not exist. Its room becomes at least
    /// `room`.
    pub(super) fn add(&mut self, edge: Edge, room: u64, by: u32) {
        let number = match self.numbers(&edge.from, &edge.to, Some(edge.kind)).first() {
            Some(number) => *number,
            None => self.make(edge),
        };
        if let Some(held) = self.edges.get_mut(&number) {
            held.room = held.room.max(room);
        }
        self.hold(number, by);
    }

    /// Removes a holder from an edge, and then the edge if it has no other holder.
    pub(super) fn disconnect(&mut self, from: &str, to: &str, kind: EdgeKind, by: u32) {
        for number in self.numbers(from, to, Some(kind)) {
            self.let_go(number, by);
        }
    }

    /// Makes `by` a holder of the edges of another holder.
    pub(super) fn inherit(&mut self, holder: u32, by: u32) {
        for number in self.held.get(&holder).cloned().unwrap_or_default() {
            self.hold(number, by);
        }
    }

    /// Removes the edges that have no other holder.
    pub(super) fn release(&mut self, by: u32) {
        for number in self.held.remove(&by).unwrap_or_default() {
            self.let_go(number, by);
        }
    }

    /// Removes the edges from and to a stage, which is no proxy any more.
    pub(super) fn remove(&mut self, name: &str) {
        let ends = self.ahead.get(name).into_iter();
        let ends = ends.chain(self.behind.get(name));
        let numbers: Vec<u64> = ends.flat_map(BTreeMap::values).flatten().copied().collect();
        for number in numbers {
            self.take(number);
        }
        let is_by = |number: &u64| {
            let held = self.edges.get(number);
            let proxy = held.and_then(|held| held.edge.proxy.as_deref());
            proxy == Some(name)
        };
        let numbers: Vec<u64> = self.proxied.iter().copied().filter(is_by).collect();
        for number in numbers {
            self.set_proxy_of(number, None);
        }
    }

    /// Sets the proxy of the edges from one stage to another.
    pub(super) fn set_proxy(&mut self, from: &str, to: &str, proxy: Option<&Arc<str>>) {
        for number in self.numbers(from, to, None) {
            self.set_proxy_of(number, proxy);
        }
    }

    /// Returns whether a path leads from one stage to another, along edges whose senders may wait,
    /// or along all edges.
    pub(super) fn lead(&self, from: &str, to: &str, waits: bool) -> bool {
        let fits = |numbers: &[u64]| {
            let mut edges = numbers.iter().filter_map(|number| self.edges.get(number));
            !waits || edges.any(|held| held.edge.kind.waits())
        };
        let ahead = |stage: &str| neighbors(&self.ahead, stage, fits);
        let behind = |stage: &str| neighbors(&self.behind, stage, fits);
        meets(from, to, ahead, behind)
    }

    /// Returns the numbers of the edges from one stage to another, of one kind or of all kinds.
    fn numbers(&self, from: &str, to: &str, kind: Option<EdgeKind>) -> Vec<u64> {
        let numbers = self.ahead.get(from).and_then(|ends| ends.get(to));
        let fits = |number: &u64| {
            let held = self.edges.get(number);
            held.is_some_and(|held| kind.is_none_or(|kind| held.edge.kind == kind))
        };
        let numbers = numbers.into_iter().flatten().copied();
        numbers.filter(fits).collect()
    }

    fn make(&mut self, edge: Edge) -> u64 {
        self.last += 1;
        let number = self.last;
        for (ends, one, other) in [
            (&mut self.ahead, &edge.from, &edge.to),
            (&mut self.behind, &edge.to, &edge.from),
        ] {
            let others = ends.entry(Arc::clone(one)).or_default();
            others.entry(Arc::clone(other)).or_default().push(number);
        }
        let held = Held {
            edge,
            by: Vec::new(),
            room: 0,
        };
        self.edges.insert(number, held);
        number
    }

    fn hold(&mut self, number: u64, by: u32) {
        if let Some(held) = self.edges.get_mut(&number)
            && !held.by.contains(&by)
        {
            held.by.push(by);
            self.held.entry(by).or_default().insert(number);
        }
    }

    fn let_go(&mut self, number: u64, by: u32) {
        if let Some(held) = self.edges.get_mut(&number) {
            held.by.retain(|holder| *holder != by);
        }
        if let Some(numbers) = self.held.get_mut(&by) {
            numbers.remove(&number);
            if numbers.is_empty() {
                self.held.remove(&by);
            }
        }
        self.take_unheld(number);
    }

    fn set_proxy_of(&mut self, number: u64, proxy: Option<&Arc<str>>) {
        let Some(held) = self.edges.get_mut(&number) else {
            return;
        };
        held.edge.proxy = proxy.cloned();
        match proxy {
            Some(_) => self.proxied.insert(number),
            None => self.proxied.remove(&number),
        };
        self.take_unheld(number);
    }

    /// Removes an edge that has neither a holder nor a proxy.
    fn take_unheld(&mut self, number: u64) {
        let held = self.edges.get(&number);
        if held.is_some_and(|held| held.by.is_empty() && held.edge.proxy.is_none()) {
            self.take(number);
        }
    }

    fn take(&mut self, number: u64) {
        let Some(Held { edge, by, .. }) = self.edges.remove(&number) else {
            return;
        };
        self.proxied.remove(&number);
        for holder in by {
            if let Some(numbers) = self.held.get_mut(&holder) {
                numbers.remove(&number);
                if numbers.is_empty() {
                    self.held.remove(&holder);
                }
            }
        }
        for (ends, one, other) in [
            (&mut self.ahead, &edge.from, &edge.to),
            (&mut self.behind, &edge.to, &edge.from),
        ] {
            let Some(others) = ends.get_mut(one) else {
                continue;
            };
            if let Some(numbers) = others.get_mut(other) {
                numbers.retain(|it| *it != number);
                if numbers.is_empty() {
                    others.remove(other);
                }
            }
            if others.is_empty() {
                ends.remove(one);
            }
        }
    }
}

/// Returns the stages at the other ends of the edges that fit.
fn neighbors<'a, F: Fn(&[u64]) -> bool>(
    ends: &'a Ends,
    stage: &str,
    fits: F,
) -> impl Iterator<Item = &'a str> + use<'a, F> {
    let others = ends.get(stage).into_iter().flatten();
    others.filter_map(move |(other, numbers)| fits(numbers).then_some(&**other))
}

/// Returns whether a path leads from one node to another. Searches from both ends in turn, one edge
/// at a time, because one end often has few edges, and the other one thousands.
fn meets<'a, A, B>(
    from: &'a str,
    to: &'a str,
    ahead: impl Fn(&str) -> A,
    behind: impl Fn(&str) -> B,
) -> bool
where
    A: Iterator<Item = &'a str>,
    B: Iterator<Item = &'a str>,
{
    if from == to {
        return true;
    }
    let (mut after, mut before) = (HashSet::from([from]), HashSet::from([to]));
    let (mut forward, mut back) = (vec![ahead(from)], vec![behind(to)]);
    loop {
        match step(&mut forward, &mut after, &ahead) {
            Some(node) if before.contains(node) => return true,
            Some(_) => {}
            None => return false,
        }
        match step(&mut back, &mut before, &behind) {
            Some(node) if after.contains(node) => return true,
            Some(_) => {}
            None => return false,
        }
    }
}

/// Follows one edge of a search. Returns the node at its end, or `None` at the end of the search.
fn step<'a, I: Iterator<Item = &'a str>>(
    to_do: &mut Vec<I>,
    seen: &mut HashSet<&'a str>,
    next: impl Fn(&str) -> I,
) -> Option<&'a str> {
    loop {
        let Some(node) = to_do.last_mut()?.next() else {
            to_do.pop();
            continue;
        };
        if seen.insert(node) {
            to_do.push(next(node));
        }
        return Some(node);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::meets;

    #[test]
    fn a_search_ends_at_the_end_with_few_edges() {
        // `source` sends to a thousand stages, and all of these to `sink`.
        let shards: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
        let count = Cell::new(0);
        let counted = |nodes: Vec<&'static str>| {
            let count = &count;
            nodes
                .into_iter()
                .inspect(move |_| count.set(count.get() + 1))
        };
        let shards: Vec<&'static str> = shards.into_iter().map(|it| &*it.leak()).collect();
        let ahead = |stage: &str| {
            counted(match stage {
                "source" => shards.clone(),
                "sink" => Vec::new(),
                _ => vec!["sink"],
            })
        };
        let behind = |stage: &str| {
            counted(match stage {
                "source" => Vec::new(),
                "sink" => shards.clone(),
                _ => vec!["source"],
            })
        };
        let check = |from: &'static str, to: &'static str, leads: bool, steps: usize| {
            count.set(0);
            assert_eq!(meets(from, to, ahead, behind), leads, "{from} {to}");
            assert!(count.get() <= steps, "{from} {to}: {} steps", count.get());
        };
        check("source", "source", true, 0);
        check("sink", "7", false, 0);
        check("7", "source", false, 2);
        check("7", "sink", true, 2);
        check("source", "7", true, 2);
        check("source", "sink", true, 4);
        check("sink", "source", false, 0);
        check("7", "8", false, 4);
    }
}
