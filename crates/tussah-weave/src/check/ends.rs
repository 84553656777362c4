//! Ends of edges: the ports that they stand for.

use super::build::Builder;
use super::scope::{Content, Place};
use crate::diagnostic::Diagnostic;
use crate::expr::Expr;
use crate::graph::{Group, PortRef, Via};
use crate::modules::PortSignature;
use crate::suggest;
use crate::token::Span;
use crate::tree::End;

/// The default input of a module.
pub(crate) const RUN: &str = "run";
/// The default output of a module, and of a graph.
pub(crate) const OUT: &str = "out";
/// The output of a module's items that were not handled.
pub(crate) const DROPPED: &str = "dropped";
/// The default input of a graph.
pub(super) const IN: &str = "in";

/// The direction of a port, seen from its node.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Direction {
    Input,
    Output,
}

/// A port that an end of an edge stands for.
pub(super) struct Port {
    pub(super) port: PortRef,
    /// The instance, for its branches.
    pub(super) entity: usize,
    pub(super) via: Option<Via>,
    pub(super) after: Option<Expr>,
    pub(super) condition: Option<Expr>,
    /// The position of the edge inside an inner graph that the port comes from.
    pub(super) inside: Option<Span>,
}

/// An end of an edge, resolved.
pub(super) enum Side {
    Ports(Vec<Port>),
    /// A port of the graph itself.
    Graph(String),
}

impl Builder<'_, '_> {
    /// Resolves an end of an edge. Returns `None` if it has reported an error.
    pub(super) fn side(&mut self, end: &End, direction: Direction, place: &Place) -> Option<Side> {
        let own = match direction {
            Direction::Output => IN,
            Direction::Input => OUT,
        };
        let name = end.name.text.as_str();
        if name == own {
            let port = end.port.as_ref().map_or(own, |port| port.text.as_str());
            return Some(Side::Graph(port.to_owned()));
        }
        if name == IN || name == OUT {
            let message = match direction {
                Direction::Output => "no edge begins at `out`, where items leave the graph",
                Direction::Input => "no edge ends at `in`, where items enter the graph",
            };
            self.report(Diagnostic::error(end.span(), message));
            return None;
        }
        let mut ports = Vec::new();
        let found = self.find(&end.name, place);
        for entity in found {
            let content = self.scope.entities[entity].content.clone();
            match content {
                Content::Unknown => {}
                Content::Node(node) => {
                    let default = if direction == Direction::Input {
                        RUN
                    } else {
                        OUT
                    };
                    let port = end.port.as_ref().map_or(default, |port| port.text.as_str());
                    self.check_port(node, end, port, direction)?;
                    let port = PortRef {
                        node,
                        port: port.to_owned(),
                    };
                    ports.push(Port {
                        port,
                        entity,
                        via: None,
                        after: None,
                        condition: None,
                        inside: None,
                    });
                }
                Content::Graph(inner) => {
                    let found = self.inner_ports(&inner, end, direction, entity)?;
                    ports.extend(found);
                }
            }
        }
        (!ports.is_empty()).then_some(Side::Ports(ports))
    }

    /// Reports a port that the module of a node does not have.
    fn check_port(
        &mut self,
        node: usize,
        end: &End,
        port: &str,
        direction: Direction,
    ) -> Option<()> {
        let module = self.graph.nodes[node].module.clone();
        let Some(signature) = self.checker.signature(&module) else {
            return Some(());
        };
        let (ports, others, kind) = match direction {
            Direction::Input => (&signature.inputs, &signature.outputs, "input"),
            Direction::Output => (&signature.outputs, &signature.inputs, "output"),
        };
        let is_port =
            |ports: &[PortSignature], name: &str| ports.iter().any(|port| port.name == name);
        if is_port(ports, port) {
            return Some(());
        }
        let instance = &end.name.text;
        let names = || ports.iter().map(|port| port.name.as_str());
        let span = end.port.as_ref().map_or(end.name.span, |port| port.span);
        let error = if ports.is_empty() {
            Diagnostic::error(end.span(), format!("`{instance}` has no {kind}s"))
                .label(format!("an instance of `{module}`"))
        } else if is_port(others, port) {
            let other = if kind == "input" { "output" } else { "input" };
            let message = format!("`{port}` is an {other} of `{instance}`, expected an {kind}");
            Diagnostic::error(span, message).help(format!("{kind}s: {}", suggest::list(names())))
        } else if end.port.is_none() {
            let message = format!("`{instance}` has no default {kind} `{port}`");
            Diagnostic::error(span, message).help(format!("{kind}s: {}", suggest::list(names())))
        } else {
            let mut error = Diagnostic::error(span, format!("`{instance}` has no {kind} `{port}`"))
                .label(format!("an instance of `{module}`"));
            error.help = match suggest::nearest(port, names()) {
                Some(near) => Some(format!("did you mean `{near}`?")),
                None => Some(format!("{kind}s: {}", suggest::list(names()))),
            };
            error
        };
        self.report(error);
        None
    }

    /// Returns the ports inside a graph that one of its own ports stands for.
    fn inner_ports(
        &mut self,
        inner: &Group,
        end: &End,
        direction: Direction,
        entity: usize,
    ) -> Option<Vec<Port>> {
        let (boundaries, default, kind) = match direction {
            Direction::Input => (&inner.inputs, IN, "input"),
            Direction::Output => (&inner.outputs, OUT, "output"),
        };
        let port = end.port.as_ref().map_or(default, |port| port.text.as_str());
        let found = boundaries.iter().filter(|boundary| boundary.port == port);
        let ports: Vec<Port> = found
            .map(|boundary| Port {
                port: boundary.inner.clone(),
                entity,
                via: boundary.via.clone(),
                after: boundary.after.clone(),
                condition: boundary.condition.clone(),
                inside: Some(boundary.span),
            })
            .collect();
        if !ports.is_empty() {
            return Some(ports);
        }
        // The port may be that of an edge that has an error inside the graph.
        if self.checker.broken.contains(&inner.graph) {
            self.is_broken = true;
            return None;
        }
        let names = || boundaries.iter().map(|boundary| boundary.port.as_str());
        let span = end.port.as_ref().map_or(end.name.span, |port| port.span);
        let message = format!("`{}` has no {kind} `{port}`", end.name.text);
        let error = Diagnostic::error(span, message)
            .label(format!("an instance of the graph `{}`", inner.graph));
        let help = match suggest::nearest(port, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if boundaries.is_empty() => match direction {
                Direction::Input => format!("`{}` has no edge that begins at `in`", inner.graph),
                Direction::Output => format!("`{}` has no edge that ends at `out`", inner.graph),
            },
            None => format!("{kind}s: {}", suggest::list(names())),
        };
        self.report(error.help(help));
        None
    }

    /// Resolves the target of a `shed` rule.
    pub(super) fn shed_targets(&mut self, end: &End, place: &Place) -> Vec<PortRef> {
        if end.name.text == OUT {
            let message = "rejected items go to an instance";
            self.report(Diagnostic::error(end.span(), message));
            return Vec::new();
        }
        match self.side(end, Direction::Input, place) {
            Some(Side::Ports(ports)) => ports.into_iter().map(|port| port.port).collect(),
            _ => Vec::new(),
        }
    }
}
