//! The mode of a controller: on, observing or off.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

/// The mode of an [`AutoTarget`](super::AutoTarget): on, observing or off.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Mode {
    /// Controls servlets and admission.
    #[default]
    On,
    /// Admits all events, and counts those that [`Mode::On`] would have rejected or shed. The log
    /// shows when the controller would have begun to reject events, and when it would have stopped.
    Observe,
    /// Admits all events.
    Off,
}

/// A handle that changes the mode of an [`AutoTarget`](super::AutoTarget) while its stage runs, and
/// returns the observations of the controller.
///
/// In any mode other than [`Mode::On`], the stage behaves as if it had no target.
/// [`AutoServlets`](super::AutoServlets) then sets the number of servlets, and the stage rejects
/// only events that exceed one of its bounds.
#[derive(Clone, Debug, Default)]
pub struct Switch(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    mode: AtomicU8,
    refused: AtomicU64,
    shed: AtomicU64,
    servlets: AtomicUsize,
}

/// Counts of the decisions that an [`AutoTarget`](super::AutoTarget) in [`Mode::Observe`] would
/// have made in [`Mode::On`].
///
/// In `Mode::Observe`, the controller counts more rejections than it would make in `Mode::On`,
/// because the queue grows longer without rejections.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Observed {
    /// The number of events that the controller would have rejected.
    pub refused: u64,
    /// The number of events that the controller would have shed from the queue.
    pub shed: u64,
    /// The number of servlets that the controller would have set at the last sample; 0 before the
    /// first sample.
    pub servlets: usize,
}

// Relaxed throughout: the mode and the counts order nothing else.
impl Switch {
    /// Sets the mode.
    pub fn set(&self, mode: Mode) {
        self.0.mode.store(mode as u8, Ordering::Relaxed);
    }

    /// Returns the mode.
    #[must_use]
    pub fn mode(&self) -> Mode {
        match self.0.mode.load(Ordering::Relaxed) {
            0 => Mode::On,
            1 => Mode::Observe,
            _ => Mode::Off,
        }
    }

    /// Returns the observations made since the controller was created.
    #[must_use]
    pub fn observed(&self) -> Observed {
        Observed {
            refused: self.0.refused.load(Ordering::Relaxed),
            shed: self.0.shed.load(Ordering::Relaxed),
            servlets: self.0.servlets.load(Ordering::Relaxed),
        }
    }

    pub(super) fn would_refuse(&self) {
        self.0.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn would_shed(&self) {
        self.0.shed.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn would_have(&self, servlets: usize) {
        self.0.servlets.store(servlets, Ordering::Relaxed);
    }
}
