//! The plan of the stages: the graph in `web.weave` with the values of a configuration.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use tussah::stage::host::DirectHost;
use tussah::stage::{BuildError, DirectHandler, Edges, Network, Stage, StageBuilder, TrySender};
use tussah_weave::{
    Body, Domain, Kind, Modules, Parallelism, ParamSignature, PlanEdge, PlanNode, PlanVia,
    PortSignature, Signature, Type, Value, WhenFull, check, parse,
};

use crate::web::server::Server;

/// The graph.
pub(super) const TEXT: &str = include_str!("web.weave");

/// The modules: name, body and parallelism, parameter, inputs, outputs. A port is its name and its
/// type; `?` marks an output that some configurations leave without an edge.
type Row = (
    &'static str,
    (Body, Parallelism),
    Option<&'static str>,
    &'static [(&'static str, &'static str)],
    &'static [(&'static str, &'static str)],
);

const DIRECT: (Body, Parallelism) = (Body::Plain, Parallelism::Element);

#[rustfmt::skip]
const ROWS: [Row; 9] = [
    ("Accept", DIRECT, None, &[], &[("out", "Exchange")]),
    ("Parse", DIRECT, None, &[("run", "Exchange")], &[("out", "Exchange"), ("bad", "Exchange")]),
    ("Receive", DIRECT, None, &[("run", "Exchange")],
        &[("answered", "Exchange"), ("page?", "Ask"), ("file?", "Load"), ("route?", "Exchange"),
            ("script?", "Exchange")]),
    ("PageCache", (Body::Async, Parallelism::Serial), Some("at_once"), &[("run", "Ask")],
        &[("out", "Exchange"), ("miss", "Load")]),
    ("CacheMiss", DIRECT, None, &[("run", "Load")],
        &[("out?", "Ask"), ("answered?", "Exchange"), ("slow", "Load")]),
    ("Disk", (Body::Blocking, Parallelism::Element), Some("at_once"), &[("run", "Load")],
        &[("out?", "Ask"), ("answered?", "Exchange")]),
    ("Route", (Body::Async, Parallelism::Element), Some("in_service"), &[("run", "Exchange")],
        &[("out", "Exchange")]),
    ("FastCgi", (Body::Async, Parallelism::Element), Some("in_service"), &[("run", "Exchange")],
        &[("out", "Exchange")]),
    ("Send", DIRECT, None, &[("run", "Exchange")], &[]),
];

/// The fields by which the graph divides items among shards.
const FIELDS: [(&str, &str); 2] = [("Ask", "key"), ("Exchange", "path")];

fn modules() -> Modules {
    let mut modules = Modules::default();
    for (item, field) in FIELDS {
        modules.items.insert(item.into(), vec![field.into()]);
    }
    for (name, (body, parallelism), params, inputs, outputs) in ROWS {
        let port = |&(name, item): &(&str, &str)| PortSignature {
            name: name.trim_end_matches('?').into(),
            item: Type::new(item),
            required: !name.ends_with('?'),
            clones: true,
            doc: String::new(),
        };
        let param = |name: &str| ParamSignature {
            name: name.into(),
            kind: Kind::Count,
            domain: Domain::default(),
            optional: false,
            doc: String::new(),
        };
        modules.insert(Signature {
            body,
            parallelism,
            params: params.iter().copied().map(param).collect(),
            inputs: inputs.iter().map(port).collect(),
            outputs: outputs.iter().map(port).collect(),
            ..Signature::new(name)
        });
    }
    modules
}

/// The graph for one server, and the stages made for its instances so far.
pub(super) struct Plan<'a> {
    plan: tussah_weave::Plan,
    pub(super) network: &'a Network,
    pub(super) server: &'a Arc<Server>,
    /// The names of the stages of each instance; several if it has shards.
    names: Vec<Vec<String>>,
    /// The stages that can be called, by the index of their instance.
    called: BTreeMap<usize, Box<dyn Any>>,
}

/// An edge that is a queue: the stages at its end, and the room for each.
pub(super) struct Queue<E> {
    stages: Vec<Stage<E>>,
    room: u64,
}

impl<E: Send + 'static> Queue<E> {
    /// Makes the edge, with a sender for each shard.
    pub(super) fn offers(&self, edges: &Edges<'_>) -> Result<Vec<TrySender<E>>, BuildError> {
        let stages = self.stages.iter();
        stages.map(|to| edges.to(to).offer(self.room)).collect()
    }
}

impl<'a> Plan<'a> {
    /// Reads the graph.
    ///
    /// # Errors
    /// Returns the errors in the text, one on each line.
    pub(super) fn new(
        text: &str,
        network: &'a Network,
        server: &'a Arc<Server>,
    ) -> Result<Self, BuildError> {
        let applications = of_applications(server, true).count();
        let routes = of_applications(server, false).count();
        let values = [
            ("room", Value::Count(server.room())),
            ("cached", Value::Flag(server.shards > 0)),
            ("shards", Value::Count(server.shards.max(1) as u64)),
            ("dynamic", Value::Flag(routes > 0)),
            ("routes", Value::Count(routes.max(1) as u64)),
            ("scripts", Value::Flag(applications > 0)),
            ("applications", Value::Count(applications.max(1) as u64)),
        ];
        let values = values.map(|(name, value)| (name.to_owned(), value)).into();
        let parsed = parse(text);
        let checked = check(&parsed.file, Some(&modules()));
        let mut errors: Vec<_> = parsed.diagnostics;
        errors.extend(checked.diagnostics);
        let plan = match (&*checked.graphs, errors.is_empty()) {
            ([graph], true) => graph.instantiate(&values, 1),
            _ => Err(errors),
        };
        let plan = plan.map_err(|errors| {
            let errors = errors.iter().map(|error| {
                let line = text[..error.span.start as usize].lines().count();
                format!("web.weave:{line}: {}", error.message)
            });
            failed("web.weave", errors.collect::<Vec<_>>().join("\n"))
        })?;
        let names = plan.nodes.iter().map(|node| names(node, server)).collect();
        Ok(Self {
            plan,
            network,
            server,
            names,
            called: BTreeMap::new(),
        })
    }

    /// Returns the instances in an order in which each comes after those that it sends to. A page
    /// cache comes last: the stages before and behind it send to one another.
    pub(super) fn order(&self) -> Vec<usize> {
        let mut order = Vec::new();
        for node in 0..self.plan.nodes.len() {
            self.visit(node, &mut order);
        }
        let is_cache = |&node: &usize| self.node(node).module == "PageCache";
        let (caches, mut others): (Vec<_>, Vec<_>) = order.into_iter().partition(is_cache);
        others.extend(caches);
        others
    }

    fn visit(&self, node: usize, order: &mut Vec<usize>) {
        if order.contains(&node) {
            return;
        }
        if self.node(node).module != "PageCache" {
            for edge in self.plan.edges.iter().filter(|edge| edge.from.node == node) {
                self.visit(edge.to.node, order);
            }
        }
        order.push(node);
    }

    pub(super) fn node(&self, node: usize) -> &PlanNode {
        &self.plan.nodes[node]
    }

    /// Begins the stage of an instance without shards.
    pub(super) fn stage<E: Send + 'static>(&self, node: usize) -> StageBuilder<E> {
        self.network.stage(&self.names[node][0])
    }

    /// Returns the names of an instance's stages.
    pub(super) fn names(&self, node: usize) -> &[String] {
        &self.names[node]
    }

    /// Returns the instances of a module.
    pub(super) fn all(&self, module: &str) -> impl Iterator<Item = usize> {
        let nodes = self.plan.nodes.iter().enumerate();
        nodes.filter_map(move |(at, node)| (node.module == module).then_some(at))
    }

    /// Returns the only argument of an instance.
    pub(super) fn count(&self, node: usize) -> Result<u64, BuildError> {
        match &*self.node(node).args {
            [arg] => match arg.value {
                Value::Count(count) => Ok(count),
                _ => Err(self.failed(node, "the argument is not a count")),
            },
            _ => Err(self.failed(node, "expected one argument")),
        }
    }

    /// Keeps a stage that can be called.
    pub(super) fn keep<H: DirectHandler>(
        &mut self,
        node: usize,
        stage: Stage<H::Event, DirectHost<H>>,
    ) {
        self.called.insert(node, Box::new(stage));
    }

    /// Returns whether an output has an edge.
    pub(super) fn has(&self, node: usize, port: &str) -> bool {
        self.edge(node, port).is_ok()
    }

    /// Returns the stage that the edge of an output calls.
    ///
    /// # Errors
    /// Returns an error if there is no such edge, or if its stage has another handler.
    pub(super) fn call<H: DirectHandler>(
        &self,
        node: usize,
        port: &str,
    ) -> Result<Stage<H::Event, DirectHost<H>>, BuildError> {
        let edge = self.edge(node, port)?;
        let stage = self.called.get(&edge.to.node);
        let stage = stage.and_then(|stage| stage.downcast_ref());
        match (edge.via, stage) {
            (PlanVia::Call, Some(stage)) => Ok(Stage::clone(stage)),
            _ => Err(self.failed(
                node,
                format!("expected a call of another stage at `{edge}`"),
            )),
        }
    }

    /// Returns the stages to which the edge of an output leads by a queue.
    ///
    /// # Errors
    /// Returns an error if there is no such edge, or if it is no queue that sheds.
    pub(super) fn queue<E: Send + 'static>(
        &self,
        node: usize,
        port: &str,
    ) -> Result<Queue<E>, BuildError> {
        let edge = self.edge(node, port)?;
        let PlanVia::Queue {
            room: Some(room),
            when_full: WhenFull::Shed,
        } = edge.via
        else {
            return Err(self.failed(node, format!("expected a queue that sheds at `{edge}`")));
        };
        let names = self.names[edge.to.node].iter();
        let stages = names
            .map(|name| self.network.find(name))
            .collect::<Result<_, _>>();
        Ok(Queue {
            stages: stages?,
            room,
        })
    }

    fn edge(&self, node: usize, port: &str) -> Result<&PlanEdge, BuildError> {
        let mut edges = self.plan.edges.iter();
        let found = edges.find(|edge| edge.from.node == node && edge.from.port == port);
        found.ok_or_else(|| self.failed(node, format!("web.weave has no edge from `{port}`")))
    }

    fn failed(&self, node: usize, why: impl Into<String>) -> BuildError {
        failed(&self.node(node).name, why)
    }
}

fn failed(stage: &str, why: impl Into<String>) -> BuildError {
    BuildError::Handler {
        stage: stage.into(),
        why: why.into(),
    }
}

/// Returns the indices of the routes that FastCGI applications answer, or of the others.
pub(super) fn of_applications(server: &Server, is: bool) -> impl Iterator<Item = usize> {
    let routes = server.routes.all().iter().enumerate();
    let found = routes.filter(move |(_, (_, route))| route.is_application == is);
    found.map(|(index, _)| index)
}

/// Returns the names of the stages of an instance.
fn names(node: &PlanNode, server: &Server) -> Vec<String> {
    let name = node.name.replace('_', " ");
    match &node.shards {
        None => vec![name],
        Some(_) if ["Route", "FastCgi"].contains(&&*node.module) => {
            let routes = of_applications(server, node.module == "FastCgi");
            let all = server.routes.all();
            routes
                .map(|route| format!("{name} {}", all[route].0))
                .collect()
        }
        Some(shards) => (0..shards.count).map(|n| format!("{name} {n}")).collect(),
    }
}
