//! The clock of stages, shared by all networks.

use std::sync::LazyLock;

use tussah_core::time::Clock;

/// The clock of stages. The real clock starts when the process creates its first network; a manual
/// clock starts when it is created. A deadline therefore denotes the same moment in all networks
/// with the same clock.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Time {
    pub(crate) clock: Clock,
}

impl Time {
    pub(crate) fn new(clock: Clock) -> Self {
        /// All networks share this clock, because each real clock counts from its own creation.
        static REAL: LazyLock<Clock> = LazyLock::new(Clock::real);
        let clock = if clock.is_manual() {
            clock
        } else {
            REAL.clone()
        };
        Self { clock }
    }

    /// Returns the nanoseconds since the start.
    #[inline]
    pub(crate) fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }
}
