//! Errors from creating or finding stages and edges.

use std::fmt;

use super::control::Owns;

/// The error returned when a stage or an edge cannot be created or found.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// The network already has a stage with this name.
    NameTaken {
        /// The name that is already in use.
        name: String,
        /// The source position of the existing stage, such as `src/main.rs:12:5`.
        position: String,
    },
    /// The network has no stage with this name.
    NotFound {
        /// The requested name.
        name: String,
        /// The names of all stages of the network.
        known: Vec<String>,
    },
    /// The stage with this name takes events of another type.
    WrongType {
        /// The name of the stage.
        name: String,
        /// The source position of the stage.
        position: String,
        /// The requested event type.
        expected: &'static str,
        /// The stage's event type.
        found: &'static str,
    },
    /// Two controllers own the same setting.
    TwoOwners {
        /// The name of the stage.
        stage: String,
        /// The names of the controllers, in the order in which they were added.
        controllers: [&'static str; 2],
        /// The settings that both controllers own.
        settings: Owns,
    },
    /// A controller owns a setting that the stage does not have.
    NoSuchSetting {
        /// The name of the stage.
        stage: String,
        /// The name of the controller.
        controller: &'static str,
        /// The settings that the controller owns but the stage does not have.
        settings: Owns,
        /// The settings that the stage has.
        has: Owns,
    },
    /// The edge would close a cycle of awaited sends and calls, which can deadlock.
    Cycle {
        /// The names of the stages in the cycle, which starts and ends at the source of the new
        /// edge.
        path: Vec<String>,
    },
    /// An edge or a proxy would lead to a stage of another network.
    OtherNetwork {
        /// The name of the receiving stage.
        stage: String,
        /// The name of the receiving stage's network.
        network: String,
        /// The name of the sending stage's network.
        expected: String,
    },
    /// A proxy requires an edge between the two stages, but there is none.
    NoEdge {
        /// The name of the sending stage.
        from: String,
        /// The name of the receiving stage.
        to: String,
    },
    /// The edge between the two stages already has a proxy.
    Proxied {
        /// The name of the sending stage.
        from: String,
        /// The name of the receiving stage.
        to: String,
        /// The name of the existing proxy.
        by: String,
    },
    /// A call edge cannot lead to a stage whose handler blocks.
    Blocks {
        /// The name of the stage.
        stage: String,
        /// The source position of the stage.
        position: String,
    },
    /// The stage is closed, for example because it was destroyed or its handler panicked too often.
    Closed {
        /// The name of the stage.
        stage: String,
    },
    /// The function that creates the handler failed.
    Handler {
        /// The name of the stage.
        stage: String,
        /// The error that the function returned.
        why: String,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NameTaken { name, position } => write!(
                f,
                "there is a stage `{name}` already, created at {position}: expected another name"
            ),
            Self::NotFound { name, known } => not_found(f, name, known),
            Self::WrongType {
                name,
                position,
                expected,
                found,
            } => write!(
                f,
                "the stage `{name}`, created at {position}, takes `{found}`: expected `{expected}`"
            ),
            Self::TwoOwners {
                stage,
                controllers: [one, other],
                settings,
            } => write!(
                f,
                "the stage `{stage}` has two controllers, `{one}` and `{other}`, that both decide its {settings}: expected one owner of each setting"
            ),
            Self::NoSuchSetting {
                stage,
                controller,
                settings,
                has,
            } => write!(
                f,
                "the controller `{controller}` decides {settings}, which the stage `{stage}` does not have: expected a controller of its {has}"
            ),
            Self::Cycle { path } => write!(
                f,
                "the edge would close a cycle of awaited sends and calls, in which all could wait for each other: {}; make one of these edges with `.offer(..)`",
                path.join(" -> ")
            ),
            Self::OtherNetwork {
                stage,
                network,
                expected,
            } => write!(
                f,
                "the stage `{stage}` is of the network `{network}`: expected one of `{expected}`, whose edges and proxies are its own; `Stage::sender` sends to any"
            ),
            Self::NoEdge { from, to } => {
                write!(
                    f,
                    "there is no edge from `{from}` to `{to}` that a proxy could be put in"
                )
            }
            Self::Proxied { from, to, by } => write!(
                f,
                "the proxy `{by}` is between `{from}` and `{to}` already: expected another place, before or behind it"
            ),
            Self::Blocks { stage, position } => write!(
                f,
                "the handler of `{stage}` blocks, and can't be called in the servlet of another stage: expected `.queue(..)`; `{stage}` is created at {position}"
            ),
            Self::Closed { stage } => write!(f, "the stage `{stage}` is closed"),
            Self::Handler { stage, why } => {
                write!(f, "the handler of `{stage}` could not be made: {why}")
            }
        }
    }
}

impl std::error::Error for BuildError {}

fn not_found(f: &mut fmt::Formatter<'_>, name: &str, known: &[String]) -> fmt::Result {
    if known.is_empty() {
        return write!(f, "there is no stage `{name}`: the network has none yet");
    }
    let known = known.join("`, `");
    write!(f, "there is no stage `{name}`: expected one of `{known}`")
}
