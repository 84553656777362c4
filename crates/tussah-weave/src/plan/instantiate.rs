//! The evaluation of a graph's expressions, which makes its plan.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{
    Plan, PlanArg, PlanBoundary, PlanEdge, PlanLimit, PlanNode, PlanShards, PlanShed, PlanVia,
};
use crate::check::ends::{DROPPED, OUT, RUN};
use crate::check::instance::SHARDS_MAX;
use crate::check::ports::two_ways;
use crate::diagnostic::Diagnostic;
use crate::expr::Expr;
use crate::graph::{Arg, Boundary, Edge, Graph, Node, PortRef, Via};
use crate::suggest;
use crate::token::Span;
use crate::value::{Kind, Value};

impl Graph {
    /// Creates a plan: assigns values to the parameters, and evaluates conditions, shards and
    /// arguments.
    ///
    /// # Errors
    ///
    /// Returns an error if a parameter has no value or a value of the wrong kind, or if an
    /// expression cannot be evaluated. Also returns an error if conditions leave a required port
    /// unconnected, create the same edge twice, or give the rejected items of an instance two
    /// destinations.
    pub fn instantiate(
        &self,
        args: &BTreeMap<String, Value>,
        workers: u64,
    ) -> Result<Plan, Vec<Diagnostic>> {
        let mut planner = Planner {
            graph: self,
            values: BTreeMap::from([("workers".to_owned(), Value::Count(workers))]),
            diagnostics: Vec::new(),
        };
        planner.params(args);
        if !planner.diagnostics.is_empty() {
            return Err(planner.diagnostics);
        }
        let plan = planner.plan();
        match planner.diagnostics.is_empty() {
            true => Ok(plan),
            false => Err(planner.diagnostics),
        }
    }
}

struct Planner<'g> {
    graph: &'g Graph,
    values: BTreeMap<String, Value>,
    diagnostics: Vec<Diagnostic>,
}

impl Planner<'_> {
    fn params(&mut self, args: &BTreeMap<String, Value>) {
        for name in args.keys() {
            if self.graph.params.iter().all(|param| param.name != *name) {
                let message = format!("`{}` has no parameter `{name}`", self.graph.name);
                let known = self.graph.params.iter().map(|param| param.name.as_str());
                let mut error = Diagnostic::error(self.graph.span, message);
                error.help = suggest::help(name, known);
                self.diagnostics.push(error);
            }
        }
        for param in &self.graph.params {
            let value = match (args.get(&param.name), &param.default) {
                (Some(value), _) => value.clone(),
                (None, Some(default)) => match self.eval(default) {
                    Some(value) => value,
                    None => continue,
                },
                (None, None) => {
                    let message = format!(
                        "the parameter `{}: {}` has no value",
                        param.name, param.kind
                    );
                    self.diagnostics
                        .push(Diagnostic::error(param.span, message));
                    continue;
                }
            };
            self.set(&param.name, value, &param.kind, param.span);
        }
    }

    fn set(&mut self, name: &str, value: Value, kind: &Kind, span: Span) {
        match value.convert(kind) {
            Ok(value) => {
                self.values.insert(name.to_owned(), value);
            }
            Err(error) => {
                let message = format!("the parameter `{name}`: {error}");
                self.diagnostics.push(Diagnostic::error(span, message));
            }
        }
    }

    fn eval(&mut self, expr: &Expr) -> Option<Value> {
        match expr.eval(&|name| self.values.get(name).cloned()) {
            Ok(value) => Some(value),
            Err(error) => {
                self.diagnostics
                    .push(Diagnostic::error(error.span, error.to_string()));
                None
            }
        }
    }

    fn eval_as(&mut self, expr: &Expr, kind: &Kind) -> Option<Value> {
        match self.eval(expr)?.convert(kind) {
            Ok(value) => Some(value),
            Err(error) => {
                self.diagnostics
                    .push(Diagnostic::error(expr.span, error.to_string()));
                None
            }
        }
    }

    /// Evaluates a count that must not be zero.
    fn count(&mut self, expr: &Expr, what: &str) -> Option<u64> {
        match self.eval_as(expr, &Kind::Count)? {
            Value::Count(0) => {
                let message = format!("{what} is 0, expected at least 1");
                self.diagnostics.push(Diagnostic::error(expr.span, message));
                None
            }
            Value::Count(count) => Some(count),
            _ => None,
        }
    }

    fn duration(&mut self, expr: &Expr) -> Option<Duration> {
        match self.eval_as(expr, &Kind::Duration)? {
            Value::Duration(time) => Some(time),
            _ => None,
        }
    }

    fn holds(&mut self, condition: &Option<Expr>) -> bool {
        match condition {
            None => true,
            Some(condition) => self.eval_as(condition, &Kind::Flag) == Some(Value::Flag(true)),
        }
    }

    fn plan(&mut self) -> Plan {
        let graph = self.graph;
        // The new index of each node that exists.
        let mut indices: Vec<Option<usize>> = Vec::with_capacity(graph.nodes.len());
        let mut plan = Plan {
            name: graph.name.clone(),
            ..Plan::default()
        };
        for node in &graph.nodes {
            let exists = self.holds(&node.condition);
            indices.push(exists.then_some(plan.nodes.len()));
            if exists {
                let node = self.node(node);
                plan.nodes.push(node);
            }
        }
        let port = |port: &PortRef| {
            let node = indices[port.node]?;
            let port = port.port.clone();
            Some(PortRef { node, port })
        };
        for edge in &graph.edges {
            let (Some(from), Some(to)) = (port(&edge.from), port(&edge.to)) else {
                continue;
            };
            if self.holds(&edge.condition) {
                plan.edges.extend(self.edge(edge, from, to));
            }
        }
        for shed in &graph.sheds {
            let Some(node) = indices[shed.node].filter(|_| self.holds(&shed.condition)) else {
                continue;
            };
            let above = self.duration(&shed.above);
            plan.sheds.extend(above.map(|above| PlanShed {
                node,
                above,
                to: shed.to.as_ref().and_then(&port),
                span: shed.span,
            }));
        }
        for limit in &graph.limits {
            let nodes: Vec<usize> = limit
                .nodes
                .iter()
                .filter_map(|&node| indices[node])
                .collect();
            if nodes.is_empty() || !self.holds(&limit.condition) {
                continue;
            }
            let span = limit.span;
            let count = self.count(&limit.count, "the limit");
            plan.limits
                .extend(count.map(|count| PlanLimit { count, nodes, span }));
        }
        plan.inputs = self.boundaries(&graph.inputs, &port);
        plan.outputs = self.boundaries(&graph.outputs, &port);
        // An edge that is wrong is missing from the plan.
        if self.diagnostics.is_empty() {
            self.check_connections(&indices, &plan);
            self.check_rejected(&plan);
            self.check_twice(&plan);
        }
        plan
    }

    fn node(&mut self, node: &Node) -> PlanNode {
        let args = node.args.iter().filter_map(|arg| self.arg(arg)).collect();
        let shards = node.shards.as_ref().and_then(|shards| {
            let count = self.count(&shards.count, "the number of shards")?;
            if count > SHARDS_MAX {
                let message =
                    format!("the number of shards is {count}, expected at most {SHARDS_MAX}");
                let error = Diagnostic::error(shards.count.span, message);
                self.diagnostics.push(error);
                return None;
            }
            let by = shards.by.clone();
            Some(PlanShards { count, by })
        });
        PlanNode {
            name: node.name.clone(),
            module: node.module.clone(),
            types: node.types.clone(),
            args,
            shards,
            doc: node.doc.clone(),
            span: node.span,
        }
    }

    fn arg(&mut self, arg: &Arg) -> Option<PlanArg> {
        let value = match &arg.kind {
            Some(kind) => self.eval_as(&arg.value, kind)?,
            None => self.eval(&arg.value)?,
        };
        let name = arg.name.clone();
        let span = arg.span;
        Some(PlanArg { name, value, span })
    }

    fn edge(&mut self, edge: &Edge, from: PortRef, to: PortRef) -> Option<PlanEdge> {
        let (one, other) = (&edge.from, &edge.to);
        let (one, other) = (self.graph.spell(one, OUT), self.graph.spell(other, RUN));
        let text = format!("{one} -> {other}");
        Some(PlanEdge {
            from,
            to,
            via: self.via(&edge.via)?,
            after: edge.after.as_ref().and_then(|after| self.duration(after)),
            back: edge.back,
            item: edge.item.clone(),
            span: edge.span,
            text,
        })
    }

    fn via(&mut self, via: &Via) -> Option<PlanVia> {
        Some(match via {
            Via::Call | Via::Fused => PlanVia::Call,
            Via::Queue { room, when_full } => PlanVia::Queue {
                room: match room {
                    Some(room) => Some(self.count(room, "the room of a queue")?),
                    None => None,
                },
                when_full: *when_full,
            },
        })
    }

    fn boundaries(
        &mut self,
        boundaries: &[Boundary],
        port: &dyn Fn(&PortRef) -> Option<PortRef>,
    ) -> Vec<PlanBoundary> {
        let mut planned = Vec::new();
        for boundary in boundaries {
            let Some(inner) = port(&boundary.inner) else {
                continue;
            };
            if self.holds(&boundary.condition) {
                planned.push(PlanBoundary {
                    port: boundary.port.clone(),
                    inner,
                    via: boundary.via.as_ref().and_then(|via| self.via(via)),
                    after: boundary
                        .after
                        .as_ref()
                        .and_then(|after| self.duration(after)),
                    span: boundary.span,
                });
            }
        }
        planned
    }

    /// Reports two ways for the rejected items of an instance, both of which have conditions.
    fn check_rejected(&mut self, plan: &Plan) {
        for shed in plan.sheds.iter().filter(|shed| shed.to.is_some()) {
            let is_dropped = |from: &PortRef| from.node == shed.node && from.port == DROPPED;
            let edges = plan.edges.iter().filter(|edge| is_dropped(&edge.from));
            let outputs = plan.outputs.iter().filter(|it| is_dropped(&it.inner));
            let mut spans = edges.map(|edge| edge.span).chain(outputs.map(|it| it.span));
            if let Some(span) = spans.next() {
                let error = two_ways(&plan.nodes[shed.node].name, shed.span, span);
                self.diagnostics.push(error);
            }
        }
    }

    /// Reports an edge that exists twice, each time under another condition.
    fn check_twice(&mut self, plan: &Plan) {
        let mut edges = BTreeMap::new();
        for edge in &plan.edges {
            if let Some(first) = edges.insert((&edge.from, &edge.to), edge.span) {
                let message = "this edge exists twice with these parameters";
                let error = Diagnostic::error(edge.span, message);
                self.diagnostics
                    .push(error.other(first, "it exists here first"));
            }
        }
    }

    /// Reports ports that must be connected. Conditions may have removed their edges.
    fn check_connections(&mut self, indices: &[Option<usize>], plan: &Plan) {
        let cause = match self.graph.params.is_empty() {
            true => "",
            false => " with these parameters",
        };
        for (node, index) in self.graph.nodes.iter().zip(indices) {
            let Some(index) = *index else {
                continue;
            };
            let has_input = plan.edges.iter().any(|edge| edge.to.node == index)
                || plan
                    .inputs
                    .iter()
                    .any(|boundary| boundary.inner.node == index)
                || plan
                    .sheds
                    .iter()
                    .any(|shed| shed.to.as_ref().is_some_and(|to| to.node == index));
            if node.needs_input && !has_input {
                let message = format!("no edge leads to `{}`{cause}", node.name);
                self.diagnostics.push(Diagnostic::error(node.span, message));
            }
            for port in &node.needs_outputs {
                let from = PortRef {
                    node: index,
                    port: port.clone(),
                };
                let is_connected = plan.edges.iter().any(|edge| edge.from == from)
                    || plan.outputs.iter().any(|boundary| boundary.inner == from);
                if !is_connected {
                    let message = format!(
                        "the output `{port}` of `{}` is not connected{cause}",
                        node.name
                    );
                    self.diagnostics.push(Diagnostic::error(node.span, message));
                }
            }
        }
    }
}
