//! The rules by which controllers admit events.

use std::fmt;

/// The rule by which a controller admits events of a class. The stage's log shows changes of the
/// rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Rule {
    /// All events are admitted.
    #[default]
    All,
    /// Every event is admitted, after the stage's degradation hook has reduced the work that the
    /// event requires.
    Degraded,
    /// Events are admitted if they can be answered in time, according to the controller's
    /// prediction.
    InTime,
    /// All events are admitted, because the controller only observes. In
    /// [`Mode::On`](super::Mode::On), the controller would reject events that cannot be answered in
    /// time.
    Observed,
    /// An event is admitted if the sum of the queued credits and the events in service is below
    /// this number.
    Below(u64),
    /// Events are admitted at this rate, in events per second.
    Rate(u64),
    /// This many of every 1,000 events are rejected.
    AllBut(u16),
}

impl Rule {
    /// Returns the number in the rule, if any, and the difference up to which two rules of its kind
    /// count as the same.
    pub(super) fn number(&self) -> Option<(u64, u64)> {
        match self {
            Rule::All | Rule::Degraded | Rule::InTime | Rule::Observed => None,
            Rule::Below(number) | Rule::Rate(number) => Some((*number, 1)),
            Rule::AllBut(permille) => Some((u64::from(*permille), 9)),
        }
    }

    /// Returns whether both rules are of one kind.
    pub(super) fn is_like(&self, other: &Rule) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rule::All => f.write_str("all"),
            Rule::Degraded => f.write_str("all, degraded"),
            Rule::InTime => f.write_str("those that can be answered in time"),
            Rule::Observed => f.write_str("all (observed: those that can be answered in time)"),
            Rule::Below(inside) => write!(f, "below {inside}"),
            Rule::Rate(per_second) => write!(f, "{per_second} a second"),
            Rule::AllBut(permille) => write!(f, "all but {permille} in 1000"),
        }
    }
}
