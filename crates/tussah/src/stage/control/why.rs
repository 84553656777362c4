//! The reasons that controllers give for their decisions.

use std::fmt;

/// The reason why a controller changed the number of servlets. The stage's log shows this reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Why {
    /// The controller gave no reason, because the numbers in the log already show it.
    #[default]
    Unsaid,
    /// The controller tests whether the throughput stays the same with fewer events in service. If
    /// it does, a resource that handlers wait for is scarce.
    TriesFewer,
    /// The controller tests whether more events in service increase the throughput. If the
    /// throughput increases, no resource is scarce.
    TriesMore,
    /// A resource that handlers wait for is scarce: more events in service do not increase the
    /// throughput.
    MoreDoNoMore,
    /// A resource is scarce: handlers wait for permits of a [`Limit`](crate::sync::Limit).
    PermitsInUse,
    /// No resource is scarce: with fewer events in service, the throughput falls.
    FewerDoLess,
    /// An earlier controller found that a resource was scarce, and stored this finding in the
    /// [`Memory`](super::Memory).
    Remembered,
    /// No event is waiting any longer, so no resource is scarce.
    NobodyWaits,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Why::Unsaid => "",
            Why::TriesFewer => "testing whether fewer events in service keep the throughput",
            Why::TriesMore => "testing whether more events in service increase the throughput",
            Why::MoreDoNoMore => "more events in service do not increase the throughput",
            Why::PermitsInUse => "handlers wait for permits",
            Why::FewerDoLess => "fewer events in service reduce the throughput",
            Why::Remembered => "an earlier controller found a scarce resource",
            Why::NobodyWaits => "no event is waiting any longer",
        })
    }
}
