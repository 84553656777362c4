//! The scarce resources because of which a stage rejects events.

use std::fmt;
use std::sync::Arc;

/// A scarce resource that causes a stage to reject events.
///
/// When a stage rejects an event, the stage names the resource that its handlers wait for. The
/// stage notices when a handler itself waits, but not when a thread that the handler has spawned
/// waits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
#[non_exhaustive]
pub enum Resource {
    /// The [`Limit`](crate::sync::Limit) with this name: handlers wait for its permits.
    Limit(Arc<str>),
    /// The stage with this name: events of the [path](crate::stage::StageBuilder::whole_path) wait
    /// in its queue.
    Stage(Arc<str>),
    /// The workers: handlers spend most of their time computing or waiting for a worker.
    Workers,
    /// The servlets of the stage: the stage has reached its maximum number of busy servlets.
    Servlets,
    /// A resource that the stage cannot see, such as a backend that slows down under load.
    #[default]
    Unknown,
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limit(name) => write!(f, "limit {name}"),
            Self::Stage(name) => write!(f, "stage {name}"),
            Self::Workers => f.write_str("workers"),
            Self::Servlets => f.write_str("servlets"),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

/// The current use of a resource that the handlers of a stage wait for: a
/// [`Limit`](crate::sync::Limit), or a later stage of the
/// [path](crate::stage::StageBuilder::whole_path).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LimitUse {
    /// The name of the limit or of the stage.
    pub name: Arc<str>,
    /// The number of permits of the limit, or the maximum number of busy servlets of the stage.
    pub permits: usize,
    /// For a limit, the number of permits in use by all callers together; for a stage, the number
    /// of busy servlets.
    pub in_use: usize,
    /// For a limit, the number of futures, of all callers together, that are waiting for a permit;
    /// for a stage, the number of queued events.
    pub waiting: usize,
}

impl fmt::Display for LimitUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, in_use, permits) = (&self.name, self.in_use, self.permits);
        write!(
            f,
            "{in_use} of {permits} in `{name}`, {} waiting",
            self.waiting
        )
    }
}
