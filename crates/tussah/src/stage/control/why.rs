//! The reasons of controllers for their decisions.

use std::fmt;

/// The reason why a controller changes the number of servlets; for the stage's log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Why {
    /// The numbers in the log show the reason.
    #[default]
    Unsaid,
    /// More events wait than arrived within a service time. A resource for which handlers wait may
    /// be scarce; in that case, fewer events in service would complete as many.
    TriesFewer,
    /// A resource that was scarce may no longer be scarce.
    TriesMore,
    /// A resource for which handlers wait is scarce.
    MoreDoNoMore,
    /// Nothing is scarce: services simply take that long.
    FewerDoLess,
    /// Nothing is scarce any longer.
    NobodyWaits,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Why::Unsaid => "",
            Why::TriesFewer => "looks whether fewer in service complete as many",
            Why::TriesMore => "looks whether more in service complete more",
            Why::MoreDoNoMore => "more in service bring no more completions",
            Why::FewerDoLess => "fewer in service bring fewer completions",
            Why::NobodyWaits => "no event waits any longer",
        })
    }
}
