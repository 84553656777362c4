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

impl Rule {
    /// Its number, if it has one, and by how much two of its kind may differ and be as good as the same.
    pub(super) fn number(&self) -> Option<(u64, u64)> {
        match self {
            Rule::All | Rule::Degraded | Rule::InTime => None,
            Rule::Below(number) | Rule::Rate(number) => Some((*number, 1)),
            Rule::AllBut(permille) => Some((u64::from(*permille), 9)),
        }
    }

    /// Whether both are of one kind.
    pub(super) fn is_like(&self, other: &Rule) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
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
