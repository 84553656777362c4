//! The fields of items that a graph names.

use super::build::Builder;
use super::unify::{NodeTypes, Unifier, has_variable};
use crate::diagnostic::Diagnostic;
use crate::graph::{Arg, Shards};
use crate::modules::Modules;
use crate::suggest;
use crate::value::Value;

/// Checks that the items of each instance have the fields that choose shards, and those that
/// arguments name.
pub(super) fn check(
    builder: &mut Builder<'_, '_>,
    nodes: &[Option<NodeTypes<'_>>],
    unifier: &Unifier,
) {
    let Some(modules) = builder.checker.modules else {
        return;
    };
    for (index, types) in nodes.iter().enumerate() {
        let Some(types) = types else {
            continue;
        };
        let node = &builder.graph.nodes[index];
        let mut errors = args(modules, types, &node.args, unifier);
        if let Some(of_shards) = &node.shards {
            errors.extend(shards(modules, types, of_shards, unifier));
        }
        errors.into_iter().for_each(|error| builder.report(error));
    }
}

/// Returns errors for the input ports whose items do not have the field that chooses the shard.
fn shards(
    modules: &Modules,
    types: &NodeTypes<'_>,
    shards: &Shards,
    unifier: &Unifier,
) -> Vec<Diagnostic> {
    let Some(field) = &shards.by else {
        return Vec::new();
    };
    let errors = types.signature.inputs.iter().filter_map(|port| {
        let item = unifier.resolve(&types.item(port));
        let fields = modules.fields(&item);
        if has_variable(&item) || fields.contains(field) {
            return None;
        }
        let message = format!(
            "`{item}`, the item of the input `{}`, has no field `{field}`",
            port.name
        );
        let mut error = Diagnostic::error(shards.span, message);
        error.help = match fields.is_empty() {
            true => Some(format!("`{item}` has no fields that a graph can name")),
            false => suggest::help(field, fields.iter().map(String::as_str)),
        };
        Some(error)
    });
    errors.collect()
}

/// Returns errors for the constant arguments that name a field which the items do not have. Skips
/// items whose fields are unknown.
pub(super) fn args(
    modules: &Modules,
    types: &NodeTypes<'_>,
    args: &[Arg],
    unifier: &Unifier,
) -> Vec<Diagnostic> {
    let signature = types.signature;
    let errors = signature.params.iter().filter_map(|param| {
        let item = types.replace(param.domain.field_of.as_ref()?);
        let item = unifier.resolve(&item);
        let fields = modules.fields(&item);
        let mut args = args.iter();
        let arg = args.find(|arg| arg.name.as_ref() == Some(&param.name))?;
        let Ok(Value::Text(field)) = arg.value.eval(&|_| None) else {
            return None;
        };
        if has_variable(&item) || fields.is_empty() || fields.contains(&field) {
            return None;
        }
        let module = signature.name.rsplit("::").next().unwrap_or_default();
        let message = format!(
            "`{}` of `{module}` is {field:?}, but `{item}` has no such field",
            param.name
        );
        let known = fields.iter().map(String::as_str);
        let list = suggest::list(known.clone());
        let mut error = Diagnostic::error(arg.value.span, message).label(format!("fields: {list}"));
        if let Some(near) = suggest::nearest(&field, known) {
            error = error.help(format!("did you mean \"{near}\"?"));
        }
        Some(error)
    });
    errors.collect()
}
