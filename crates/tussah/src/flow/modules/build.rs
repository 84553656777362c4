//! Builds a graph from a plan, which the checks of Weave have made.

use tussah_weave::{Plan, PlanEdge, PlanNode, PlanShards, PlanVia, PortRef, Span, Value};

use super::{Add, Modules, Params};
use crate::flow::args::Args;
use crate::flow::graph::Graph;
use crate::flow::via::{Via, WhenFull};

impl Modules {
    /// Creates a graph from a plan. `at` returns the source position of a span.
    ///
    /// # Errors
    /// Returns the reason and the position if a part of the plan is not supported, or if an
    /// argument is invalid.
    pub(in crate::flow) fn build(
        &self,
        plan: &Plan,
        params: &Params,
        at: &dyn Fn(Span) -> String,
    ) -> Result<Graph, (String, Span)> {
        let mut graph = Graph::new(plan.name.clone());
        for node in &plan.nodes {
            graph.set_position(Some(at(node.span).into()));
            let args = arguments(node, params).map_err(|why| (why, node.span))?;
            let add = self.find(node).map_err(|why| (why, node.span))?;
            let added = match &node.shards {
                None => add(&mut graph, &node.name, args),
                Some(PlanShards { count, by }) => {
                    let add = |graph: &mut Graph, name: &str| add(graph, name, args.clone());
                    graph.add_group(&node.name, *count as usize, by.as_deref(), add)
                }
            };
            added.map_err(|error| (error.to_string(), node.span))?;
        }
        graph.set_position(None);
        for limit in &plan.limits {
            let nodes = limit.nodes.iter().map(|&node| &*plan.nodes[node].name);
            graph
                .limit(limit.count as usize, &nodes.collect::<Vec<_>>())
                .map_err(|error| (error.to_string(), limit.span))?;
        }
        for edge in &plan.edges {
            let via = via(edge, plan);
            graph
                .connect_via(&end(plan, &edge.from), &end(plan, &edge.to), via)
                .map_err(|error| (error.to_string(), edge.span))?;
        }
        for shed in &plan.sheds {
            let name = &plan.nodes[shed.node].name;
            let result = graph
                .target(name, shed.above)
                .and_then(|()| match &shed.to {
                    None => Ok(()),
                    Some(to) => graph.connect(&format!("{name}.dropped"), &end(plan, to)),
                });
            result.map_err(|error| (error.to_string(), shed.span))?;
        }
        Ok(graph)
    }

    /// Returns the function that adds the module of a node.
    fn find(&self, node: &PlanNode) -> Result<Add, String> {
        let chosen = self.signatures.choose(&node.module, &node.types)?;
        Ok(self.add[&node.module][chosen].1)
    }
}

fn end(plan: &Plan, port: &PortRef) -> String {
    format!("{}.{}", plan.nodes[port.node].name, port.port)
}

fn arguments(node: &PlanNode, params: &Params) -> Result<Args, String> {
    let mut args = Args::new();
    for arg in &node.args {
        let name = arg.name.as_deref().expect("signatures name all arguments");
        args = match &arg.value {
            Value::Rust(param) => match params.typed.copy(param, name) {
                Some(one) => args.and(one),
                None => {
                    return Err(format!(
                        "the parameter `{param}` has a Rust type, and no value: expected one by `Params::typed`"
                    ));
                }
            },
            value => args.with(name, value.clone()),
        };
    }
    Ok(args)
}

fn via(edge: &PlanEdge, plan: &Plan) -> Via {
    let via = match edge.via {
        PlanVia::Call => Via::call(),
        PlanVia::Queue { room, when_full } => {
            let via = room.map_or_else(Via::default, Via::queue);
            match (when_full, limit_of_cycle(edge, plan)) {
                // An edge that closes a cycle may not wait. It has room for all items inside.
                (tussah_weave::WhenFull::Wait, Some(count)) => {
                    let room = via.room.max(count);
                    Via::queue(room).when_full(WhenFull::Shed)
                }
                (tussah_weave::WhenFull::Wait, None) => via,
                (tussah_weave::WhenFull::Shed, _) => via.when_full(WhenFull::Shed),
                (tussah_weave::WhenFull::DropOldest, _) => via.when_full(WhenFull::DropOldest),
            }
        }
    };
    match edge.after {
        None => via,
        Some(delay) => via.after(delay),
    }
}

/// Returns the limit around the cycle that the edge closes.
fn limit_of_cycle(edge: &PlanEdge, plan: &Plan) -> Option<u64> {
    let inside = |nodes: &[usize], end: &PortRef| nodes.contains(&end.node);
    let mut limits = plan.limits.iter().filter(|_| edge.back);
    let limit =
        limits.find(|limit| inside(&limit.nodes, &edge.from) && inside(&limit.nodes, &edge.to));
    limit.map(|limit| limit.count)
}
