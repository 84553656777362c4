//! Observability of a network: statistics, graphs, recordings and traces.

mod network_graph;
mod record;
mod stats;
mod trace;

pub use self::network_graph::{NetworkGraph, Node};
pub use self::record::{COLUMNS, Recording};
pub use self::stats::{Responses, StageStats};
pub use self::trace::{SPANS_MAX, Span, SpanEnd, Traces};
pub use super::network::{Edge, EdgeKind};
pub use super::state::Digest;

pub(crate) use self::trace::{Marks, Tracer};
