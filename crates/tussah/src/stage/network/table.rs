//! The table of a network: its stages, and the edges between them.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use super::inspect::Inspect;
use crate::stage::error::BuildError;

/// The stages and edges of a network.
#[derive(Default)]
pub(crate) struct Table {
    pub(crate) stages: Vec<Known>,
    /// In the order in which the edges were made.
    edges: Vec<Held>,
    /// The last number that was given to a stage or to a holder of edges.
    last: u32,
}

/// An edge, with the numbers of its holders: makers of handlers, and proxies. An edge that has a
/// proxy exists even without holders.
struct Held {
    edge: Edge,
    by: Vec<u32>,
    /// The credits that an offer has requested. If it is a back edge, these credits are its own
    /// room.
    room: u64,
}

/// The holder of edges that exist as long as their stages.
pub(crate) const ALWAYS: u32 = 0;

/// A stage as the network knows it.
#[derive(Clone)]
pub(crate) struct Known {
    pub(crate) id: u32,
    pub(crate) name: Arc<str>,
    /// The position in the source at which the stage is created, such as `src/main.rs:12:5`.
    pub(crate) position: Arc<str>,
    pub(crate) event: &'static str,
    pub(crate) stage: Arc<dyn Inspect>,
    /// The holder of its handler's edges; `ALWAYS` before it has a handler.
    pub(crate) making: u32,
}

/// The way in which a stage sends events to another stage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EdgeKind {
    /// The event enters the receiver's queue. A sender can wait while the queue is full.
    Queue,
    /// The event enters the receiver's queue unless the queue is full; the sender never waits.
    Offer,
    /// The sending stage calls the handler of the receiving stage.
    Call,
}

impl EdgeKind {
    /// Returns whether the sender may wait for the receiver.
    fn waits(self) -> bool {
        self != EdgeKind::Offer
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            EdgeKind::Queue => "queue",
            EdgeKind::Offer => "offer",
            EdgeKind::Call => "call",
        }
    }
}

/// An edge between two stages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edge {
    /// The name of the sending stage.
    pub from: Arc<str>,
    /// The name of the receiving stage.
    pub to: Arc<str>,
    /// The kind of the edge.
    pub kind: EdgeKind,
    /// The name of the proxy that currently receives all events of the edge, if there is one.
    pub proxy: Option<Arc<str>>,
}

impl Table {
    pub(crate) fn find(&self, name: &str) -> Result<&Known, BuildError> {
        let found = self.stages.iter().find(|known| &*known.name == name);
        found.ok_or_else(|| BuildError::NotFound {
            name: name.to_owned(),
            known: self
                .stages
                .iter()
                .map(|known| known.name.to_string())
                .collect(),
        })
    }

    /// Returns the source position of the stage with this name; empty if there is none.
    pub(crate) fn position(&self, name: &str) -> Arc<str> {
        let known = self.find(name);
        known.map_or_else(|_| "".into(), |known| Arc::clone(&known.position))
    }

    /// Returns the error of a call edge to the stage with this name.
    pub(crate) fn blocks(&self, name: &str) -> BuildError {
        BuildError::Blocks {
            stage: name.to_owned(),
            position: self.position(name).to_string(),
        }
    }

    /// Returns a new number.
    pub(crate) fn number(&mut self) -> u32 {
        self.last += 1;
        self.last
    }

    pub(crate) fn edges(&self) -> impl Iterator<Item = &Edge> {
        self.edges.iter().map(|held| &held.edge)
    }

    /// Adds a holder to an edge, which is created if it does not exist.
    ///
    /// # Errors
    /// Returns an error if the edge would close a cycle that can deadlock.
    pub(crate) fn connect(
        &mut self,
        from: &Arc<str>,
        to: &Arc<str>,
        (kind, room): (EdgeKind, u64),
        by: u32,
    ) -> Result<(), BuildError> {
        if kind.waits()
            && let Some(mut path) = self.path(to, from)
        {
            path.insert(0, from.to_string());
            return Err(BuildError::Cycle { path });
        }
        let edge = Edge {
            from: Arc::clone(from),
            to: Arc::clone(to),
            kind,
            proxy: None,
        };
        let mut there = self.edges.iter_mut();
        let same = |it: &Edge| it.from == edge.from && it.to == edge.to && it.kind == kind;
        match there.find(|held| same(&held.edge)) {
            None => self.edges.push(Held {
                edge,
                by: vec![by],
                room,
            }),
            Some(held) => {
                held.room = held.room.max(room);
                if !held.by.contains(&by) {
                    held.by.push(by);
                }
            }
        }
        Ok(())
    }

    /// Returns the offers in the cycles that a new edge closes: the numbers of their senders, their
    /// rooms and their receivers.
    pub(crate) fn edges_back(&self, from: &str, to: &str) -> Vec<(u32, u64, Arc<dyn Inspect>)> {
        // The stages that can be reached from the edge's end, and the stages from which its
        // beginning can be reached.
        let ahead = self.reached(to, |edge| (&edge.from, &edge.to));
        let behind = self.reached(from, |edge| (&edge.to, &edge.from));
        let held = self.edges.iter().filter(|held| {
            let edge = &held.edge;
            let is_it = *edge.from == *from && *edge.to == *to && ahead.contains(from);
            held.room > 0 && (is_it || ahead.contains(&*edge.from) && behind.contains(&*edge.to))
        });
        let back = held.filter_map(|held| {
            let (from, to) = (
                self.find(&held.edge.from).ok()?,
                self.find(&held.edge.to).ok()?,
            );
            Some((from.id, held.room, Arc::clone(&to.stage)))
        });
        back.collect()
    }

    /// Returns the stages that can be reached from a stage along edges whose ends are `ends`.
    fn reached<'a>(
        &'a self,
        from: &'a str,
        ends: impl Fn(&'a Edge) -> (&'a str, &'a str),
    ) -> HashSet<&'a str> {
        let mut next: HashMap<_, Vec<_>> = HashMap::new();
        for (from, to) in self.edges().map(ends) {
            next.entry(from).or_default().push(to);
        }
        let (mut seen, mut to_do) = (HashSet::from([from]), vec![from]);
        while let Some(node) = to_do.pop() {
            for &to in next.get(node).into_iter().flatten() {
                if seen.insert(to) {
                    to_do.push(to);
                }
            }
        }
        seen
    }

    /// Removes a holder from an edge.
    pub(crate) fn disconnect(&mut self, from: &Arc<str>, to: &Arc<str>, kind: EdgeKind, by: u32) {
        for Held {
            edge, by: holders, ..
        } in &mut self.edges
        {
            if edge.from == *from && edge.to == *to && edge.kind == kind {
                holders.retain(|holder| *holder != by);
            }
        }
        self.release(ALWAYS);
    }

    /// Adds a holder to the edges of a stage's handler.
    pub(crate) fn inherit(&mut self, stage: u32, by: u32) {
        let Some(known) = self.stages.iter().find(|known| known.id == stage) else {
            return;
        };
        let of_handler = |held: &&mut Held| held.by.contains(&known.making);
        for held in self.edges.iter_mut().filter(of_handler) {
            if !held.by.contains(&by) {
                held.by.push(by);
            }
        }
    }

    /// Removes the edges that have no other holder.
    pub(crate) fn release(&mut self, by: u32) {
        if by != ALWAYS {
            for held in &mut self.edges {
                held.by.retain(|holder| *holder != by);
            }
        }
        self.edges
            .retain(|held| !held.by.is_empty() || held.edge.proxy.is_some());
    }

    /// Forgets a stage and its edges.
    pub(crate) fn remove(&mut self, id: u32) -> Option<Known> {
        let place = self.stages.iter().position(|known| known.id == id)?;
        let removed = self.stages.remove(place);
        let name = &removed.name;
        self.edges
            .retain(|Held { edge, .. }| edge.from != *name && edge.to != *name);
        for held in &mut self.edges {
            held.edge.proxy.take_if(|proxy| proxy == name);
        }
        self.release(ALWAYS);
        Some(removed)
    }

    /// Returns the proxy between two stages.
    pub(crate) fn proxy(&self, from: &Arc<str>, to: &Arc<str>) -> Option<Arc<str>> {
        let mut there = self.edges();
        let edge = there.find(|edge| edge.from == *from && edge.to == *to)?;
        edge.proxy.clone()
    }

    pub(crate) fn set_proxy(&mut self, from: &Arc<str>, to: &Arc<str>, proxy: Option<&Arc<str>>) {
        for Held { edge, .. } in &mut self.edges {
            if edge.from == *from && edge.to == *to {
                edge.proxy = proxy.cloned();
            }
        }
    }

    /// Returns the shortest path from one stage to another, including both, along edges whose
    /// senders may wait.
    fn path(&self, from: &Arc<str>, to: &Arc<str>) -> Option<Vec<String>> {
        let mut ways = VecDeque::from([vec![from]]);
        let mut seen = vec![from];
        while let Some(way) = ways.pop_front() {
            let last = *way.last().expect("a way has a first stage");
            if last == to {
                return Some(way.into_iter().map(ToString::to_string).collect());
            }
            for edge in self
                .edges()
                .filter(|edge| edge.kind.waits() && edge.from == *last)
            {
                if !seen.contains(&&edge.to) {
                    seen.push(&edge.to);
                    let mut longer = way.clone();
                    longer.push(&edge.to);
                    ways.push_back(longer);
                }
            }
        }
        None
    }
}
