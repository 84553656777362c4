//! The table of a network: its stages, and the edges between them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use super::inspect::Inspect;
use super::links::{Held, Links};
use super::order::components;
use crate::stage::error::BuildError;

/// The stages and edges of a network.
#[derive(Default)]
pub(crate) struct Table {
    /// By number: in the order in which the stages were created.
    stages: BTreeMap<u32, Known>,
    names: HashMap<Arc<str>, u32>,
    links: Links,
    /// The last number that was given to a stage or to a holder of edges.
    last: u32,
    /// The number of changes of stages and edges.
    changes: u64,
    /// True if new edges do not look for the offers in their cycles.
    defers_back_rooms: bool,
    /// For each stage, the stages that keep a room or a route for its events.
    kept_by: HashMap<u32, BTreeSet<u32>>,
    /// For each stage, the stages for whose events it keeps a room or a route.
    keeps: HashMap<u32, BTreeSet<u32>>,
}

/// An offer in a cycle, whose room is its own.
pub(crate) struct Back {
    /// The number of the sender.
    from: u32,
    to: Known,
    room: u64,
}

impl Back {
    /// Gives the offer its room.
    pub(crate) fn set_room(self) {
        self.to.stage.set_back_room(self.from, self.room);
    }
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
    pub(super) fn waits(self) -> bool {
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
        let found = self.names.get(name);
        let found = found.and_then(|id| self.stages.get(id));
        found.ok_or_else(|| BuildError::NotFound {
            name: name.to_owned(),
            known: self.stages().map(|known| known.name.to_string()).collect(),
        })
    }

    /// Returns the stages, in the order in which they were created.
    pub(crate) fn stages(&self) -> impl Iterator<Item = &Known> {
        self.stages.values()
    }

    /// Returns the number of changes so far.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// Adds a stage.
    ///
    /// # Errors
    /// Returns an error if another stage has its name.
    pub(crate) fn add(&mut self, stage: Known) -> Result<(), BuildError> {
        let known = self.names.get(&stage.name);
        if let Some(known) = known.and_then(|id| self.stages.get(id)) {
            return Err(BuildError::NameTaken {
                name: known.name.to_string(),
                position: known.position.to_string(),
            });
        }
        self.changes += 1;
        self.names.insert(Arc::clone(&stage.name), stage.id);
        self.stages.insert(stage.id, stage);
        Ok(())
    }

    /// Removes all stages.
    pub(crate) fn take_stages(&mut self) -> BTreeMap<u32, Known> {
        std::mem::take(&mut self.stages)
    }

    /// Sets the holder of a stage's edges, and releases the edges of the earlier holder. Returns
    /// false if the stage is gone.
    pub(crate) fn set_making(&mut self, stage: u32, making: u32) -> bool {
        let Some(known) = self.stages.get_mut(&stage) else {
            return false;
        };
        let earlier = std::mem::replace(&mut known.making, making);
        self.release(earlier);
        true
    }

    /// Returns the source position of the stage with this name; empty if there is none.
    pub(crate) fn position(&self, name: &str) -> Arc<str> {
        let known = self.names.get(name).and_then(|id| self.stages.get(id));
        known.map_or_else(|| "".into(), |known| Arc::clone(&known.position))
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
        self.links.all().map(|held| &held.edge)
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
        // The search for a path takes longer than the one for its ends, and few edges have a path.
        if kind.waits()
            && self.links.lead(to, from, true)
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
        self.changes += 1;
        self.links.add(edge, room, by);
        Ok(())
    }

    /// Returns the offers in the cycles that a new edge closes.
    pub(crate) fn edges_back(&mut self, from: &str, to: &str) -> Vec<Back> {
        if self.defers_back_rooms || !self.links.lead(to, from, false) {
            return Vec::new();
        }
        // The stages that can be reached from the edge's end, and the stages from which its
        // beginning can be reached.
        let ahead = self.reached(to, |edge| (&edge.from, &edge.to));
        let behind = self.reached(from, |edge| (&edge.to, &edge.from));
        let held = self
            .links
            .all()
            .filter(|held| ahead.contains(&*held.edge.from) && behind.contains(&*held.edge.to));
        let back: Vec<Back> = held.filter_map(|held| self.back(held)).collect();
        self.keep_back(&back);
        back
    }

    /// Lets new edges ignore the offers in their cycles, until [`all_edges_back`] is called.
    ///
    /// [`all_edges_back`]: Self::all_edges_back
    pub(crate) fn defer_back_rooms(&mut self) {
        self.defers_back_rooms = true;
    }

    /// Returns all offers in cycles.
    pub(crate) fn all_edges_back(&mut self) -> Vec<Back> {
        self.defers_back_rooms = false;
        let numbered = self.stages.values().enumerate();
        let places: HashMap<&str, usize> = numbered.map(|(at, it)| (&*it.name, at)).collect();
        let place = |name: &str| places.get(name).copied();
        let ends = |edge: &Edge| Some((place(&edge.from)?, place(&edge.to)?));
        let edges: Vec<_> = self.edges().filter_map(ends).collect();
        let components = components(places.len(), &edges);
        let is_back = |edge: &Edge| {
            let both = ends(edge).map(|(from, to)| components[from] == components[to]);
            both.unwrap_or_default()
        };
        let held = self.links.all().filter(|held| is_back(&held.edge));
        let back: Vec<Back> = held.filter_map(|held| self.back(held)).collect();
        self.keep_back(&back);
        back
    }

    /// Returns an edge in a cycle, if it is an offer between stages that exist.
    fn back(&self, held: &Held) -> Option<Back> {
        if held.room == 0 {
            return None;
        }
        let (from, to) = (
            self.names.get(&held.edge.from)?,
            self.names.get(&held.edge.to)?,
        );
        Some(Back {
            from: *from,
            to: self.stages.get(to)?.clone(),
            room: held.room,
        })
    }

    fn keep_back(&mut self, back: &[Back]) {
        for back in back {
            self.keep(back.to.id, back.from);
        }
    }

    /// Records that a stage keeps a room or a route for the events of another stage.
    pub(crate) fn keep(&mut self, stage: u32, of: u32) {
        self.kept_by.entry(of).or_default().insert(stage);
        self.keeps.entry(stage).or_default().insert(of);
    }

    /// Returns the stages that keep a room or a route for the events of a stage that is gone.
    pub(crate) fn take_keepers(&mut self, of: u32) -> Vec<Arc<dyn Inspect>> {
        let stages = self.kept_by.remove(&of).unwrap_or_default();
        for stage in &stages {
            if let Some(kept) = self.keeps.get_mut(stage) {
                kept.remove(&of);
                if kept.is_empty() {
                    self.keeps.remove(stage);
                }
            }
        }
        let there = stages.iter().filter_map(|stage| self.stages.get(stage));
        there.map(|known| Arc::clone(&known.stage)).collect()
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
        self.changes += 1;
        self.links.disconnect(from, to, kind, by);
    }

    /// Adds a holder to the edges of a stage's handler.
    pub(crate) fn inherit(&mut self, stage: u32, by: u32) {
        if let Some(known) = self.stages.get(&stage) {
            self.links.inherit(known.making, by);
        }
    }

    /// Removes the edges that have no other holder.
    pub(crate) fn release(&mut self, by: u32) {
        if by != ALWAYS {
            self.changes += 1;
            self.links.release(by);
        }
    }

    /// Forgets a stage and its edges.
    pub(crate) fn remove(&mut self, id: u32) -> Option<Known> {
        let removed = self.stages.remove(&id)?;
        self.names.remove(&removed.name);
        self.changes += 1;
        self.links.remove(&removed.name);
        for of in self.keeps.remove(&id).unwrap_or_default() {
            if let Some(stages) = self.kept_by.get_mut(&of) {
                stages.remove(&id);
                if stages.is_empty() {
                    self.kept_by.remove(&of);
                }
            }
        }
        Some(removed)
    }

    /// Returns the edges from one stage to another.
    pub(crate) fn between(&self, from: &str, to: &str) -> impl Iterator<Item = &Edge> {
        self.links.between(from, to).map(|held| &held.edge)
    }

    /// Returns the proxy between two stages.
    pub(crate) fn proxy(&self, from: &Arc<str>, to: &Arc<str>) -> Option<Arc<str>> {
        self.between(from, to).next()?.proxy.clone()
    }

    pub(crate) fn set_proxy(&mut self, from: &Arc<str>, to: &Arc<str>, proxy: Option<&Arc<str>>) {
        self.changes += 1;
        self.links.set_proxy(from, to, proxy);
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
