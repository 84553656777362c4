//! The scarce resources because of which a stage rejects events.

use std::fmt;
use std::sync::Arc;

/// A scarce resource that causes a stage to reject events.
///
/// A stage names the resource that its handlers waited for when it rejected an event. The stage
/// knows the waits of the handlers themselves, but not the waits of threads that handlers have
/// spawned.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
#[non_exhaustive]
pub enum Resource {
    /// The [`Limit`](crate::sync::Limit) with this name: handlers wait for its permits.
    Limit(Arc<str>),
    /// The stage with this name: events of the [path](crate::stage::StageBuilder::whole_path) wait
    /// in its queue.
    Stage(Arc<str>),
    /// The workers: handlers spend most of their time computing, or ready to compute.
    Workers,
    /// The servlets of the stage: all servlets that the stage may have are busy.
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

/// The use of a [`Limit`](crate::sync::Limit) that the handlers of a stage wait for, or of a later
/// stage of the [path](crate::stage::StageBuilder::whole_path).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LimitUse {
    /// The name of the limit or of the stage.
    pub name: Arc<str>,
    /// The number of permits, or the maximum number of busy servlets.
    pub permits: usize,
    /// The number of permits in use by any caller, or the number of busy servlets.
    pub in_use: usize,
    /// The number of futures of any caller that wait for a permit, or the number of queued events.
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
