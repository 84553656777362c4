//! The plan: a graph whose parameters have values, ready to be built.

use std::fmt;
use std::time::Duration;

use crate::graph::{PortRef, WhenFull};
use crate::token::Span;
use crate::types::Type;
use crate::value::Value;

mod instantiate;

/// A graph whose expressions have been evaluated. Parts whose condition is false are left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The name of the graph.
    pub name: String,
    /// The instances.
    pub nodes: Vec<PlanNode>,
    /// The edges.
    pub edges: Vec<PlanEdge>,
    /// The rules that reject items.
    pub sheds: Vec<PlanShed>,
    /// The limits, each of which bounds the number of items inside a set of instances.
    pub limits: Vec<PlanLimit>,
    /// The edges from the graph's own inputs.
    pub inputs: Vec<PlanBoundary>,
    /// The edges to the graph's own outputs.
    pub outputs: Vec<PlanBoundary>,
}

/// An instance to build.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanNode {
    /// The name.
    pub name: String,
    /// The full path of the module.
    pub module: String,
    /// The type arguments, if the module is generic.
    pub types: Vec<Type>,
    /// The arguments.
    pub args: Vec<PlanArg>,
    /// The division into shards; `None` if the instance is not divided.
    pub shards: Option<PlanShards>,
    /// The documentation; empty if there is none.
    pub doc: String,
    /// The position.
    pub span: Span,
}

/// An argument with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanArg {
    /// The name; `None` for a positional argument in a graph that was checked without signatures.
    pub name: Option<String>,
    /// The value.
    pub value: Value,
    /// The position.
    pub span: Span,
}

/// The division of an instance into shards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanShards {
    /// The number of shards, at least 1.
    pub count: u64,
    /// The item field whose value selects the shard.
    pub by: Option<String>,
}

/// An edge to build.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanEdge {
    /// The output.
    pub from: PortRef,
    /// The input.
    pub to: PortRef,
    /// The way in which items travel along the edge.
    pub via: PlanVia,
    /// The delay.
    pub after: Option<Duration>,
    /// True if the edge closes a cycle.
    pub back: bool,
    /// The type of the items, if the signatures specify it.
    pub item: Option<Type>,
    /// The position.
    pub span: Span,
    /// The two ends as they are written.
    text: String,
}

impl fmt::Display for PlanEdge {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

/// The way in which items travel along an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanVia {
    /// The sender puts items into the receiver's queue.
    Queue {
        /// The capacity of the queue, in items, at least 1; `None` means the engine's default.
        room: Option<u64>,
        /// The policy for a full queue.
        when_full: WhenFull,
    },
    /// The sender calls the receiver.
    Call,
}

/// A rule that rejects items while an instance is slow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanShed {
    /// The index of the node that rejects items.
    pub node: usize,
    /// The limit on the 90th percentile of the response time; above the limit, the instance rejects
    /// items.
    pub above: Duration,
    /// The input that receives rejected items.
    pub to: Option<PortRef>,
    /// The position.
    pub span: Span,
}

/// A bound on the number of items inside a set of instances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanLimit {
    /// The bound, in items, at least 1.
    pub count: u64,
    /// The indices of the nodes in the set.
    pub nodes: Vec<usize>,
    /// The position.
    pub span: Span,
}

/// An edge between a port of the graph itself and a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanBoundary {
    /// The name of the graph's port.
    pub port: String,
    /// The port of the node.
    pub inner: PortRef,
    /// The way in which items travel along the edge, if the graph states it.
    pub via: Option<PlanVia>,
    /// The delay.
    pub after: Option<Duration>,
    /// The position.
    pub span: Span,
}
