//! The ports of a graph that runs alone: nothing leads to them, and nothing comes from them.

use tussah_weave::{Diagnostic, Graph, Plan};

/// Returns an error for each instance that needs an edge where the graph has only a port of its
/// own. `check` reports the same in a graph that contains this one.
pub(super) fn unconnected(graph: &Graph, plan: &Plan) -> Vec<Diagnostic> {
    let mut errors = Vec::new();
    for (place, planned) in plan.nodes.iter().enumerate() {
        let mut nodes = graph.nodes.iter();
        let Some(node) = nodes.find(|it| it.name == planned.name && it.span == planned.span) else {
            continue;
        };
        let inputs = plan.inputs.iter();
        let mut inputs = inputs.filter(|boundary| boundary.inner.node == place);
        let is_fed = plan.edges.iter().any(|edge| edge.to.node == place)
            || plan.sheds.iter().any(|shed| {
                let to = shed.to.as_ref();
                to.is_some_and(|to| to.node == place)
            });
        if node.needs_input && !is_fed {
            let message = format!("no edge leads to `{}`", node.name);
            let mut error = Diagnostic::error(node.span, message);
            error.label = "it receives nothing".to_owned();
            let boundary = inputs.next();
            error.help = boundary.map(|boundary| help(graph, "input", &boundary.port));
            errors.push(error);
        }
        for boundary in &plan.outputs {
            let (inner, port) = (&boundary.inner, &boundary.inner.port);
            let mut edges = plan.edges.iter();
            let is_required = inner.node == place && node.needs_outputs.contains(port);
            if is_required && !edges.any(|edge| edge.from == *inner) {
                let message = format!("the output `{port}` of `{}` must be connected", node.name);
                let mut error = Diagnostic::error(node.span, message);
                error.help = Some(help(graph, "output", &boundary.port));
                errors.push(error);
            }
        }
    }
    errors
}

fn help(graph: &Graph, kind: &str, port: &str) -> String {
    let name = &graph.name;
    format!(
        "the {kind} `{port}` of `{name}` has no edge if `{name}` runs alone; run a graph that \
         contains it"
    )
}
