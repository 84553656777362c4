//! The syntax tree of a file, in which names are not resolved yet.

use std::collections::BTreeSet;

use crate::expr::Expr;
use crate::graph::{Arg, Param, Shards, WhenFull};
use crate::token::Span;
use crate::types::Type;

/// A parsed file, or the parsed content of a macro.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct File {
    /// The modules imported with `use`.
    pub imports: Vec<Path>,
    /// The graphs.
    pub graphs: Vec<Definition>,
    /// The tests.
    pub tests: Vec<TestCase>,
    /// True if part of the file did not parse, in which case the tree may lack names that the file
    /// uses.
    pub is_broken: bool,
}

impl File {
    /// Removes everything except the graph named `graph` and the graphs and modules that it uses.
    #[doc(hidden)]
    pub fn keep(&mut self, graph: &str) {
        let (mut used, mut open) = (BTreeSet::new(), vec![graph.to_owned()]);
        while let Some(name) = open.pop() {
            if used.insert(name.clone()) {
                let graphs = self.graphs.iter().filter(|it| it.name.text == name);
                open.extend(graphs.flat_map(|it| modules(&it.body)));
            }
        }
        self.imports.retain(|path| used.contains(path.last()));
        self.graphs.retain(|it| used.contains(&it.name.text));
        self.tests.clear();
    }
}

/// Returns the modules and graphs that statements name without a path.
fn modules(body: &[Statement]) -> Vec<String> {
    let names = body.iter().flat_map(|statement| match statement {
        Statement::Instance(instance) => match &*instance.module.names {
            [name] => vec![name.text.clone()],
            _ => Vec::new(),
        },
        Statement::If(choice) => [&choice.then, &choice.otherwise]
            .into_iter()
            .flat_map(|body| modules(body))
            .collect(),
        _ => Vec::new(),
    });
    names.collect()
}

/// A name with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The name.
    pub text: String,
    /// The position.
    pub span: Span,
}

/// A path, which consists of names separated by `::`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// The names; at least one.
    pub names: Vec<Name>,
}

impl Path {
    /// Returns the position of the whole path.
    #[must_use]
    pub fn span(&self) -> Span {
        let span = |name: Option<&Name>| name.map(|name| name.span).unwrap_or_default();
        span(self.names.first()).to(span(self.names.last()))
    }

    /// Returns the last name.
    #[must_use]
    pub fn last(&self) -> &str {
        self.names.last().map_or("", |name| name.text.as_str())
    }
}

impl std::fmt::Display for Path {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, name) in self.names.iter().enumerate() {
            let separator = if index == 0 { "" } else { "::" };
            write!(out, "{separator}{}", name.text)?;
        }
        Ok(())
    }
}

/// A graph as written in the source, before its names are resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// The documentation; empty if there is none.
    pub doc: String,
    /// The name.
    pub name: Name,
    /// The parameters.
    pub params: Vec<Param>,
    /// The statements.
    pub body: Vec<Statement>,
    /// True if part of the graph did not parse, in which case the definition may lack parameters
    /// and edges.
    pub is_broken: bool,
    /// The names of the instances whose statements did not parse.
    pub lost: Vec<Name>,
    /// True if a limit did not parse. It may have bounded any cycle.
    pub(crate) has_lost_limit: bool,
}

/// A statement of a graph.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// `name = Module(..)`
    Instance(Instance),
    /// `a -> b -> c`
    Chain(Chain),
    /// `shed a when p90 > 50 ms`
    Shed(ShedRule),
    /// `limit 100 in { a, b }`
    Limit(LimitRule),
    /// `if flag { .. } else { .. }`
    If(Choice),
}

/// An instance of a module or of a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Instance {
    /// The documentation; empty if there is none.
    pub doc: String,
    /// The name of the instance.
    pub name: Name,
    /// The module.
    pub module: Path,
    /// The type arguments between `<` and `>`.
    pub types: Vec<TypeRef>,
    /// The arguments.
    pub args: Vec<Arg>,
    /// The division into shards, as stated after `*`.
    pub shards: Option<Shards>,
    /// The position of the statement.
    pub span: Span,
}

/// A Rust type with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeRef {
    /// The type.
    pub ty: Type,
    /// The position.
    pub span: Span,
}

/// A chain of edges.
#[derive(Clone, Debug, PartialEq)]
pub struct Chain {
    /// The start of the first edge.
    pub first: End,
    /// The edges; at least one.
    pub hops: Vec<Hop>,
}

/// An edge of a chain. Each edge starts where the previous edge ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Hop {
    /// The destination of the edge.
    pub to: End,
    /// The kind of the edge, if the text states it.
    pub kind: Option<HopKind>,
    /// The delay.
    pub after: Option<Expr>,
}

/// The kind of an edge.
#[derive(Clone, Debug, PartialEq)]
pub enum HopKind {
    /// `via call`
    Call(Span),
    /// `fuse`, before the chain.
    Fused(Span),
    /// `via queue(room, when_full: ..)`
    Queue {
        /// The bound, in items.
        room: Option<Expr>,
        /// The policy for a full queue.
        when_full: Option<WhenFull>,
        /// The position.
        span: Span,
    },
}

/// An end of an edge: an instance, or the graph's own `in` or `out`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The name of the instance, or `in` or `out`.
    pub name: Name,
    /// The port, if the text states it.
    pub port: Option<Name>,
}

impl End {
    /// Returns the position.
    #[must_use]
    pub fn span(&self) -> Span {
        let last = self.port.as_ref().unwrap_or(&self.name);
        self.name.span.to(last.span)
    }
}

/// A rule that rejects items while an instance is slow.
#[derive(Clone, Debug, PartialEq)]
pub struct ShedRule {
    /// The instance.
    pub name: Name,
    /// The limit on the 90th percentile of the response time; above the limit, the instance rejects
    /// items.
    pub above: Expr,
    /// The port that receives rejected items.
    pub to: Option<End>,
    /// The position.
    pub span: Span,
}

/// A bound on the number of items inside a set of instances.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitRule {
    /// The bound, in items.
    pub count: Expr,
    /// The instances.
    pub names: Vec<Name>,
    /// The position.
    pub span: Span,
}

/// Statements that apply under a condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The condition.
    pub condition: Expr,
    /// The statements that apply if the condition is true.
    pub then: Vec<Statement>,
    /// The statements that apply if the condition is false.
    pub otherwise: Vec<Statement>,
}

/// An instance or a port that a step of a test names, such as `read`, `read.failed` or `i.read`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestEnd {
    /// The names between the dots, at least one: graphs inside each other, an instance, and a port.
    pub names: Vec<Name>,
}

impl TestEnd {
    /// Returns the position of the whole end.
    #[must_use]
    pub fn span(&self) -> Span {
        let span = |name: Option<&Name>| name.map(|name| name.span).unwrap_or_default();
        span(self.names.first()).to(span(self.names.last()))
    }

    /// Returns the first names, separated by dots.
    #[must_use]
    pub fn first(&self, count: usize) -> String {
        let names = self.names[..count].iter().map(|name| name.text.as_str());
        names.collect::<Vec<_>>().join(".")
    }
}

/// A test of a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct TestCase {
    /// The name.
    pub name: String,
    /// The position of the test's name.
    pub span: Span,
    /// The graph.
    pub graph: Name,
    /// The arguments of the graph.
    pub args: Vec<Arg>,
    /// The steps.
    pub steps: Vec<TestStep>,
}

/// A step of a test.
#[derive(Clone, Debug, PartialEq)]
pub enum TestStep {
    /// `replace name with Module<Type>(..)`
    Replace {
        /// The instance. A name with dots refers to an instance inside a nested graph.
        name: TestEnd,
        /// The module that replaces the instance's module.
        module: Path,
        /// The type arguments, if the module is generic.
        types: Vec<TypeRef>,
        /// The arguments.
        args: Vec<Arg>,
    },
    /// `send end value, value`
    Send {
        /// The input that receives the items, or the output from which they appear to come.
        to: TestEnd,
        /// The items.
        values: Vec<Expr>,
    },
    /// `expect end value within time`
    Expect {
        /// The port.
        at: TestEnd,
        /// The expected items; empty for `expect nothing at end`.
        values: Vec<Expr>,
        /// The time within which the items must arrive.
        within: Option<Expr>,
    },
    /// `advance time`
    Advance(Expr),
    /// `drain`
    Drain(Span),
}
