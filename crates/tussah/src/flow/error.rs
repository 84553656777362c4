//! The errors of making a graph.

use std::fmt;

use crate::stage::BuildError;

/// The reason why a graph could not be made or used.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum GraphError {
    /// The graph already has an instance of this name.
    NameTaken {
        /// The name.
        name: String,
    },
    /// The graph has no instance of this name.
    NoInstance {
        /// The requested name.
        name: String,
        /// The existing names.
        known: Vec<String>,
    },
    /// An instance has no such port.
    NoPort {
        /// The instance.
        instance: String,
        /// The requested port.
        port: String,
        /// The ports that it has.
        known: Vec<String>,
    },
    /// The two ends of an edge have different types.
    WrongType {
        /// The output port.
        from: String,
        /// The type that it sends.
        sends: &'static str,
        /// The input port.
        to: String,
        /// The type that it takes.
        takes: &'static str,
    },
    /// A port with several edges has items that cannot be cloned.
    NotClone {
        /// The output port.
        from: String,
        /// The type that it sends.
        item: &'static str,
    },
    /// An output port has no edge.
    Unconnected {
        /// The output port.
        from: String,
    },
    /// An instance has shards, but one of them was expected.
    Shards {
        /// The instance.
        instance: String,
        /// The names of its shards.
        shards: Vec<String>,
    },
    /// An argument of an instance is missing or wrong, or the instance could not be made.
    Instance {
        /// The instance.
        instance: String,
        /// The reason.
        why: String,
    },
    /// A source ended early, while the graph was running.
    Source {
        /// The instance.
        instance: String,
        /// The reason.
        why: String,
    },
    /// A stage or an edge could not be made.
    Stage(BuildError),
}

impl fmt::Display for GraphError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NameTaken { name } => write!(
                f,
                "there is an instance `{name}` already: expected another name"
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
            Self::Shards { instance, shards } => write!(
                f,
                "`{instance}` has shards: expected one of {}",
                list(shards)
            ),
            Self::Instance { instance, why } => {
                write!(f, "the instance `{instance}` could not be made: {why}")
            }
            Self::Source { instance, why } => write!(f, "the source `{instance}` failed: {why}"),
            Self::Stage(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for GraphError {}

impl From<BuildError> for GraphError {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::Handler { stage, why } => Self::Instance {
                instance: stage,
                why,
            },
            error => Self::Stage(error),
        }
    }
}

fn list(known: &[String]) -> String {
    if known.is_empty() {
        return "none".to_owned();
    }
    format!("`{}`", known.join("`, `"))
}
