//! Why a stage or an edge could not be made or found.

use std::fmt;

use super::control::Owns;

/// Why a stage or an edge could not be made or found.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// The network has a stage of this name already.
    NameTaken {
        /// The name.
        name: String,
    },
    /// The network has no stage of this name.
    NotFound {
        /// The name that was looked for.
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// The stage of this name takes other events.
    WrongType {
        /// The stage.
        name: String,
        /// The type of event that was asked for.
        expected: &'static str,
        /// The type of event that the stage takes.
        found: &'static str,
    },
    /// Two controllers own the same setting.
    TwoOwners {
        /// The stage.
        stage: String,
        /// The controllers, the first one first.
        controllers: [&'static str; 2],
        /// What both own.
        settings: Owns,
    },
    /// A controller decides what the stage does not have.
    NoSuchSetting {
        /// The stage.
        stage: String,
        /// The controller.
        controller: &'static str,
        /// What it decides in vain.
        settings: Owns,
        /// What can be decided.
        has: Owns,
    },
    /// The edge would close a cycle of awaited sends and calls, in which all stages could wait for each other.
    Cycle {
        /// The stages of the cycle, from the new edge's source back to it.
        path: Vec<String>,
    },
    /// An edge or a proxy can't lead to a stage of another network.
    OtherNetwork {
        /// The stage that should be sent to.
        stage: String,
        /// The network that it is of.
        network: String,
        /// The network of the stage that should send.
        expected: String,
    },
    /// A proxy can't be put where there is no edge.
    NoEdge {
        /// The stage that should send.
        from: String,
        /// The stage that should be sent to.
        to: String,
    },
    /// There is a proxy between the two stages already.
    Proxied {
        /// The stage that sends.
        from: String,
        /// The stage that is sent to.
        to: String,
        /// The proxy.
        by: String,
    },
    /// A stage whose handler blocks can't be called in another's servlet.
    Blocks {
        /// The stage.
        stage: String,
    },
    /// The stage has been destroyed, or its handler has panicked too often.
    Closed {
        /// The stage.
        stage: String,
    },
    /// The handler's maker failed.
    Handler {
        /// The stage.
        stage: String,
        /// What it said.
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
