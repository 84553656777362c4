//! The result of the search for the knee.

use super::Why;

/// The scarce resource, as far as it is known.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(in super::super) struct Scarce {
    /// Events completed per nanosecond.
    pub(in super::super) per_ns: f64,
    /// The time that an event may occupy a servlet, in nanoseconds: the unloaded time and the
    /// slack.
    pub(in super::super) service_ns: f64,
}

/// The wanted number of servlets and the scarce resource.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(in super::super) struct Asked {
    pub(in super::super) servlets: usize,
    pub(in super::super) scarce: Option<Scarce>,
    pub(in super::super) why: Why,
}
