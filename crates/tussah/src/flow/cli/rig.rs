//! The graph of a test. Recorders are connected to the ports that the test watches, and the test
//! replaces the sources for which it sends items.

mod rest;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tussah_weave::{
    Arg, Diagnostic, Graph, Kind, Place, Plan, PlanArg, PlanBoundary, PortRef, Span, Step, Test,
    Type, Value,
};

use super::source::Source;
use crate::flow::text::{AnyText, Log};
use crate::flow::{Modules, Params, Via};

/// A graph for a test.
pub(super) struct Rig {
    pub(super) graph: crate::flow::Graph,
    /// The places of the instances in the file.
    pub(super) places: BTreeMap<String, Span>,
    /// The items that have arrived at each watched port.
    pub(super) logs: BTreeMap<String, Log>,
    /// The ports that get the items of each port that the test sends to.
    pub(super) feeds: BTreeMap<String, Vec<Feed>>,
}

/// A port that receives the items that a test sends.
#[derive(Clone)]
pub(super) struct Feed {
    pub(super) end: String,
    pub(super) after: Duration,
    pub(super) text: Arc<dyn AnyText>,
}

/// Returns the key of a place, which is also how messages name it.
pub(super) fn name(place: &Place) -> String {
    let (node, port, default) = match place {
        Place::Input { node, port } => (node.as_str(), port, "run"),
        Place::Output { node, port } => (node.as_str(), port, "out"),
        Place::GraphInput(port) => ("in", port, "in"),
        Place::GraphOutput(port) => ("out", port, "out"),
    };
    match port == default {
        true => node.to_owned(),
        false => format!("{node}.{port}"),
    }
}

/// Builds the graph of a test.
///
/// # Errors
/// Returns the positions of arguments without a value, or of item types that cannot be converted to
/// text.
pub(super) fn rig(
    source: &Source,
    modules: &Modules,
    graph: &Graph,
    test: &Test,
) -> Result<Rig, Vec<Diagnostic>> {
    let args = test.args.iter().map(|arg| {
        let name = arg.name.clone().unwrap_or_default();
        value(arg).map(|value| (name, value))
    });
    let args = args
        .collect::<Result<_, _>>()
        .map_err(|error| vec![error])?;
    let mut plan = graph.instantiate(&args, 1)?;
    let mut build = || {
        for step in &test.steps {
            replace(&mut plan, step)?;
        }
        Builder::new(modules, &plan, test).build(source)
    };
    build().map_err(|error| vec![error])
}

/// Returns the value of an argument, which has no parameters in it.
fn value(arg: &Arg) -> Result<Value, Diagnostic> {
    let one_worker = |name: &str| (name == "workers").then_some(Value::Count(1));
    let value = arg.value.eval(&one_worker);
    let value = value.map_err(|error| Diagnostic::error(error.span, error.to_string()))?;
    match &arg.kind {
        None | Some(Kind::Rust(_)) => Ok(value),
        Some(kind) => value
            .convert(kind)
            .map_err(|error| Diagnostic::error(arg.span, error.to_string())),
    }
}

/// Executes a step that replaces a module.
fn replace(plan: &mut Plan, step: &Step) -> Result<(), Diagnostic> {
    let Step::Replace {
        node,
        module,
        types,
        args,
        span,
    } = step
    else {
        return Ok(());
    };
    let error = || absent(node, *span);
    let found = plan.nodes.iter_mut().find(|it| it.name == *node);
    let found = found.ok_or_else(error)?;
    found.module.clone_from(module);
    found.types.clone_from(types);
    let args = args.iter().map(|arg| {
        let (name, value, span) = (arg.name.clone(), value(arg)?, arg.span);
        Ok(PlanArg { name, value, span })
    });
    found.args = args.collect::<Result<_, Diagnostic>>()?;
    Ok(())
}

/// Returns the error for a part of the graph that its conditions leave out.
fn absent(name: &str, span: Span) -> Diagnostic {
    Diagnostic::error(span, format!("there is no `{name}` with these parameters"))
}

struct Builder<'a> {
    modules: &'a Modules,
    plan: &'a Plan,
    test: &'a Test,
    /// The sources and sinks that the test replaces.
    removed: BTreeSet<usize>,
    logs: BTreeMap<String, Log>,
}

impl<'a> Builder<'a> {
    fn new(modules: &'a Modules, plan: &'a Plan, test: &'a Test) -> Self {
        let mut builder = Self {
            modules,
            plan,
            test,
            removed: BTreeSet::new(),
            logs: BTreeMap::new(),
        };
        for step in &test.steps {
            let (node, is_end) = match step {
                Step::Send {
                    to: Place::Output { node, .. },
                    ..
                } => (node, Self::is_source as fn(&Self, usize) -> bool),
                Step::Expect {
                    at: Place::Input { node, .. },
                    ..
                } => (node, Self::is_sink as fn(&Self, usize) -> bool),
                _ => continue,
            };
            let node = builder.node(node).filter(|&node| is_end(&builder, node));
            builder.removed.extend(node);
        }
        builder
    }

    fn build(mut self, source: &Source) -> Result<Rig, Diagnostic> {
        for step in &self.test.steps {
            let (place, span) = match step {
                Step::Send { to, span, .. } => (to, *span),
                Step::Expect { at, span, .. } => (at, *span),
                _ => continue,
            };
            if !self.exists(place) {
                return Err(absent(&name(place), span));
            }
        }
        let at = |span| source.position(span);
        let graph = self.modules.build(&self.rest(), &Params::new(), &at);
        let mut graph = graph.map_err(|(error, span)| Diagnostic::error(span, error))?;
        for boundary in &self.plan.outputs {
            // A test need not watch all ports of its graph.
            if !self.removed.contains(&boundary.inner.node) {
                let open = graph.leave_open(&self.end(&boundary.inner));
                open.map_err(|error| Diagnostic::error(boundary.span, error.to_string()))?;
            }
        }
        for step in &self.test.steps {
            if let Step::Expect { at, span, .. } = step {
                self.watch(&mut graph, at, *span)?;
            }
        }
        let mut feeds = BTreeMap::new();
        for step in &self.test.steps {
            if let Step::Send { to, span, .. } = step {
                feeds.insert(name(to), self.feeds(to, *span)?);
            }
        }
        let nodes = self.plan.nodes.iter();
        Ok(Rig {
            graph,
            places: nodes.map(|node| (node.name.clone(), node.span)).collect(),
            logs: self.logs,
            feeds,
        })
    }

    /// Adds a recorder for a place, with the edges to it.
    fn watch(
        &mut self,
        graph: &mut crate::flow::Graph,
        at: &Place,
        span: Span,
    ) -> Result<(), Diagnostic> {
        let key = name(at);
        if self.logs.contains_key(&key) {
            return Ok(());
        }
        let error = |error: String| Diagnostic::error(span, error);
        let text = self.text(at, |text| (text.displays(), text.debugs()));
        let text = text.ok_or_else(|| error(unknown(&key)))?;
        let log = Log::default();
        let recorder = recorder(&key);
        graph.add_instance(&recorder, text.recorder(&log).map_err(error)?);
        for (from, after) in self.sources(at) {
            if !self.removed.contains(&from.node) {
                let connected = graph.connect_via(&self.end(&from), &recorder, after);
                connected.map_err(|why| error(why.to_string()))?;
            }
        }
        self.logs.insert(key, log);
        Ok(())
    }

    /// Returns the outputs whose items arrive at a place.
    fn sources(&self, at: &Place) -> Vec<(PortRef, Via)> {
        let after = |after: Option<Duration>| Via::default().after(after.unwrap_or_default());
        match at {
            Place::Output { .. } => {
                let port = self.port(at);
                port.map(|port| (port, Via::default()))
                    .into_iter()
                    .collect()
            }
            Place::GraphOutput(port) => {
                let ends = self.plan.outputs.iter().filter(|it| it.port == *port);
                ends.map(|it| (it.inner.clone(), after(it.after))).collect()
            }
            Place::Input { .. } | Place::GraphInput(_) => {
                let port = self.port(at);
                let to = |it: &PortRef| Some(it) == port.as_ref();
                let edges = self.plan.edges.iter().filter(|edge| to(&edge.to));
                let sheds = self.plan.sheds.iter();
                let sheds = sheds.filter(|shed| shed.to.as_ref().is_some_and(to));
                let dropped = |node| PortRef {
                    node,
                    port: "dropped".to_owned(),
                };
                edges
                    .map(|edge| (edge.from.clone(), after(edge.after)))
                    .chain(sheds.map(|shed| (dropped(shed.node), Via::default())))
                    .collect()
            }
        }
    }

    /// Returns the ports that receive the items sent to a place.
    fn feeds(&self, to: &Place, span: Span) -> Result<Vec<Feed>, Diagnostic> {
        let text = self.text(to, |text| text.parses());
        let text = text.ok_or_else(|| Diagnostic::error(span, unknown(&name(to))))?;
        let feed = |port: &PortRef, after: Option<Duration>| {
            let end = self.end(port);
            // A removed sink that nothing watches has no port.
            if self.removed.contains(&port.node) && !self.logs.contains_key(&key(self.plan, port)) {
                return None;
            }
            let (after, text) = (after.unwrap_or_default(), Arc::clone(&text));
            Some(Feed { end, after, text })
        };
        let port = self.port(to);
        Ok(match to {
            Place::GraphInput(port) => {
                let ends = self.plan.inputs.iter().filter(|it| it.port == *port);
                ends.filter_map(|it| feed(&it.inner, it.after)).collect()
            }
            Place::Output { .. } => {
                let edges = self.plan.edges.iter();
                let edges = edges.filter(|edge| Some(&edge.from) == port.as_ref());
                edges
                    .filter_map(|edge| feed(&edge.to, edge.after))
                    .collect()
            }
            Place::Input { .. } | Place::GraphOutput(_) => {
                port.iter().filter_map(|port| feed(port, None)).collect()
            }
        })
    }

    /// Returns the text of the items of a place with the highest rank. Each module knows only some
    /// conversions of a type: a generic one those that its bounds name.
    fn text<R: Ord>(
        &self,
        place: &Place,
        rank: impl Fn(&dyn AnyText) -> R,
    ) -> Option<Arc<dyn AnyText>> {
        let item = self.item(place)?;
        let texts = self.modules.texts.iter();
        let fits = texts.filter(|text| text.item().fits(&item));
        fits.max_by_key(|text| rank(&***text)).cloned()
    }

    fn item(&self, place: &Place) -> Option<Type> {
        let inner = |all: &[PlanBoundary], port: &str| {
            all.iter()
                .find(|it| it.port == port)
                .map(|it| it.inner.clone())
        };
        let port = match place {
            Place::GraphInput(port) => inner(&self.plan.inputs, port)?,
            Place::GraphOutput(port) => inner(&self.plan.outputs, port)?,
            Place::Input { .. } | Place::Output { .. } => self.port(place)?,
        };
        let mut edges = self.plan.edges.iter();
        let edge = edges.find(|edge| edge.from == port || edge.to == port);
        if let Some(item) = edge.and_then(|edge| edge.item.clone()) {
            return Some(item);
        }
        let node = &self.plan.nodes[port.node];
        let signatures = &self.modules.signatures().signatures;
        let signature = signatures.get(&node.module)?;
        let port = signature
            .input(&port.port)
            .or_else(|| signature.output(&port.port))?;
        Some(signature.item(port, &node.types))
    }

    /// Returns the port of a node.
    fn port(&self, place: &Place) -> Option<PortRef> {
        let (Place::Input { node, port } | Place::Output { node, port }) = place else {
            return None;
        };
        let (node, port) = (self.node(node)?, port.clone());
        Some(PortRef { node, port })
    }

    /// Returns whether the conditions of the graph leave a place in it.
    fn exists(&self, place: &Place) -> bool {
        let any = |all: &[PlanBoundary], port: &str| all.iter().any(|it| it.port == port);
        match place {
            Place::GraphInput(port) => any(&self.plan.inputs, port),
            Place::GraphOutput(port) => any(&self.plan.outputs, port),
            Place::Input { node, .. } | Place::Output { node, .. } => self.node(node).is_some(),
        }
    }

    fn node(&self, name: &str) -> Option<usize> {
        self.plan.nodes.iter().position(|node| node.name == name)
    }

    fn is_source(&self, node: usize) -> bool {
        let signature = self
            .modules
            .signatures()
            .signatures
            .get(&self.plan.nodes[node].module);
        signature.is_some_and(|signature| signature.inputs.is_empty())
    }

    fn is_sink(&self, node: usize) -> bool {
        let mut edges = self.plan.edges.iter();
        let signature = self
            .modules
            .signatures()
            .signatures
            .get(&self.plan.nodes[node].module);
        edges.all(|edge| edge.from.node != node)
            && signature.is_some_and(|signature| !signature.outputs.iter().any(|it| it.required))
    }

    /// Returns the end of an edge, with the name used in the graph.
    fn end(&self, port: &PortRef) -> String {
        match self.removed.contains(&port.node) {
            true => recorder(&key(self.plan, port)),
            false => format!("{}.{}", self.plan.nodes[port.node].name, port.port),
        }
    }
}

/// Returns the key of an input port.
fn key(plan: &Plan, port: &PortRef) -> String {
    name(&Place::Input {
        node: plan.nodes[port.node].name.clone(),
        port: port.port.clone(),
    })
}

/// Returns the name of a recorder, which no instance can have.
fn recorder(key: &str) -> String {
    format!("expect {key}")
}

fn unknown(place: &str) -> String {
    format!("the items of `{place}` have no text: expected a type with `FromStr` and `Display`")
}
