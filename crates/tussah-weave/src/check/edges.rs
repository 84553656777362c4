//! Edges: each hop of a chain connects the ports of two nodes.

use super::build::{Builder, PARTS_MAX};
use super::ends::{Direction, Port, Side};
use super::scope::{Place, are_exclusive};
use crate::diagnostic::Diagnostic;
use crate::expr::Expr;
use crate::graph::{Boundary, Edge, Via, WhenFull, may_coexist};
use crate::token::Span;
use crate::tree::{Chain, End, Hop, HopKind};
use crate::value::{Kind, Value};

const NO_DELAY: &str = "a call passes the item at once, so it has no delay";

impl Builder<'_, '_> {
    /// Adds the edges of a chain.
    pub(super) fn chain(&mut self, chain: &Chain, place: &Place) {
        let mut from = chain.first.clone();
        for (index, hop) in chain.hops.iter().enumerate() {
            let is_last = index + 1 == chain.hops.len();
            self.hop(&from, hop, is_last, place);
            from = End {
                name: hop.to.name.clone(),
                port: None,
            };
        }
    }

    fn hop(&mut self, from: &End, hop: &Hop, is_last: bool, place: &Place) {
        let sources = self.side(from, Direction::Output, place);
        let targets = match (hop.to.name.text.as_str(), is_last) {
            ("out", false) => {
                let help = "`out` ends a chain; begin another";
                let message = "`out` is a port of the graph, and nothing follows it";
                self.report(Diagnostic::error(hop.to.span(), message).help(help));
                return;
            }
            _ => self.side(&hop.to, Direction::Input, place),
        };
        let via = self.via(hop);
        let (Some(sources), Some(targets)) = (sources, targets) else {
            return;
        };
        match (sources, targets) {
            (Side::Ports(sources), Side::Ports(targets)) => {
                for source in &sources {
                    for target in &targets {
                        self.edge(from, hop, &via, (source, target), place);
                    }
                }
            }
            (Side::Graph(port), Side::Ports(targets)) => {
                for target in &targets {
                    let boundary = self.boundary(&port, hop, &via, target, place);
                    if self.refuse_same(&boundary, Direction::Input).is_none() {
                        self.graph.inputs.push(boundary);
                    }
                }
            }
            (Side::Ports(sources), Side::Graph(port)) => {
                for source in &sources {
                    let boundary = self.boundary(&port, hop, &via, source, place);
                    if self.refuse_same(&boundary, Direction::Output).is_none() {
                        self.graph.outputs.push(boundary);
                    }
                }
            }
            (Side::Graph(_), Side::Graph(_)) => {
                let span = from.span().to(hop.to.span());
                let message = "an edge from `in` to `out` leads past all instances";
                self.report(Diagnostic::error(span, message));
            }
        }
    }

    /// Checks how items travel along a hop. Returns `None` if the text does not state it.
    fn via(&mut self, hop: &Hop) -> Option<Via> {
        if let Some(after) = &hop.after {
            let wanted = Some(&Kind::Duration);
            self.checker
                .check_value(&mut self.params, after, wanted, "a delay");
        }
        match &hop.kind {
            None => None,
            Some(HopKind::Call(span)) => {
                if let Some(after) = &hop.after {
                    let error = Diagnostic::error(after.span, NO_DELAY).other(*span, "the call");
                    self.report(error.help("use a queue: leave `via call` out"));
                }
                Some(Via::Call)
            }
            Some(HopKind::Fused(_)) => Some(Via::Fused),
            Some(HopKind::Queue {
                room, when_full, ..
            }) => {
                if let Some(room) = room {
                    let role = "the room of a queue";
                    let value =
                        self.checker
                            .check_value(&mut self.params, room, Some(&Kind::Count), role);
                    if value == Some(Value::Count(0)) {
                        let message = "a queue has room for at least 1 item";
                        self.report(Diagnostic::error(room.span, message));
                    }
                }
                Some(Via::Queue {
                    room: room.clone(),
                    when_full: when_full.unwrap_or_default(),
                })
            }
        }
    }

    fn edge(
        &mut self,
        from: &End,
        hop: &Hop,
        written: &Option<Via>,
        (source, target): (&Port, &Port),
        place: &Place,
    ) {
        let branches = |port: &Port| &self.scope.entities[port.entity].place.branches;
        let is_possible = !are_exclusive(branches(source), branches(target))
            && !are_exclusive(branches(source), &place.branches)
            && !are_exclusive(branches(target), &place.branches);
        if !is_possible {
            return;
        }
        let span = from.span().to(hop.to.span());
        if self.graph.edges.len() >= PARTS_MAX {
            self.report_too_large(span);
            return;
        }
        let conditions = [&place.condition, &source.condition, &target.condition];
        let condition = conditions.into_iter().flatten().cloned().reduce(Expr::and);
        let same = self.graph.edges.iter().find(|edge| {
            edge.from == source.port
                && edge.to == target.port
                && may_coexist(edge.condition.as_ref(), condition.as_ref())
        });
        if let Some(first) = same.map(|edge| edge.span) {
            let message = "this edge exists twice";
            self.report(Diagnostic::error(span, message).other(first, "it exists here first"));
            return;
        }
        let via = self.single(
            span,
            "via",
            [written.as_ref(), source.via.as_ref(), target.via.as_ref()],
            [source, target],
        );
        let after = self.single(
            span,
            "after",
            [
                hop.after.as_ref(),
                source.after.as_ref(),
                target.after.as_ref(),
            ],
            [source, target],
        );
        // An edge that states both itself has this error already.
        let is_call = via.as_ref().is_some_and(Via::is_call);
        if is_call && after.is_some() && (written.is_none() || hop.after.is_none()) {
            self.refuse_delay(span, [source, target]);
        }
        self.graph.edges.push(Edge {
            from: source.port.clone(),
            to: target.port.clone(),
            via: via.unwrap_or(Via::Queue {
                room: None,
                when_full: WhenFull::Wait,
            }),
            after,
            back: false,
            condition,
            item: None,
            span,
            from_span: from.span(),
            to_span: hop.to.span(),
        });
    }

    /// Reports a call whose delay is written in another graph than the call.
    fn refuse_delay(&mut self, span: Span, sides: [&Port; 2]) {
        let mut error = Diagnostic::error(span, NO_DELAY);
        for inside in sides.into_iter().filter_map(|port| port.inside) {
            error = error.other(inside, "the edge goes on here");
        }
        self.report(error.help("use a queue, or leave `after` out"));
    }

    /// Returns the one of several descriptions that is written, at the edge itself or at its parts
    /// inside graphs.
    fn single<T: Clone>(
        &mut self,
        span: Span,
        word: &str,
        written: [Option<&T>; 3],
        sides: [&Port; 2],
    ) -> Option<T> {
        let count = written.iter().flatten().count();
        if count > 1 {
            let message = format!("this edge has one `{word}` here and one inside a graph");
            let mut error = Diagnostic::error(span, message);
            for inside in sides.into_iter().filter_map(|port| port.inside) {
                error = error.other(inside, "the edge goes on here");
            }
            self.report(error.help(format!("keep one `{word}`")));
        }
        written.into_iter().flatten().next().cloned()
    }

    /// Reports an edge of the graph's own ports that already exists, or that exceeds the bound on
    /// parts.
    fn refuse_same(&mut self, boundary: &Boundary, direction: Direction) -> Option<()> {
        let boundaries = match direction {
            Direction::Input => &self.graph.inputs,
            Direction::Output => &self.graph.outputs,
        };
        let same = boundaries.iter().find(|same| {
            same.port == boundary.port
                && same.inner == boundary.inner
                && may_coexist(same.condition.as_ref(), boundary.condition.as_ref())
        });
        let error = match same.map(|same| same.span) {
            Some(first) => Diagnostic::error(boundary.span, "this edge exists twice")
                .other(first, "it exists here first"),
            None if boundaries.len() >= PARTS_MAX => {
                self.report_too_large(boundary.span);
                return Some(());
            }
            None => return None,
        };
        self.report(error);
        Some(())
    }

    fn boundary(
        &mut self,
        port: &str,
        hop: &Hop,
        written: &Option<Via>,
        inner: &Port,
        place: &Place,
    ) -> Boundary {
        let span = hop.to.span();
        let via = self.single(
            span,
            "via",
            [written.as_ref(), inner.via.as_ref(), None],
            [inner, inner],
        );
        let after = self.single(
            span,
            "after",
            [hop.after.as_ref(), inner.after.as_ref(), None],
            [inner, inner],
        );
        let conditions = [&place.condition, &inner.condition];
        Boundary {
            port: port.to_owned(),
            inner: inner.port.clone(),
            via,
            after,
            condition: conditions.into_iter().flatten().cloned().reduce(Expr::and),
            span,
        }
    }
}
