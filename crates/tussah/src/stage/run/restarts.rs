//! The limit on restarts of a panicking handler.

use std::collections::VecDeque;
use std::time::Duration;

/// The maximum number of restarts of a panicking serial handler within a period.
///
/// After a panic in a servlet or in a call, the handler is created again immediately. If the
/// handler panics more often than allowed, or cannot be created again, the stage is closed
/// immediately. The stage's queued events are dropped, their drop callbacks are called, senders get
/// an error, and an error is logged. The callback of
/// [`StageBuilder::on_close`](crate::stage::StageBuilder::on_close) is called, and the stage's
/// [statistics](crate::stage::observe::StageStats::closed) and status pages show the reason.
#[derive(Clone, Debug)]
pub struct Restarts {
    max: usize,
    period_ns: u64,
    times_ns: VecDeque<u64>,
}

impl Default for Restarts {
    /// Five times per minute.
    fn default() -> Self {
        Self::new(5, Duration::from_secs(60))
    }
}

impl Restarts {
    /// Allows at most `max` restarts in any interval of length `period`.
    #[must_use]
    pub fn new(max: usize, period: Duration) -> Self {
        Self {
            max,
            period_ns: u64::try_from(period.as_nanos()).unwrap_or(u64::MAX),
            times_ns: VecDeque::new(),
        }
    }

    /// Counts a restart, if one more is allowed now.
    pub(crate) fn allow(&mut self, now_ns: u64) -> bool {
        let period_ns = self.period_ns;
        self.times_ns
            .retain(|then_ns| now_ns.saturating_sub(*then_ns) < period_ns);
        if self.times_ns.len() >= self.max {
            return false;
        }
        self.times_ns.push_back(now_ns);
        true
    }

    /// Returns the reason why a handler is not created again after [`allow`](Self::allow) has
    /// refused: how often it panicked, and in which time.
    pub(crate) fn exceeded(&self) -> String {
        let (panics, period) = (
            self.times_ns.len() + 1,
            Duration::from_nanos(self.period_ns),
        );
        match panics {
            1 => "its handler panicked, and it may not be made anew".to_owned(),
            _ => format!("its handler panicked {panics} times within {period:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Restarts;
    use std::time::Duration;

    #[test]
    fn restarts_are_limited_in_any_period() {
        let mut restarts = Restarts::new(2, Duration::from_nanos(100));
        let allowed = [0, 10, 20, 99, 100, 105, 110, 111].map(|now_ns| restarts.allow(now_ns));
        assert_eq!(
            allowed,
            [true, true, false, false, true, false, true, false]
        );
    }
}
