//! What a network knows: its stages, and the edges between them.

use std::collections::VecDeque;
use std::sync::Arc;

use super::error::BuildError;
use super::inspect::Inspect;

/// The stages and edges of a network.
#[derive(Default)]
pub(crate) struct Table {
    pub(crate) stages: Vec<Known>,
    pub(crate) edges: Vec<Edge>,
    pub(crate) next: u32,
}

/// A stage as the network knows it.
#[derive(Clone)]
pub(crate) struct Known {
    pub(crate) id: u32,
    pub(crate) name: Arc<str>,
    pub(crate) event: &'static str,
    pub(crate) stage: Arc<dyn Inspect>,
}

/// How one stage sends to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EdgeKind {
    /// Into its queue; the sender may wait for room.
    Queue,
    /// Into its queue, if there is room.
    Offer,
    /// By a call.
    Call,
}

impl EdgeKind {
    /// Whether the sender may wait for the receiver.
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
    /// The stage that sends.
    pub from: Arc<str>,
    /// The stage that is sent to.
    pub to: Arc<str>,
    /// How.
    pub kind: EdgeKind,
    /// The proxy that is in between now, to which it all goes.
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

    pub(crate) fn connect(
        &mut self,
        from: &Arc<str>,
        to: &Arc<str>,
        kind: EdgeKind,
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
        let mut there = self.edges.iter();
        if !there.any(|it| it.from == edge.from && it.to == edge.to && it.kind == kind) {
            self.edges.push(edge);
        }
        Ok(())
    }

    /// The proxy between two stages.
    pub(crate) fn proxy(&self, from: &Arc<str>, to: &Arc<str>) -> Option<Arc<str>> {
        let mut there = self.edges.iter();
        let edge = there.find(|edge| edge.from == *from && edge.to == *to)?;
        edge.proxy.clone()
    }

    pub(crate) fn set_proxy(&mut self, from: &Arc<str>, to: &Arc<str>, proxy: Option<&Arc<str>>) {
        for edge in &mut self.edges {
            if edge.from == *from && edge.to == *to {
                edge.proxy = proxy.cloned();
            }
        }
    }

    /// The stages on a way from one to another, both included, by edges whose senders may wait: the shortest.
    fn path(&self, from: &Arc<str>, to: &Arc<str>) -> Option<Vec<String>> {
        let mut ways = VecDeque::from([vec![from]]);
        let mut seen = vec![from];
        while let Some(way) = ways.pop_front() {
            let last = *way.last().expect("a way has a first stage");
            if last == to {
                return Some(way.into_iter().map(ToString::to_string).collect());
            }
            for edge in self
                .edges
                .iter()
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
