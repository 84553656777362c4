//! Graphs from text: the modules that Weave may use, and the conversion of text into a graph.

use std::collections::BTreeMap;
use std::fmt;
#[cfg(feature = "cli")]
use std::sync::Arc;

use tussah_weave::{
    Diagnostic, Plan, PlanEdge, PlanNode, PlanShards, PlanVia, PortRef, Signature, Span, Type,
    Value,
};

use super::args::Args;
use super::error::{GraphError, WeaveError};
use super::graph::Graph;
use super::module::Module;
#[cfg(feature = "cli")]
use super::text::AnyText;
use super::via::{Via, WhenFull};

/// The modules that a Weave graph may use, by name.
///
/// # Examples
/// ```
/// use tussah::flow::{AsyncOut, Modules, Params, module};
///
/// struct Numbers(u64);
///
/// #[module]
/// impl Numbers {
///     fn init(below: u64) -> Self {
///         Self(below)
///     }
///
///     async fn start(&self, out: &impl AsyncOut<u64>) {
///         for number in 0..self.0 {
///             out.send(number).await;
///         }
///     }
/// }
///
/// #[derive(Default)]
/// struct Print;
///
/// #[module]
/// impl Print {
///     fn run(&mut self, number: u64) {
///         println!("{number}");
///     }
/// }
///
/// let modules = Modules::new().with::<Numbers>("Numbers").with::<Print>("Print");
/// let text = "
///     use Numbers, Print
///     graph Count(below: count = 10) {
///       numbers = Numbers(below)
///       print   = Print()
///       numbers -> print
///     }
/// ";
/// let graph = modules.graph("count.weave", text, &Params::new())?;
/// # let runtime = tussah::Runtime::builder().workers(1).build().expect("a runtime");
/// # runtime.block_on(async {
/// graph.start().expect("the graph is whole").drain().await;
/// # });
///
/// let wrong = text.replace("-> print", "-> prnt");
/// let wrong = modules.graph("count.weave", &wrong, &Params::new());
/// let message = wrong.expect_err("there is no `prnt`").to_string();
/// assert!(message.contains("count.weave:6:18"), "{message}");
/// # Ok::<(), tussah::flow::WeaveError>(())
/// ```
#[derive(Clone, Default)]
pub struct Modules {
    pub(super) signatures: tussah_weave::Modules,
    /// For each name, the modules with the arguments of their type parameters.
    add: BTreeMap<String, Vec<(Vec<Type>, Add)>>,
    /// The types of items, as text.
    #[cfg(feature = "cli")]
    pub(super) texts: Vec<Arc<dyn AnyText>>,
}

/// Adds an instance of a known module to a graph.
type Add = fn(&mut Graph, &str, Args) -> Result<(), GraphError>;

impl Modules {
    /// Creates an empty set of modules.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a module under a name, such as `Parse` or `http::Listen`.
    ///
    /// Add a generic module once for each type of item that it handles in graphs. A graph need not
    /// name the item type, because the edges of the instance determine it.
    ///
    /// ```
    /// use tussah::flow::{Modules, Out, module};
    ///
    /// /// Discards items.
    /// struct Discard<T>(std::marker::PhantomData<fn(T)>);
    ///
    /// #[module]
    /// impl<T: Send + 'static> Discard<T> {
    ///     fn init() -> Self {
    ///         Self(std::marker::PhantomData)
    ///     }
    ///
    ///     fn run(&self, _item: T) {}
    /// }
    ///
    /// let modules = Modules::new()
    ///     .with::<Discard<String>>("Discard")
    ///     .with::<Discard<u64>>("Discard");
    /// assert_eq!(modules.signatures().signatures["Discard"].generics, ["T"]);
    /// ```
    #[must_use]
    pub fn with<M: Module>(mut self, name: &str) -> Self {
        let described = M::describe();
        #[cfg(feature = "cli")]
        self.texts.extend(described.texts);
        let (signature, types) = (described.signature, described.types);
        for (of, fields) in described.fields {
            let fields = fields.iter().map(|&field| field.to_owned());
            let items = &mut self.signatures.items;
            items.insert(of.to_string(), fields.collect());
        }
        let name = name.to_owned();
        self.insert(Signature { name, ..signature }, types, Graph::add::<M>);
        self
    }

    /// Adds all modules of `other` to this set.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        let mut add = other.add;
        for signature in other.signatures.signatures.into_values() {
            for (types, add) in add.remove(&signature.name).unwrap_or_default() {
                self.insert(signature.clone(), types, add);
            }
        }
        self.signatures.items.extend(other.signatures.items);
        #[cfg(feature = "cli")]
        self.texts.extend(other.texts);
        self
    }

    fn insert(&mut self, signature: Signature, types: Vec<Type>, add: Add) {
        let all = self.add.entry(signature.name.clone()).or_default();
        // Another module of this name replaces the whole generic module.
        all.retain(|(known, _)| known.len() == types.len() && *known != types);
        all.push((types, add));
        self.signatures.insert(signature);
    }

    /// Returns the signatures of the modules.
    #[must_use]
    pub fn signatures(&self) -> &tussah_weave::Modules {
        &self.signatures
    }

    /// Creates a graph from Weave text. If the text defines several graphs, this method creates the
    /// one that [`Params::graph`] selects, or by default the last one without ports.
    ///
    /// # Errors
    /// Returns all errors in the text, with their positions in `file`. Also returns an error if an
    /// argument is missing or invalid.
    pub fn graph(&self, file: &str, text: &str, params: &Params) -> Result<Graph, WeaveError> {
        self.read(file, text, params, None)
    }

    /// Creates a graph from Weave text. If `only` names a graph, ignores all parts of the text that
    /// this graph does not use.
    pub(super) fn read(
        &self,
        file: &str,
        text: &str,
        params: &Params,
        only: Option<&str>,
    ) -> Result<Graph, WeaveError> {
        let mut parsed = tussah_weave::parse(text);
        if let Some(graph) = only {
            parsed.file.keep(graph);
        }
        let fails = |diagnostics: &[Diagnostic]| {
            let errors = diagnostics.iter().filter(|it| it.is_error());
            let messages = errors.map(|error| error.render(file, text));
            WeaveError(messages.collect::<Vec<_>>().join("\n"))
        };
        if parsed.diagnostics.iter().any(Diagnostic::is_error) {
            return Err(fails(&parsed.diagnostics));
        }
        let checked = tussah_weave::check(&parsed.file, Some(&self.signatures));
        if checked.diagnostics.iter().any(Diagnostic::is_error) {
            return Err(fails(&checked.diagnostics));
        }
        let graphs = checked.graphs.iter();
        let whole = graphs.filter(|graph| graph.inputs.is_empty() && graph.outputs.is_empty());
        let mut named =
            whole.filter(|it| params.graph.as_ref().is_none_or(|name| it.name == *name));
        let graph = named.next_back().ok_or_else(|| {
            WeaveError(format!(
                "error: {file} has no graph that can run: expected one without ports"
            ))
        })?;
        let workers = std::thread::available_parallelism().map_or(1, |it| it.get() as u64);
        let workers = params.workers.unwrap_or(workers);
        let plan = graph.instantiate(&params.values, workers);
        let plan = plan.map_err(|diagnostics| fails(&diagnostics))?;
        self.build(&plan, params).map_err(|(error, span)| {
            let error = Diagnostic::error(span, error);
            WeaveError(error.render(file, text))
        })
    }

    /// Creates a graph from a plan.
    ///
    /// # Errors
    /// Returns the reason and the position if a part of the plan is not supported, or if an
    /// argument is invalid.
    pub(super) fn build(&self, plan: &Plan, params: &Params) -> Result<Graph, (String, Span)> {
        let mut graph = Graph::new(plan.name.clone());
        for node in &plan.nodes {
            let args = arguments(node, params).map_err(|why| (why, node.span))?;
            let add = self.find(node).map_err(|why| (why, node.span))?;
            let added = match &node.shards {
                None => add(&mut graph, &node.name, args),
                Some(PlanShards { count, by }) => {
                    let add = |graph: &mut Graph, name: &str| add(graph, name, args.clone());
                    graph.add_group(&node.name, *count as usize, by.as_deref(), add)
                }
            };
            added.map_err(|error| (error.to_string(), node.span))?;
        }
        for limit in &plan.limits {
            let nodes = limit.nodes.iter().map(|&node| &*plan.nodes[node].name);
            graph
                .limit(limit.count as usize, &nodes.collect::<Vec<_>>())
                .map_err(|error| (error.to_string(), limit.span))?;
        }
        for edge in &plan.edges {
            let via = via(edge, plan);
            graph
                .connect_via(&end(plan, &edge.from), &end(plan, &edge.to), via)
                .map_err(|error| (error.to_string(), edge.span))?;
        }
        for shed in &plan.sheds {
            let name = &plan.nodes[shed.node].name;
            let result = graph
                .target(name, shed.above)
                .and_then(|()| match &shed.to {
                    None => Ok(()),
                    Some(to) => graph.connect(&format!("{name}.dropped"), &end(plan, to)),
                });
            result.map_err(|error| (error.to_string(), shed.span))?;
        }
        Ok(graph)
    }

    /// Returns the function that adds the module of a node.
    fn find(&self, node: &PlanNode) -> Result<Add, String> {
        let all = &self.add[&node.module];
        let fits = |types: &[Type]| types.iter().zip(&node.types).all(|(a, b)| a.fits(b));
        let mut found = all.iter().filter(|(types, _)| fits(types));
        let list = |types: &[Type]| {
            let types: Vec<_> = types.iter().map(Type::to_string).collect();
            format!("`{}`", types.join(", "))
        };
        match (found.next(), found.next()) {
            (Some((_, add)), None) => Ok(*add),
            (Some((one, _)), Some((other, _))) => Err(format!(
                "`{}` may be for {} or {}: expected more of the path of its type",
                node.module,
                list(one),
                list(other)
            )),
            (None, _) => {
                let known: Vec<_> = all.iter().map(|(types, _)| list(types)).collect();
                Err(format!(
                    "the program has no `{}` for {}: expected one of {}",
                    node.module,
                    list(&node.types),
                    known.join(", ")
                ))
            }
        }
    }
}

fn end(plan: &Plan, port: &PortRef) -> String {
    format!("{}.{}", plan.nodes[port.node].name, port.port)
}

fn arguments(node: &PlanNode, params: &Params) -> Result<Args, String> {
    let mut args = Args::new();
    for arg in &node.args {
        let name = arg.name.as_deref().expect("signatures name all arguments");
        args = match &arg.value {
            Value::Rust(param) => match params.typed.copy(param, name) {
                Some(one) => args.and(one),
                None => {
                    return Err(format!(
                        "the parameter `{param}` has a Rust type, and no value: expected one by `Params::typed`"
                    ));
                }
            },
            value => args.with(name, value.clone()),
        };
    }
    Ok(args)
}

fn via(edge: &PlanEdge, plan: &Plan) -> Via {
    let via = match edge.via {
        PlanVia::Call => Via::call(),
        PlanVia::Queue { room, when_full } => {
            let via = room.map_or_else(Via::default, Via::queue);
            match (when_full, limit_of_cycle(edge, plan)) {
                // An edge that closes a cycle may not wait. It has room for all items inside.
                (tussah_weave::WhenFull::Wait, Some(count)) => {
                    let room = via.room.max(count);
                    Via::queue(room).when_full(WhenFull::Shed)
                }
                (tussah_weave::WhenFull::Wait, None) => via,
                (tussah_weave::WhenFull::Shed, _) => via.when_full(WhenFull::Shed),
                (tussah_weave::WhenFull::DropOldest, _) => via.when_full(WhenFull::DropOldest),
            }
        }
    };
    match edge.after {
        None => via,
        Some(delay) => via.after(delay),
    }
}

/// Returns the limit around the cycle that the edge closes.
fn limit_of_cycle(edge: &PlanEdge, plan: &Plan) -> Option<u64> {
    let inside = |nodes: &[usize], end: &PortRef| nodes.contains(&end.node);
    let mut limits = plan.limits.iter().filter(|_| edge.back);
    let limit =
        limits.find(|limit| inside(&limit.nodes, &edge.from) && inside(&limit.nodes, &edge.to));
    limit.map(|limit| limit.count)
}

impl fmt::Debug for Modules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.add.keys()).finish()
    }
}

/// The values of a graph's parameters.
#[derive(Clone, Debug, Default)]
pub struct Params {
    values: BTreeMap<String, Value>,
    typed: Args,
    workers: Option<u64>,
    graph: Option<String>,
}

impl Params {
    /// Creates an empty set of values; every parameter then has its default value.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the value of a parameter. A string is converted to the kind of the parameter.
    #[must_use]
    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.values.insert(name.to_owned(), value);
        self
    }

    /// Sets a parameter to a value of any Rust type.
    #[must_use]
    pub fn typed<T: Clone + Send + Sync + 'static>(mut self, name: &str, value: T) -> Self {
        self.values
            .insert(name.to_owned(), Value::Rust(name.to_owned()));
        self.typed = self.typed.with(name, value);
        self
    }

    /// Selects a graph by name, if the text defines several graphs.
    #[must_use]
    pub fn graph(mut self, name: &str) -> Self {
        self.graph = Some(name.to_owned());
        self
    }

    /// Sets the value of `workers`; by default, it is the number of CPUs.
    #[must_use]
    pub fn workers(mut self, workers: u64) -> Self {
        self.workers = Some(workers);
        self
    }
}
