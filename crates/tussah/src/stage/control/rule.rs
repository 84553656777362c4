//! By what a controller lets events in.

use std::fmt;

/// By what a controller lets events of a class in, besides the settings that it asks for; for the stage's log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Rule {
    /// All of them.
    #[default]
    All,
    /// All of them, made smaller by the stage's degradation hook.
    Degraded,
    /// Those that can be answered in time, as it predicts.
    InTime,
    /// One that finds fewer credits than this in the queue and events in service.
    Below(u64),
    /// So many a second.
    Rate(u64),
    /// All but so many in a thousand.
    AllBut(u16),
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rule::All => f.write_str("all"),
            Rule::Degraded => f.write_str("all, degraded"),
            Rule::InTime => f.write_str("who is in time"),
            Rule::Below(inside) => write!(f, "below {inside}"),
            Rule::Rate(per_second) => write!(f, "{per_second} a second"),
            Rule::AllBut(permille) => write!(f, "all but {permille} in 1000"),
        }
    }
}
