//! The errors of creating a graph.

use std::fmt;

use tussah_weave::suggest;

use crate::stage::BuildError;

/// An error from creating or using a graph. Its `Debug` form is its message, because `main` prints
/// this form of an error that it returns.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum GraphError {
    /// The graph already has an instance with this name.
    NameTaken {
        /// The name that is already in use.
        name: String,
        /// The source position of the existing instance.
        position: String,
    },
    /// The graph has no instance with this name.
    NoInstance {
        /// The requested name.
        name: String,
        /// The names of all instances.
        known: Vec<String>,
    },
    /// An instance has no port with this name.
    NoPort {
        /// The name of the instance.
        instance: String,
        /// The requested port.
        port: String,
        /// The names of the ports that the instance has.
        known: Vec<String>,
    },
    /// The two ends of an edge have different types.
    WrongType {
        /// The output port.
        from: String,
        /// The type of the items that the output port sends.
        sends: &'static str,
        /// The input port.
        to: String,
        /// The type of the items that the input port takes.
        takes: &'static str,
    },
    /// An output port has several edges, but its items cannot be cloned.
    NotClone {
        /// The output port.
        from: String,
        /// The type of the items that the output port sends.
        item: &'static str,
    },
    /// A required output port has no edge.
    Unconnected {
        /// The output port.
        from: String,
    },
    /// The graph has no edge with this name.
    NoEdge {
        /// The requested edge.
        edge: String,
        /// The existing edges.
        known: Vec<String>,
    },
    /// The name of an output port was given instead of the name of an edge, but the port has
    /// several edges.
    SeveralEdges {
        /// The output port.
        from: String,
        /// Its edges.
        edges: Vec<String>,
    },
    /// The name of an instance with shards was given where the name of one shard is required.
    Shards {
        /// The name of the instance.
        instance: String,
        /// The names of the instance's shards.
        shards: Vec<String>,
    },
    /// An argument of an instance is missing or invalid, or the instance could not be created.
    Instance {
        /// The name of the instance.
        instance: String,
        /// The source position at which the instance was added, such as `web.weave:7:3` or
        /// `src/main.rs:12:5`. `None` if the call at this position returned the error.
        position: Option<String>,
        /// The reason.
        why: String,
    },
    /// The module of an instance cannot be swapped.
    Swap {
        /// The name of the instance.
        instance: String,
        /// The name of the new module.
        module: &'static str,
        /// The reason.
        why: String,
    },
    /// The module cannot serve as a proxy on the edge.
    Proxy {
        /// The edge.
        edge: String,
        /// The name of the module.
        module: &'static str,
        /// The reason.
        why: String,
    },
    /// A source failed while the graph was running.
    Source {
        /// The name of the instance.
        instance: String,
        /// The reason.
        why: String,
    },
    /// A stage or an edge could not be created.
    Stage(BuildError),
}

impl fmt::Display for GraphError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NameTaken { name, position } => write!(
                f,
                "there is an instance `{name}` already, added at {position}: expected another name"
            ),
            Self::NoInstance { name, known } => write!(
                f,
                "there is no instance `{name}`: expected one of {}",
                list(known)
            ),
            Self::NoPort {
                instance,
                port,
                known,
            } => write!(
                f,
                "the instance `{instance}` has no port `{port}`: expected one of {}",
                list(known)
            ),
            Self::WrongType {
                from,
                sends,
                to,
                takes,
            } => write!(f, "`{from}` sends `{sends}`, but `{to}` takes `{takes}`"),
            Self::NotClone { from, item } => write!(
                f,
                "`{from}` has several edges, but its item `{item}` cannot be cloned"
            ),
            Self::Unconnected { from } => write!(f, "the port `{from}` has no edge"),
            Self::NoEdge { edge, known } => no_edge(f, edge, known),
            Self::SeveralEdges { from, edges } => write!(
                f,
                "`{from}` has several edges: expected one of {}",
                list(edges)
            ),
            Self::Shards { instance, shards } => write!(
                f,
                "`{instance}` has shards: expected one of {}",
                list(shards)
            ),
            Self::Instance {
                instance,
                position,
                why,
            } => {
                write!(f, "the instance `{instance}`")?;
                if let Some(position) = position {
                    write!(f, " at {position}")?;
                }
                write!(f, " could not be made: {why}")
            }
            Self::Swap {
                instance,
                module,
                why,
            } => write!(
                f,
                "the module of `{instance}` cannot be swapped to `{module}`: {why}"
            ),
            Self::Proxy { edge, module, why } => {
                write!(f, "`{module}` cannot be a proxy on `{edge}`: {why}")
            }
            Self::Source { instance, why } => write!(f, "the source `{instance}` failed: {why}"),
            Self::Stage(BuildError::Cycle { path }) => cycle(f, path),
            Self::Stage(error) => error.fmt(f),
        }
    }
}

impl fmt::Debug for GraphError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for GraphError {}

fn cycle(f: &mut fmt::Formatter<'_>, path: &[String]) -> fmt::Result {
    write!(
        f,
        "the edges close a cycle in which all could wait for each other: {}; let one of these edges drop items, with `WhenFull::Shed` or `WhenFull::DropOldest`",
        path.join(" -> ")
    )
}

fn no_edge(f: &mut fmt::Formatter<'_>, edge: &str, known: &[String]) -> fmt::Result {
    match suggest::help(edge, known.iter().map(String::as_str)) {
        Some(help) => write!(f, "there is no edge `{edge}`: {help}"),
        None => write!(f, "there is no edge `{edge}`"),
    }
}

impl GraphError {
    pub(super) fn instance(instance: &str, why: String) -> Self {
        Self::Instance {
            instance: instance.to_owned(),
            position: None,
            why,
        }
    }

    /// Adds the source position to an error of an instance.
    pub(super) fn at(mut self, at: &str) -> Self {
        if let Self::Instance { position, .. } = &mut self {
            *position = Some(at.to_owned());
        }
        self
    }
}

impl From<BuildError> for GraphError {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::Handler { stage, why } => Self::instance(&stage, why),
            error => Self::Stage(error),
        }
    }
}

/// The errors in a Weave text, each shown as an excerpt of the text with an explanation.
#[derive(Clone, PartialEq, Eq)]
pub struct WeaveError(pub(super) String);

impl fmt::Display for WeaveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for WeaveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WeaveError {}

fn list(known: &[String]) -> String {
    if known.is_empty() {
        return "none".to_owned();
    }
    format!("`{}`", known.join("`, `"))
}
