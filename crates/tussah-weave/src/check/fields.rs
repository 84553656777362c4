//! The fields of items that a graph names.

use std::collections::BTreeSet;

use super::build::Builder;
use super::unify::{NodeTypes, Unifier, has_variable};
use crate::diagnostic::Diagnostic;
use crate::suggest;

/// Checks that the items of sharded instances have the field that chooses the shard.
pub(super) fn check(
    builder: &mut Builder<'_, '_>,
    nodes: &[Option<NodeTypes<'_>>],
    unifier: &Unifier,
) {
    let Some(modules) = builder.checker.modules else {
        return;
    };
    for (index, node) in nodes.iter().enumerate() {
        let Some(node) = node else {
            continue;
        };
        let shards = builder.graph.nodes[index].shards.clone();
        let Some((shards, field)) = shards.and_then(|shards| Some((shards.span, shards.by?)))
        else {
            continue;
        };
        for port in &node.signature.inputs {
            let item = unifier.resolve(&node.item(port));
            if has_variable(&item) {
                continue;
            }
            let fields = modules
                .items
                .get(&item.to_string())
                .or_else(|| modules.items.get(&item.short().to_string()));
            let fields: BTreeSet<&str> = fields.into_iter().flatten().map(String::as_str).collect();
            if fields.contains(field.as_str()) {
                continue;
            }
            let message = format!(
                "`{item}`, the item of the input `{}`, has no field `{field}`",
                port.name
            );
            let mut error = Diagnostic::error(shards, message);
            error.help = match fields.is_empty() {
                true => Some(format!("`{item}` has no fields that a graph can name")),
                false => suggest::help(&field, fields),
            };
            builder.report(error);
        }
    }
}
