//! Errors of creating or finding a stage or an edge.

use std::fmt;

use super::control::Owns;

/// The reason why a stage or an edge could not be created or found.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// The network already has a stage of this name.
    NameTaken {
        /// The name.
        name: String,
    },
    /// The network has no stage of this name.
    NotFound {
        /// The requested name.
        name: String,
        /// The existing names.
        known: Vec<String>,
    },
    /// The stage of this name takes events of another type.
    WrongType {
        /// The stage.
        name: String,
        /// The requested type of event.
        expected: &'static str,
        /// The type of event that the stage takes.
        found: &'static str,
    },
    /// Two controllers own the same setting.
    TwoOwners {
        /// The stage.
        stage: String,
        /// The controllers, in the order in which they were added.
        controllers: [&'static str; 2],
        /// The settings that both controllers own.
        settings: Owns,
    },
    /// A controller owns a setting that the stage does not have.
    NoSuchSetting {
        /// The stage.
        stage: String,
        /// The controller.
        controller: &'static str,
        /// The settings that the stage does not have.
        settings: Owns,
        /// The settings of the stage.
        has: Owns,
    },
    /// The edge would close a cycle of awaited sends and calls, which can deadlock.
    Cycle {
        /// The stages of the cycle, from the new edge's source back to it.
        path: Vec<String>,
    },
    /// An edge or a proxy cannot lead to a stage of another network.
    OtherNetwork {
        /// The receiving stage.
        stage: String,
        /// The receiving stage's network.
        network: String,
        /// The network of the sending stage.
        expected: String,
    },
    /// A proxy requires an edge, and there is none.
    NoEdge {
        /// The sending stage.
        from: String,
        /// The receiving stage.
        to: String,
    },
    /// There already is a proxy between the two stages.
    Proxied {
        /// The sending stage.
        from: String,
        /// The receiving stage.
        to: String,
        /// The existing proxy.
        by: String,
    },
    /// A stage whose handler blocks cannot be called in the servlet of another stage.
    Blocks {
        /// The stage.
        stage: String,
    },
    /// The stage was destroyed, or its handler has panicked too often.
    Closed {
        /// The stage.
        stage: String,
    },
    /// The function that makes the handler failed.
    Handler {
        /// The stage.
        stage: String,
        /// The error that the function returned.
        why: String,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NameTaken { name } => write!(
                f,
                "there is a stage `{name}` already: expected another name"
            ),
            Self::NotFound { name, known } => not_found(f, name, known),
            Self::WrongType {
                name,
                expected,
                found,
            } => {
                write!(
                    f,
                    "the stage `{name}` takes `{found}`: expected `{expected}`"
                )
            }
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
            Self::Blocks { stage } => write!(
                f,
                "the handler of `{stage}` blocks, and can't be called in the servlet of another stage: expected `.queue(..)`"
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
