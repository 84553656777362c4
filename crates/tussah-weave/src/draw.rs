//! Drawings of graphs.
//!
//! ```
//! use tussah_weave::{check, draw, parse};
//!
//! let parsed = parse("use A, B graph Two { a = A b = B a -> b }");
//! let graph = &check(&parsed.file, None).graphs[0];
//! assert!(draw::svg(graph, None).starts_with("<svg "));
//! assert!(draw::dot(graph, None).contains("\"a\" -> \"b\""));
//! ```

use crate::graph::{Graph, Via, WhenFull};
use crate::modules::{Modules, Parallelism};

mod layer;
mod measure;
mod place;
mod svg;

/// Draws a graph as SVG: the instances from left to right, with their queues.
///
/// If `modules` is given, the drawing also shows the parallelism of each module.
#[must_use]
pub fn svg(graph: &Graph, modules: Option<&Modules>) -> String {
    let scene = scene(graph, modules);
    svg::write(&scene, &place::place(&scene))
}

/// Returns a graph as text in DOT, the language of Graphviz.
#[must_use]
pub fn dot(graph: &Graph, modules: Option<&Modules>) -> String {
    let scene = scene(graph, modules);
    let mut out = format!(
        "digraph {:?} {{\n  rankdir=LR;\n  node [shape=box];\n",
        scene.name
    );
    for card in &scene.cards {
        let label: Vec<&str> = [card.name.as_str()]
            .into_iter()
            .chain(card.lines.iter().map(String::as_str))
            .collect();
        let shape = match card.kind {
            CardKind::Port => ", shape=plaintext",
            CardKind::Module => "",
        };
        out.push_str(&format!(
            "  {:?} [label={:?}{shape}];\n",
            card.name,
            label.join("\n")
        ));
    }
    for link in &scene.links {
        let style = match link.style {
            Style::Back => ", style=dashed",
            Style::Shed => ", style=dotted",
            Style::Call => ", arrowhead=empty",
            Style::Queue => "",
        };
        let constraint = if link.style == Style::Back {
            ", constraint=false"
        } else {
            ""
        };
        out.push_str(&format!(
            "  {:?} -> {:?} [taillabel={:?}, headlabel={:?}, label={:?}{style}{constraint}];\n",
            scene.cards[link.from].name,
            scene.cards[link.to].name,
            link.from_label,
            link.to_label,
            link.label
        ));
    }
    out.push_str("}\n");
    out
}

/// A graph as boxes and arrows, before it has positions.
struct Scene {
    name: String,
    doc: String,
    cards: Vec<Card>,
    links: Vec<Link>,
    notes: Vec<String>,
}

/// A box.
struct Card {
    name: String,
    lines: Vec<String>,
    title: String,
    kind: CardKind,
    parallelism: Option<Parallelism>,
}

#[derive(Clone, Copy, PartialEq)]
enum CardKind {
    Module,
    /// A port of the graph itself.
    Port,
}

/// An arrow.
struct Link {
    from: usize,
    to: usize,
    style: Style,
    /// The output, unless it is the default.
    from_label: String,
    /// The input, unless it is the default.
    to_label: String,
    /// The bound of the queue, the delay and the condition.
    label: String,
    /// True if a queue is drawn at the end.
    has_queue: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Style {
    Queue,
    Call,
    Back,
    Shed,
}

fn scene(graph: &Graph, modules: Option<&Modules>) -> Scene {
    let mut scene = Scene {
        name: graph.name.clone(),
        doc: graph.doc.lines().next().unwrap_or_default().to_owned(),
        cards: Vec::new(),
        links: Vec::new(),
        notes: Vec::new(),
    };
    for node in &graph.nodes {
        let mut lines = vec![node.module.clone()];
        if let Some(shards) = &node.shards {
            let by = shards
                .by
                .as_ref()
                .map(|by| format!(" by {by}"))
                .unwrap_or_default();
            lines.push(format!("\u{d7} {}{by}", shards.count));
        }
        lines.extend(
            node.condition
                .as_ref()
                .map(|condition| format!("if {condition}")),
        );
        let args: Vec<String> = node
            .args
            .iter()
            .map(|arg| match &arg.name {
                Some(name) => format!("{name}: {}", arg.value),
                None => arg.value.to_string(),
            })
            .collect();
        let signature = modules.and_then(|modules| modules.signatures.get(&node.module));
        let doc = match (node.doc.as_str(), signature) {
            ("", Some(signature)) => signature.doc.as_str(),
            (doc, _) => doc,
        };
        let title = format!("{}({})\n{doc}", node.module, args.join(", "));
        scene.cards.push(Card {
            name: node.name.clone(),
            lines,
            title: title.trim_end().to_owned(),
            kind: CardKind::Module,
            parallelism: signature.map(|signature| signature.parallelism),
        });
    }
    links(graph, &mut scene);
    for limit in &graph.limits {
        let names: Vec<&str> = limit
            .nodes
            .iter()
            .map(|&node| graph.nodes[node].name.as_str())
            .collect();
        scene
            .notes
            .push(format!("limit {} in {}", limit.count, names.join(", ")));
    }
    scene
}

/// Returns the label of a port; empty for the default port.
fn port(port: &str, default: &str) -> String {
    match port == default {
        true => String::new(),
        false => port.to_owned(),
    }
}

fn links(graph: &Graph, scene: &mut Scene) {
    for edge in &graph.edges {
        let (bound, has_queue) = describe(Some(&edge.via));
        let style = match (edge.back, has_queue) {
            (true, _) => Style::Back,
            (false, true) => Style::Queue,
            (false, false) => Style::Call,
        };
        let after = edge.after.as_ref().map(|after| format!("after {after}"));
        let condition = edge
            .condition
            .as_ref()
            .map(|condition| format!("if {condition}"));
        scene.links.push(Link {
            from: edge.from.node,
            to: edge.to.node,
            style,
            from_label: port(&edge.from.port, "out"),
            to_label: port(&edge.to.port, "run"),
            label: [bound, after, condition]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join(", "),
            has_queue,
        });
    }
    own_ports(graph, scene);
    for shed in &graph.sheds {
        let rule = format!("shed: p90 > {}", shed.above);
        match &shed.to {
            Some(to) => scene.links.push(Link {
                from: shed.node,
                to: to.node,
                style: Style::Shed,
                from_label: rule,
                to_label: port(&to.port, "run"),
                label: String::new(),
                has_queue: true,
            }),
            None => scene.cards[shed.node].lines.push(rule),
        }
    }
}

/// Adds the ports of the graph itself, with their links.
fn own_ports(graph: &Graph, scene: &mut Scene) {
    for (boundaries, default) in [(&graph.inputs, "in"), (&graph.outputs, "out")] {
        for boundary in boundaries {
            let name = match boundary.port == default {
                true => default.to_owned(),
                false => format!("{default}.{}", boundary.port),
            };
            let card = scene
                .cards
                .iter()
                .position(|card| card.kind == CardKind::Port && card.name == name);
            let card = card.unwrap_or_else(|| {
                scene.cards.push(Card {
                    name,
                    lines: Vec::new(),
                    title: String::new(),
                    kind: CardKind::Port,
                    parallelism: None,
                });
                scene.cards.len() - 1
            });
            let (bound, has_queue) = describe(boundary.via.as_ref());
            let after = boundary
                .after
                .as_ref()
                .map(|after| format!("after {after}"));
            let is_input = default == "in";
            let inner = boundary.inner.node;
            scene.links.push(Link {
                from: if is_input { card } else { inner },
                to: if is_input { inner } else { card },
                style: if has_queue { Style::Queue } else { Style::Call },
                from_label: if is_input {
                    String::new()
                } else {
                    port(&boundary.inner.port, "out")
                },
                to_label: if is_input {
                    port(&boundary.inner.port, "run")
                } else {
                    String::new()
                },
                label: [bound, after]
                    .into_iter()
                    .flatten()
                    .collect::<Vec<_>>()
                    .join(", "),
                has_queue: has_queue && is_input,
            });
        }
    }
}

/// Returns the label of a queue that is not the default, and whether there is a queue.
fn describe(via: Option<&Via>) -> (Option<String>, bool) {
    match via {
        Some(Via::Call) => (Some("call".to_owned()), false),
        Some(Via::Fused) => (Some("fused".to_owned()), false),
        Some(Via::Queue { room, when_full }) => {
            let policy =
                (*when_full != WhenFull::Wait).then(|| when_full.to_string().replace('_', " "));
            let room = room.as_ref().map(ToString::to_string);
            let label: Vec<String> = room.into_iter().chain(policy).collect();
            ((!label.is_empty()).then(|| label.join(" ")), true)
        }
        None => (None, true),
    }
}
