//! Graphs from text: the modules that Weave may use, and the conversion of text into a graph.

mod build;

use std::collections::BTreeMap;
use std::fmt;
#[cfg(feature = "cli")]
use std::sync::Arc;

use tussah_weave::{Diagnostic, Signature, Span, Type, Value};

use super::args::Args;
use super::error::{GraphError, WeaveError};
use super::graph::Graph;
use super::module::Module;
#[cfg(feature = "cli")]
use super::text::AnyText;

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
        let (name, known) = (signature.name.clone(), &mut self.signatures.types);
        match signature.generics.is_empty() {
            true => drop(known.remove(&name)),
            false => drop(known.insert(name, all.iter().map(|(it, _)| it.clone()).collect())),
        }
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
        let at = |span: Span| span.place(file, text);
        self.build(&plan, params, &at).map_err(|(error, span)| {
            let error = Diagnostic::error(span, error);
            WeaveError(error.render(file, text))
        })
    }
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
