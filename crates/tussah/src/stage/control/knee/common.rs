//! Known waits, and the share of events that need a permit of a scarce limit.
//!
//! A stage measures how long its handlers wait for permits of a [`Limit`](crate::sync::Limit), and
//! how many of them do. If half of an excess waits for permits, and nearly all events need one, the
//! permits are scarce: the controller goes from free to held without a trial. S does not include
//! these waits. While handlers wait for permits, more events in service cannot complete more
//! events, so the controller makes no trials.
//!
//! Servlets that wait for permits do not show that the permits hold back all events. If one event
//! in ten needs a permit, the others need more servlets, not fewer. The events in service do not
//! show the share either, because those that wait stay longest. Among the events that have
//! finished, each counts once, so the share of these events is that of all.
//!
//! A batch of several events counts as one that needs a permit, because the stage does not see
//! which of them need it.

use super::{RATE, RATE_SOON};
use crate::stage::control::Sample;

/// The share above which the events have the limit in common.
const COMMON: f64 = 0.9;

/// The recent finished events, and those of them that needed such a permit. An event counts less,
/// the more events have finished after it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Common {
    finished: f64,
    permits: f64,
}

impl Common {
    /// Records a sample, if its finished events are `typical`. Returns it without its waits for
    /// permits, unless nearly all events need a permit.
    pub(super) fn only<'s>(&mut self, sample: &Sample<'s>, typical: bool) -> Sample<'s> {
        if typical {
            let finished = sample.finished as f64;
            let kept = (-finished / RATE).exp();
            self.finished = self.finished * kept + finished;
            self.permits = self.permits * kept + sample.permits as f64;
        }
        let is_common = self.finished > RATE_SOON && self.permits > COMMON * self.finished;
        match is_common {
            true => *sample,
            false => Sample {
                limited: 0,
                limited_ns: 0,
                ..*sample
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::quiet;
    use super::*;

    #[test]
    fn events_that_end_while_nothing_begins_show_no_share() {
        let sample = |finished, permits| Sample {
            finished,
            permits,
            limited: 3,
            ..quiet()
        };
        let mut common = Common::default();
        assert_eq!(common.only(&sample(100, 10), true).limited, 0);
        assert_eq!(common.only(&sample(1000, 1000), false).limited, 0);
        assert_eq!(common.only(&sample(1000, 1000), true).limited, 3);
        assert_eq!(common.only(&sample(1000, 10), false).limited, 3);
    }
}
