//! Items that leave along two edges, which therefore have to be cloned.

use super::build::Builder;
use super::ends::OUT;
use crate::diagnostic::Diagnostic;

/// Reports outputs with two edges whose items cannot be cloned.
pub(super) fn check(builder: &mut Builder<'_, '_>) {
    for (first, second) in builder.graph.copies() {
        let graph = &builder.graph;
        let [first, second] = [first, second].map(|number| &graph.edges[number]);
        let signature = builder
            .checker
            .signature(&graph.nodes[second.from.node].module);
        let port = signature.and_then(|signature| signature.output(&second.from.port));
        // Without its item, the port of an edge has another error.
        let (Some(port), Some(item)) = (port, &second.item) else {
            continue;
        };
        if port.clones {
            continue;
        }
        let from = graph.spell(&second.from, OUT);
        let message = format!("`{from}` has two edges, but its item `{item}` cannot be cloned");
        let help = match port.item == *item {
            true => "derive `Clone` for the item, or send an `Arc` of it".to_owned(),
            // A generic module clones its items only if it says so.
            false => format!("add the bound `{}: Clone` to the module", port.item),
        };
        let error = Diagnostic::error(second.span, message)
            .label("the second edge")
            .other(first.span, "the first edge")
            .help(help);
        builder.report(error);
    }
}
