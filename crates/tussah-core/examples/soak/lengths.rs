//! The lengths of events; they change, so that the scheduler has to notice that its estimates are
//! wrong.
//!
//! Each color has phases, which last for a number of events. The events of a phase are of one kind,
//! and those of the next phase may be a thousand times longer or shorter.

use std::time::{Duration, Instant};

use fastrand::Rng;

/// The kinds of phases.
#[derive(Clone, Copy)]
enum Kind {
    /// Almost no time.
    Empty,
    /// Shorter than a turn.
    Short,
    /// Longer than a turn, and longer than the delay after which work is stolen.
    Long,
    /// Mostly almost no time, but occasionally longer than any bound of the scheduler.
    Mixed,
}

/// The lengths of all events of a runtime, which a seed determines.
#[derive(Clone, Copy)]
pub(crate) struct Lengths(u64);

impl Lengths {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the length of event `number` of a color.
    pub(crate) fn of(self, color: usize, number: u64, random: &mut Rng) -> Duration {
        // Phases of 8 to 256 events.
        let phase = number / (8 << (color % 6));
        let mut place = Rng::with_seed(self.0 ^ (color as u64) << 48 ^ phase);
        let kind = match place.u64(..20) {
            0..9 => Kind::Empty,
            9..15 => Kind::Short,
            15..16 => Kind::Long,
            _ => Kind::Mixed,
        };
        length(kind, random)
    }

    /// Returns the length of an event that does not belong to any phase.
    pub(crate) fn any(self, random: &mut Rng) -> Duration {
        length(Kind::Mixed, random)
    }
}

fn length(kind: Kind, random: &mut Rng) -> Duration {
    match kind {
        Kind::Empty => Duration::ZERO,
        Kind::Short => Duration::from_micros(random.u64(..50)),
        Kind::Long => Duration::from_micros(500 + random.u64(..3000)),
        Kind::Mixed => match random.u64(..10_000) {
            0..3 => Duration::from_millis(random.u64(..30)),
            3..50 => Duration::from_micros(random.u64(..2000)),
            50..1000 => Duration::from_micros(random.u64(..50)),
            _ => Duration::ZERO,
        },
    }
}

/// Computes for the given time.
pub(crate) fn spin(length: Duration) {
    if length.is_zero() {
        return;
    }
    let start = Instant::now();
    while start.elapsed() < length {
        std::hint::spin_loop();
    }
}
