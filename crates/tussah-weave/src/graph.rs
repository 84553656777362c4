//! The checked graph: one representation for compiling, running and drawing.

mod copies;

pub(crate) use self::copies::may_coexist;

use std::fmt;
use std::ops::Range;

use crate::expr::Expr;
use crate::token::Span;
use crate::types::Type;
use crate::value::Kind;

/// A graph in which all names are resolved and all nested graphs are expanded.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    /// The name.
    pub name: String,
    /// The documentation; empty if there is none.
    pub doc: String,
    /// The parameters.
    pub params: Vec<Param>,
    /// The instances.
    pub nodes: Vec<Node>,
    /// The edges.
    pub edges: Vec<Edge>,
    /// The rules that reject items.
    pub sheds: Vec<Shed>,
    /// The limits, each of which bounds the number of items inside a set of instances.
    pub limits: Vec<Limit>,
    /// The edges from the graph's own inputs. A graph with inputs can be used only inside other
    /// graphs.
    pub inputs: Vec<Boundary>,
    /// The edges to the graph's own outputs.
    pub outputs: Vec<Boundary>,
    /// The nested graphs.
    pub groups: Vec<Group>,
    /// The position of the graph's name.
    pub span: Span,
}

impl Graph {
    /// Returns the kinds of parameters that can accept this value as an argument. The value's own
    /// kind comes first. The list is empty if the value's kind cannot be determined.
    #[must_use]
    pub fn kinds(&self, value: &Expr) -> Vec<Kind> {
        let param = |name: &str| self.params.iter().find(|param| param.name == name);
        let lookup = |name: &str| match name {
            "workers" => Some(Kind::Count),
            name => param(name).map(|param| param.kind.clone()),
        };
        let Ok(own) = value.kind(&lookup) else {
            return Vec::new();
        };
        let constant = value.eval(&|_| None).ok();
        let others = Kind::NAMED.iter().filter(|kind| {
            let converted = constant.clone().map(|value| value.convert(kind));
            own.suits(kind) && own != **kind && converted.is_none_or(|it| it.is_ok())
        });
        let others: Vec<_> = others.cloned().collect();
        std::iter::once(own).chain(others).collect()
    }

    /// Returns a port as it is written at the end of an edge.
    pub(crate) fn spell(&self, port: &PortRef, default: &str) -> String {
        let name = &self.nodes[port.node].name;
        match port.port == default {
            true => name.clone(),
            false => format!("{name}.{}", port.port),
        }
    }
}

/// A nested graph, expanded into its nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The name of the instance, prefixed with the names of the instances that contain it.
    pub name: String,
    /// The name of the nested graph.
    pub graph: String,
    /// The indices of the nested graph's nodes in [`Graph::nodes`].
    pub nodes: Range<usize>,
    /// The inner graph's inputs.
    pub inputs: Vec<Boundary>,
    /// The inner graph's outputs.
    pub outputs: Vec<Boundary>,
}

/// A parameter of a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// The name.
    pub name: String,
    /// The kind.
    pub kind: Kind,
    /// The default value.
    pub default: Option<Expr>,
    /// The documentation; empty if there is none.
    pub doc: String,
    /// The position of the parameter's name.
    pub span: Span,
    /// The position of the parameter's kind.
    pub kind_span: Span,
}

/// An instance of a module.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The name, such as `cache.read` for the instance `read` inside the nested graph `cache`.
    pub name: String,
    /// The full path of the module, such as `http::Listen`.
    pub module: String,
    /// The type arguments, if the module is generic.
    pub types: Vec<Type>,
    /// The arguments. If the graph was checked against signatures, each argument has a name.
    pub args: Vec<Arg>,
    /// The division into shards; `None` if the instance is not divided.
    pub shards: Option<Shards>,
    /// The condition under which the instance exists; `None` if it always exists.
    pub condition: Option<Expr>,
    /// True if at least one edge must lead to the instance. Always false without signatures.
    pub needs_input: bool,
    /// The names of the outputs that must be connected. Empty without signatures.
    pub needs_outputs: Vec<String>,
    /// The documentation; empty if there is none.
    pub doc: String,
    /// The position of the instance's name.
    pub span: Span,
    /// The position of the module's path.
    pub module_span: Span,
    /// The positions of the type arguments.
    pub type_spans: Vec<Span>,
}

/// An argument.
#[derive(Clone, Debug, PartialEq)]
pub struct Arg {
    /// The name; `None` for a positional argument.
    pub name: Option<String>,
    /// The value.
    pub value: Expr,
    /// The kind that the parameter expects. `None` without signatures.
    pub kind: Option<Kind>,
    /// The position, name included.
    pub span: Span,
}

/// The division of an instance into shards.
#[derive(Clone, Debug, PartialEq)]
pub struct Shards {
    /// The number of shards.
    pub count: Expr,
    /// The item field whose value selects the shard.
    pub by: Option<String>,
    /// The position.
    pub span: Span,
}

/// A port of a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PortRef {
    /// The index of the node in the field `nodes` of the graph or plan.
    pub node: usize,
    /// The port.
    pub port: String,
}

/// An edge from an output to an input.
#[derive(Clone, Debug, PartialEq)]
pub struct Edge {
    /// The output.
    pub from: PortRef,
    /// The input.
    pub to: PortRef,
    /// The way in which items travel along the edge.
    pub via: Via,
    /// The delay.
    pub after: Option<Expr>,
    /// True if the edge closes a cycle.
    pub back: bool,
    /// The condition under which the edge exists. The nodes that the edge connects can have their
    /// own conditions.
    pub condition: Option<Expr>,
    /// The type of the items, if the signatures specify it.
    pub item: Option<Type>,
    /// The position.
    pub span: Span,
    /// The position of the output.
    pub from_span: Span,
    /// The position of the input.
    pub to_span: Span,
}

/// The way in which items travel along an edge.
#[derive(Clone, Debug, PartialEq)]
pub enum Via {
    /// The sender puts items into the receiver's queue.
    Queue {
        /// The capacity of the queue, in items; `None` means the engine's default.
        room: Option<Expr>,
        /// The policy for a full queue.
        when_full: WhenFull,
    },
    /// The sender calls the receiver.
    Call,
    /// The sender calls the receiver, which is the next module of a fused chain.
    Fused,
}

impl Via {
    /// Returns whether the sender calls the receiver.
    pub(crate) fn is_call(&self) -> bool {
        matches!(self, Self::Call | Self::Fused)
    }
}

/// The policy for a full queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// The sender waits.
    #[default]
    Wait,
    /// The new item goes to the receiver's `dropped` port.
    Shed,
    /// The oldest item in the queue goes to the receiver's `dropped` port.
    DropOldest,
}

impl WhenFull {
    /// The policies with their names in Weave.
    pub(crate) const NAMED: &[(&'static str, WhenFull)] = &[
        ("wait", WhenFull::Wait),
        ("shed", WhenFull::Shed),
        ("drop_oldest", WhenFull::DropOldest),
    ];
}

impl fmt::Display for WhenFull {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Self::NAMED.iter().find(|(_, policy)| policy == self);
        out.write_str(named.map_or("", |(name, _)| name))
    }
}

/// A rule that rejects items while an instance is slow.
#[derive(Clone, Debug, PartialEq)]
pub struct Shed {
    /// The index of the node that rejects items.
    pub node: usize,
    /// The limit on the 90th percentile of the response time; above the limit, the instance rejects
    /// items.
    pub above: Expr,
    /// The input that receives rejected items.
    pub to: Option<PortRef>,
    /// The condition under which the rule applies.
    pub condition: Option<Expr>,
    /// The position.
    pub span: Span,
}

/// A bound on the number of items inside a set of instances.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// The bound, in items.
    pub count: Expr,
    /// The indices of the nodes in the set.
    pub nodes: Vec<usize>,
    /// The condition under which the bound applies.
    pub condition: Option<Expr>,
    /// The position.
    pub span: Span,
}

/// An edge between a port of the graph itself and a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Boundary {
    /// The name of the graph's port.
    pub port: String,
    /// The port of the node.
    pub inner: PortRef,
    /// The way in which items travel along the edge, if the graph states it.
    pub via: Option<Via>,
    /// The delay.
    pub after: Option<Expr>,
    /// The condition under which the edge exists.
    pub condition: Option<Expr>,
    /// The position.
    pub span: Span,
}

/// A test of a graph, with its names resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct Test {
    /// The name.
    pub name: String,
    /// The index of the graph in the checked file.
    pub graph: usize,
    /// The arguments of the graph; each has a name.
    pub args: Vec<Arg>,
    /// The steps.
    pub steps: Vec<Step>,
    /// The position of the test's name.
    pub span: Span,
}

/// A step of a test.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Replaces a node's module with another module.
    Replace {
        /// The name of the node.
        node: String,
        /// The full path of the replacement module.
        module: String,
        /// The type arguments, if the module is generic. The node's edges determine the types that
        /// the test does not state.
        types: Vec<Type>,
        /// The arguments.
        args: Vec<Arg>,
        /// The position of the replacement module.
        span: Span,
    },
    /// Sends items.
    Send {
        /// The input that receives the items, or the output from which they appear to come.
        to: Place,
        /// The items.
        values: Vec<Expr>,
        /// The position.
        span: Span,
    },
    /// Expects that certain items arrive, or that none do.
    Expect {
        /// The port to watch.
        at: Place,
        /// The expected items; empty if the test expects that none arrive.
        values: Vec<Expr>,
        /// The time within which the items must arrive.
        within: Option<Expr>,
        /// The position.
        span: Span,
    },
    /// Advances the virtual time.
    Advance(Expr),
    /// Waits until the graph has handled all items.
    Drain(Span),
}

/// A port to which a test sends items, or at which it expects items. The node of the port is given
/// by name, because a condition can choose between several nodes of the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// An input of a node.
    Input {
        /// The name of the node.
        node: String,
        /// The port.
        port: String,
    },
    /// An output of a node.
    Output {
        /// The name of the node.
        node: String,
        /// The port.
        port: String,
    },
    /// An input of the graph itself.
    GraphInput(String),
    /// An output of the graph itself.
    GraphOutput(String),
}
