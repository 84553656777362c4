//! The graph of a network: its stages and edges, for a drawing.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::stats::StageStats;
use crate::stage::network::{Edge, EdgeKind, Network};
use crate::stage::state::Digest;

/// A snapshot of the stages of a network and the edges between them. [`Network::graph`] returns it.
///
/// # Examples
/// ```
/// use tussah::Runtime;
/// use tussah::stage::{Batch, BuildError, Handler, Network, Sender};
///
/// struct Pass(Option<Sender<u32>>);
///
/// impl Handler for Pass {
///     type Event = u32;
///     async fn handle(&self, batch: &mut Batch<u32>) {
///         for number in batch.drain() {
///             if let Some(next) = &self.0 {
///                 next.send(number).await.expect("the next stage is open");
///             }
///         }
///     }
/// }
///
/// let runtime = Runtime::builder().workers(1).build()?;
/// let network = Network::on(runtime.handle(), "two stages");
/// let last = network.stage("last").handler(|_| Ok(Pass(None)))?;
/// network.stage("first").handler(|edges| Ok(Pass(Some(edges.to(&last).queue(100)?))))?;
///
/// let graph = network.graph();
/// assert_eq!((graph.nodes.len(), graph.edges.len()), (2, 1));
/// println!("{}", graph.to_dot()); // for `dot -Tsvg`
/// let json: serde_json::Value = serde_json::from_str(&graph.to_json())?;
/// assert_eq!(json["stages"][0]["name"], "last");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct NetworkGraph {
    /// The network's name.
    pub network: String,
    /// The stages, in the order in which they were created.
    pub nodes: Vec<Node>,
    /// The edges, in the order in which they were created.
    pub edges: Vec<Edge>,
}

/// A stage in a [`NetworkGraph`].
#[derive(Clone, Debug)]
pub struct Node {
    /// The stage's name.
    pub name: Arc<str>,
    /// The name of the stage's event type, including module paths. Drawings omit the paths.
    pub event: &'static str,
    /// The current state and the counters of the stage.
    pub stats: StageStats,
}

impl Network {
    /// Returns the stages with their statistics, and the edges between them.
    #[must_use]
    pub fn graph(&self) -> NetworkGraph {
        let (stages, edges) = self.known();
        let nodes = stages.iter().map(|known| Node {
            name: Arc::clone(&known.name),
            event: known.event,
            stats: Arc::clone(&known.stage).stats(),
        });
        NetworkGraph {
            network: self.name().to_owned(),
            nodes: nodes.collect(),
            edges,
        }
    }

    /// Returns the statistics of all stages, in the order in which the stages were created.
    #[must_use]
    pub fn stats(&self) -> Vec<StageStats> {
        let (stages, _) = self.known();
        stages
            .into_iter()
            .map(|known| known.stage.stats())
            .collect()
    }

    /// Returns the statistics of each stage, as [`stats`](Self::stats) does, and the distribution
    /// of its response times.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use tussah::stage::observe::Digest;
    /// use tussah::stage::{Batch, Handler, Network};
    ///
    /// struct Parse;
    ///
    /// impl Handler for Parse {
    ///     type Event = u32;
    ///     async fn handle(&self, batch: &mut Batch<u32>) {
    ///         batch.drain().for_each(drop);
    ///     }
    /// }
    ///
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// # runtime.block_on(async {
    /// let network = Network::new("example");
    /// let parse = network.stage("parse").handler(|_| Ok(Parse))?;
    /// parse.sender().send(7).await?;
    /// parse.settled().await;
    /// let mut times = Digest::default();
    /// for (_, of_stage) in network.stats_and_times() {
    ///     times.merge(&of_stage);
    /// }
    /// assert_eq!(times.count(), 1);
    /// assert!(times.percentile(990) < Duration::from_secs(60));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn stats_and_times(&self) -> Vec<(StageStats, Digest)> {
        let (stages, _) = self.known();
        stages
            .into_iter()
            .map(|known| known.stage.stats_and_responses())
            .collect()
    }
}

impl NetworkGraph {
    /// Renders the graph in [DOT](https://graphviz.org/doc/info/lang.html), the language of
    /// Graphviz.
    ///
    /// Solid arrows are queue edges, dashed arrows are offer edges, and bold arrows with an empty
    /// head are call edges. An edge that passes through a proxy is gray. The label of a stage shows
    /// the numbers of finished and refused events since the stage was created. The label also shows
    /// the stage's numbers of called, shed, expired and cancelled events, but omits zeros. A stage
    /// is red if it has refused or shed events, or if events have expired. If a stage was closed
    /// because its handler panicked too often or could not be created again, the stage's label
    /// shows the reason.
    #[must_use]
    pub fn to_dot(&self) -> String {
        let mut out = String::new();
        self.write_dot(&mut out)
            .expect("a string takes whatever is written");
        out
    }

    fn write_dot(&self, out: &mut String) -> std::fmt::Result {
        writeln!(out, "digraph {} {{", quoted(&self.network))?;
        writeln!(out, "  rankdir=LR;\n  node [shape=box];")?;
        for (at, node) in self.nodes.iter().enumerate() {
            let stats = &node.stats;
            let also = |count, what| match count {
                0 => String::new(),
                count => format!(", {count} {what}"),
            };
            let called = also(stats.called, "called");
            let ended = [
                also(stats.shed, "shed"),
                also(stats.expired, "expired"),
                also(stats.cancelled, "cancelled"),
            ]
            .concat();
            let closed = stats.closed.as_ref().map(|why| format!("\nclosed: {why}"));
            let lines = format!(
                "{}\n{}\n{} of {} queued, {} of {} servlets busy\n{} finished{called}, {} refused{ended}, p99 {:?}{}",
                node.name,
                short(node.event),
                stats.queue_len,
                stats.threshold,
                stats.servlets.busy,
                stats.servlets.target,
                stats.finished,
                stats.refused,
                stats.response.p99,
                closed.unwrap_or_default(),
            );
            let color = match stats.refused + stats.shed + stats.expired {
                0 => "",
                _ => ", color=red",
            };
            writeln!(out, "  s{at} [label={}{color}];", quoted(&lines))?;
        }
        for edge in &self.edges {
            let place = |name: &Arc<str>| self.nodes.iter().position(|node| node.name == *name);
            let (Some(from), Some(to)) = (place(&edge.from), place(&edge.to)) else {
                continue;
            };
            let style = match edge.kind {
                EdgeKind::Queue => "solid",
                EdgeKind::Offer => "dashed",
                EdgeKind::Call => "bold, arrowhead=empty",
            };
            let kind = edge.kind.name();
            let (color, label) = match &edge.proxy {
                None => ("", kind.to_owned()),
                Some(proxy) => (", color=gray", quoted(&format!("{kind} by {proxy}"))),
            };
            writeln!(
                out,
                "  s{from} -> s{to} [style={style}{color}, label={label}];"
            )?;
        }
        writeln!(out, "}}")
    }

    /// Renders the graph as a JSON object with the fields `network`, `stages` and `edges`. The
    /// object contains the counters of each stage; all times are in nanoseconds.
    #[must_use]
    pub fn to_json(&self) -> String {
        let stages: Vec<_> = self.nodes.iter().map(stage).collect();
        let edges: Vec<_> = self.edges.iter().map(edge).collect();
        json!({ "network": self.network, "stages": stages, "edges": edges }).to_string()
    }
}

fn stage(node: &Node) -> Value {
    let stats = &node.stats;
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let controllers = stats.controllers.iter();
    let controllers: Vec<_> = controllers
        .map(|(name, owns)| json!({ "name": name, "decides": owns.to_string() }))
        .collect();
    let mut stage = json!({
        "name": *node.name,
        "event": short(node.event),
        "gate": stats.gate,
        "queued_by_class": stats.queued_by_class,
        "controllers": controllers,
    });
    if let Some(why) = &stats.closed {
        stage["closed"] = json!(**why);
    }
    let numbers = [
        ("queued", stats.queued),
        ("queue_len", stats.queue_len),
        ("queue_max", stats.queue_max),
        ("threshold", stats.threshold),
        ("queue_bytes", stats.queue_bytes),
        ("keys", stats.keys as u64),
        ("in_service", stats.in_service),
        ("servlets_busy", stats.servlets.busy as u64),
        ("servlets_waiting", stats.waiting as u64),
        ("servlets_parked", stats.servlets.parked as u64),
        ("servlets_target", stats.servlets.target as u64),
        ("servlets_max", stats.servlets.max as u64),
        ("batch_max", stats.batch_max as u64),
        ("arrived", stats.arrived),
        ("refused", stats.refused),
        ("shed", stats.shed),
        ("expired", stats.expired),
        ("cancelled", stats.cancelled),
        ("shut_down", stats.shut_down),
        ("finished", stats.finished),
        ("failed", stats.failed),
        ("panicked", stats.panicked),
        ("lost", stats.lost),
        ("batches", stats.batches),
        ("called", stats.called),
        ("service_ns", ns(stats.service)),
        ("compute_ns", ns(stats.compute)),
        ("response_mean_ns", ns(stats.response.mean)),
        ("response_p50_ns", ns(stats.response.p50)),
        ("response_p90_ns", ns(stats.response.p90)),
        ("response_p99_ns", ns(stats.response.p99)),
    ];
    for (name, number) in numbers {
        stage[name] = json!(number);
    }
    stage
}

fn edge(edge: &Edge) -> Value {
    let mut object = json!({
        "from": *edge.from,
        "to": *edge.to,
        "kind": edge.kind.name(),
    });
    if let Some(proxy) = &edge.proxy {
        object["proxy"] = json!(**proxy);
    }
    object
}

/// Returns the name of a type without the modules of the type and its parameters: these are long,
/// and private modules tell a reader nothing.
fn short(name: &str) -> String {
    let mut out = String::new();
    // The beginning of the current path.
    let mut begin = 0;
    let mut letters = name.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter == ':' && letters.next_if_eq(&':').is_some() {
            out.truncate(begin);
            continue;
        }
        out.push(letter);
        if !(letter.is_alphanumeric() || letter == '_') {
            begin = out.len();
        }
    }
    out
}

/// Quotes a string for DOT: backslashes and ampersands would begin escapes in a label.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '&' => out.push_str("&amp;"),
            '\n' => out.push_str("\\n"),
            control if control.is_control() => out.push('?'),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::{quoted, short};

    #[test]
    fn texts_are_quoted_for_dot() {
        let check = |text, expected| assert_eq!(quoted(text), expected);
        check("parse", r#""parse""#);
        check("a \"b\" \\", r#""a \"b\" \\""#);
        check("a\nb\0", r#""a\nb?""#);
        check("&lt; ż", r#""&amp;lt; ż""#);
    }

    #[test]
    fn types_are_named_without_their_modules() {
        let check = |name, expected| assert_eq!(short(name), expected);
        check("u32", "u32");
        check("alloc::string::String", "String");
        check("&str", "&str");
        check("(a::B, [c::d::E_1; 4])", "(B, [E_1; 4])");
        check(
            "a::Map<b::Key, core::option::Option<c::d::Value>>",
            "Map<Key, Option<Value>>",
        );
        check(
            "&dyn a::Of<Out = b::C> + d::Send",
            "&dyn Of<Out = C> + Send",
        );
        check("fn(a::B) -> c::D", "fn(B) -> D");
    }
}
