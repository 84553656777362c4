//! The knowledge of a controller, for the controller of a stage that replaces its stage.

use super::{Knee, Phase, REST_MIN, Why, unloaded};

/// The unloaded time of a stage and its scarce resource.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Learned {
    unloaded: unloaded::Learned,
    /// The number in service and the rate of a scarce resource, if one is known.
    held: Option<(f64, f64)>,
}

impl Knee {
    /// Returns what has been learned.
    pub(in super::super) fn learned(&self) -> Learned {
        let free = matches!(self.phase, Phase::Free);
        Learned {
            unloaded: self.unloaded.learned(),
            held: (!free && self.shown).then_some((self.servlets, self.rate)),
        }
    }

    /// Begins with what has been learned about an earlier stage, of a weight from 0 to 1. A scarce
    /// resource that counts at least half is held, and the first trial comes soon.
    pub(in super::super) fn recall(&mut self, learned: Learned, weight: f64) {
        self.unloaded.recall(learned.unloaded, weight);
        self.target_ns = self.unloaded.effective_target_ns();
        if let Some((servlets, rate)) = learned.held.filter(|_| weight >= 0.5) {
            (self.rate, self.shown) = (rate, true);
            (self.rest, self.rest_next) = (0.0, REST_MIN);
            self.hold(servlets, Why::Remembered);
        }
    }
}
