//! The types of items. The types of connected ports are unified.

use super::Checker;
use super::build::Builder;
use super::ends::{DROPPED, OUT, RUN};
use super::fields;
use crate::diagnostic::Diagnostic;
use crate::modules::{PortSignature, Signature};
use crate::suggest;
use crate::token::Span;
use crate::types::{Type, is_same_name};

/// Determines the types of edges and nodes. Reports types that differ.
pub(super) fn types(builder: &mut Builder<'_, '_>) {
    if builder.checker.modules.is_none() {
        return;
    }
    let mut unifier = Unifier::default();
    let nodes = node_variables(builder, &mut unifier);
    let mut is_determined = vec![true; nodes.len()];
    for index in 0..builder.graph.edges.len() {
        let edge = builder.graph.edges[index].clone();
        let find = |port: &crate::PortRef, is_input: bool| {
            let node = nodes[port.node].as_ref()?;
            node.port(&port.port, is_input)
        };
        let (Some(from), Some(to)) = (find(&edge.from, false), find(&edge.to, true)) else {
            is_determined[edge.from.node] = false;
            is_determined[edge.to.node] = false;
            continue;
        };
        if unifier.unify(&from, &to) {
            builder.graph.edges[index].item = Some(from);
            continue;
        }
        is_determined[edge.from.node] = false;
        is_determined[edge.to.node] = false;
        let graph = &builder.graph;
        let message = unifier.differ(
            (&graph.spell(&edge.from, OUT), &from),
            (&graph.spell(&edge.to, RUN), &to),
        );
        let (from, to) = (unifier.shown(&from), unifier.shown(&to));
        let error = Diagnostic::error(edge.span, message).label("this edge");
        let sender = builder.graph.nodes[edge.from.node].span;
        let receiver = builder.graph.nodes[edge.to.node].span;
        let error = error.other(sender, format!("sends `{from}`"));
        builder.report(error.other(receiver, format!("expects `{to}`")));
    }
    sheds(builder, &nodes, &mut unifier);
    for edge in &mut builder.graph.edges {
        edge.item = edge.item.as_ref().map(|item| unifier.resolve(item));
    }
    for (index, node) in nodes.iter().enumerate() {
        let Some(node) = node else {
            continue;
        };
        let (types, missing) = node.resolve(&unifier);
        if !missing.is_empty() && is_determined[index] && !builder.is_broken {
            report_undetermined(builder, index, &missing);
        }
        if missing.is_empty() && is_determined[index] {
            let span = builder.graph.nodes[index].span;
            builder.checker.check_types(node.signature, &types, span);
        }
        builder.graph.nodes[index].types = types;
    }
    fields::check(builder, &nodes, &unifier);
}

fn report_undetermined(builder: &mut Builder<'_, '_>, index: usize, missing: &[&str]) {
    let node = &builder.graph.nodes[index];
    // A graph of its own may leave a type to the graphs around it.
    let is_open = |boundaries: &[crate::Boundary]| {
        boundaries
            .iter()
            .any(|boundary| boundary.inner.node == index)
    };
    let graph = &builder.graph;
    if is_open(&graph.inputs) || is_open(&graph.outputs) {
        return;
    }
    let last = node.module.rsplit("::").next().unwrap_or_default();
    let message = format!(
        "no edge determines {} of `{}`",
        suggest::list(missing.iter().copied()),
        node.name
    );
    let help = format!("connect it, or write the type: `{last}<..>`");
    let error = Diagnostic::error(node.module_span, message).help(help);
    builder.report(error);
}

impl Checker<'_> {
    /// Reports a generic module that does not exist for these types.
    pub(super) fn check_types(&mut self, module: &Signature, types: &[Type], span: Span) {
        let chosen = self
            .modules
            .map(|modules| modules.choose(&module.name, types));
        if let Some(Err(why)) = chosen {
            self.report(Diagnostic::error(span, why));
        }
    }
}

/// A node with a variable for each type parameter.
pub(super) struct NodeTypes<'a> {
    pub(super) signature: &'a Signature,
    variables: Vec<Type>,
}

impl<'a> NodeTypes<'a> {
    pub(super) fn new(signature: &'a Signature, types: &[Type], unifier: &mut Unifier) -> Self {
        let variables = signature.generics.iter().map(|_| unifier.variable());
        let variables: Vec<Type> = variables.collect();
        for (variable, ty) in variables.iter().zip(types) {
            let ty = unifier.open(ty);
            unifier.unify(variable, &ty);
        }
        Self {
            signature,
            variables,
        }
    }

    /// Returns the types for the type parameters, and the names of those that are not determined.
    pub(super) fn resolve(&self, unifier: &Unifier) -> (Vec<Type>, Vec<&'a str>) {
        let types = self.variables.iter().map(|ty| unifier.resolve(ty));
        let types: Vec<Type> = types.collect();
        let missing = types.iter().zip(&self.signature.generics);
        let missing = missing.filter(|(ty, _)| has_variable(ty));
        let missing = missing.map(|(_, name)| name.as_str()).collect();
        (types, missing)
    }

    pub(super) fn port(&self, name: &str, is_input: bool) -> Option<Type> {
        let port = match is_input {
            true => self.signature.input(name),
            false => self.signature.output(name),
        };
        port.map(|port| self.item(port))
    }

    pub(super) fn item(&self, port: &PortSignature) -> Type {
        self.replace(&port.item)
    }

    /// Returns a type of the signature, with the variables in place of the type parameters.
    pub(super) fn replace(&self, ty: &Type) -> Type {
        self.signature.replace(ty, &self.variables)
    }
}

fn node_variables<'a>(
    builder: &Builder<'_, 'a>,
    unifier: &mut Unifier,
) -> Vec<Option<NodeTypes<'a>>> {
    let nodes = builder.graph.nodes.iter().map(|node| {
        let signature = builder.checker.signature(&node.module)?;
        Some(NodeTypes::new(signature, &node.types, unifier))
    });
    nodes.collect()
}

/// Checks the types of rejected items.
fn sheds(builder: &mut Builder<'_, '_>, nodes: &[Option<NodeTypes<'_>>], unifier: &mut Unifier) {
    for index in 0..builder.graph.sheds.len() {
        let shed = builder.graph.sheds[index].clone();
        let Some(to) = &shed.to else {
            continue;
        };
        let (Some(from), Some(target)) = (&nodes[shed.node], &nodes[to.node]) else {
            continue;
        };
        let (Some(dropped), Some(wanted)) =
            (from.port(DROPPED, false), target.port(&to.port, true))
        else {
            continue;
        };
        if unifier.unify(&dropped, &wanted) {
            continue;
        }
        let (dropped, wanted) = (unifier.shown(&dropped), unifier.shown(&wanted));
        let name = builder.graph.nodes[shed.node].name.clone();
        let port = builder.graph.spell(to, RUN);
        let message = format!("`{name}` rejects `{dropped}`, but `{port}` expects `{wanted}`");
        builder.report(Diagnostic::error(shed.span, message));
    }
}

/// The names of variables begin with this character, which no Rust type contains.
const VARIABLE: char = '?';

pub(super) fn has_variable(ty: &Type) -> bool {
    ty.name.starts_with(VARIABLE) || ty.args.iter().any(has_variable)
}

/// Bound, in levels: the maximum depth of two types that are unified. Deeper types do not match,
/// because they grow without limit, as in `T = Vec<T>`.
const DEPTH_MAX: usize = 64;

/// Type variables, with the types that are known for them (Robinson's unification).
#[derive(Default)]
pub(super) struct Unifier {
    bindings: Vec<Option<Type>>,
}

impl Unifier {
    fn variable(&mut self) -> Type {
        self.bindings.push(None);
        Type::new(format!("{VARIABLE}{}", self.bindings.len() - 1))
    }

    fn index(ty: &Type) -> Option<usize> {
        ty.name.strip_prefix(VARIABLE)?.parse().ok()
    }

    /// Returns the type that a variable stands for, if that is known.
    fn shallow(&self, ty: &Type) -> Type {
        let mut ty = ty.clone();
        while let Some(bound) = Self::index(&ty).and_then(|index| self.bindings.get(index)?.clone())
        {
            ty = bound;
        }
        ty
    }

    pub(super) fn unify(&mut self, left: &Type, right: &Type) -> bool {
        self.unify_at(left, right, 0)
    }

    fn unify_at(&mut self, left: &Type, right: &Type, depth: usize) -> bool {
        if depth > DEPTH_MAX {
            return false;
        }
        let (left, right) = (self.shallow(left), self.shallow(right));
        match (Self::index(&left), Self::index(&right)) {
            (Some(left), Some(right)) if left == right => true,
            (Some(variable), _) => self.bind(variable, right),
            (_, Some(variable)) => self.bind(variable, left),
            _ => {
                is_same_name(&left.name, &right.name)
                    && left.args.len() == right.args.len()
                    && (left.args.iter().zip(&right.args))
                        .all(|(left, right)| self.unify_at(left, right, depth + 1))
            }
        }
    }

    fn bind(&mut self, variable: usize, ty: Type) -> bool {
        if self.contains(&ty, variable) {
            return false;
        }
        self.bindings[variable] = Some(ty);
        true
    }

    fn contains(&self, ty: &Type, variable: usize) -> bool {
        let ty = self.shallow(ty);
        Self::index(&ty) == Some(variable) || ty.args.iter().any(|arg| self.contains(arg, variable))
    }

    /// Replaces what a type leaves open by new variables: `_`, and the variables of a graph that
    /// was checked before.
    fn open(&mut self, ty: &Type) -> Type {
        if ty.name == "_" || ty.name.starts_with(VARIABLE) {
            return self.variable();
        }
        Type {
            name: ty.name.clone(),
            args: ty.args.iter().map(|arg| self.open(arg)).collect(),
        }
    }

    /// Returns the message for an edge whose ends, a port and its type each, differ.
    pub(super) fn differ(&self, from: (&str, &Type), to: (&str, &Type)) -> String {
        let types = [self.resolve(from.1), self.resolve(to.1)];
        let [sent, expected] = [self.shown(from.1), self.shown(to.1)];
        let (from, to) = (from.0, to.0);
        let is_inside = |variable: &Type, ty: &Type| {
            Self::index(variable).is_some_and(|variable| self.contains(ty, variable))
        };
        match is_inside(&types[0], &types[1]) || is_inside(&types[1], &types[0]) {
            true => format!(
                "the type of the items from `{from}` to `{to}` contains itself: \
                 `{sent}` is `{expected}`"
            ),
            false => format!("`{from}` sends `{sent}`, but `{to}` expects `{expected}`"),
        }
    }

    /// Returns a type for a message, with `_` for what is not known.
    pub(super) fn shown(&self, ty: &Type) -> Type {
        let ty = self.shallow(ty);
        match Self::index(&ty) {
            Some(_) => Type::new("_"),
            None => Type {
                args: ty.args.iter().map(|arg| self.shown(arg)).collect(),
                name: ty.name,
            },
        }
    }

    /// Replaces the variables whose types are known.
    pub(super) fn resolve(&self, ty: &Type) -> Type {
        let ty = self.shallow(ty);
        Type {
            args: ty.args.iter().map(|arg| self.resolve(arg)).collect(),
            name: ty.name,
        }
    }
}
