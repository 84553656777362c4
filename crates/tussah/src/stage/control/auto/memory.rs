//! The knowledge of a controller, kept for its successor.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::Times;
use crate::stage::control::{knee, predict};

/// The knowledge that an [`AutoTarget`](super::AutoTarget) has gained about its stage, for use by
/// the controller's successor.
///
/// A program may rebuild its stages, for example after its configuration has changed. The program
/// should then give the same memory to the old and the new controller. The new controller starts
/// with the old controller's knowledge of the service times, the capacity and any scarce resource.
/// A stage that was overloaded therefore does not have to learn again how many events it can
/// handle. The weight of this prior knowledge halves with every [`HALF_LIFE`](Self::HALF_LIFE) that
/// passes after a controller last stored its knowledge. New measurements soon outweigh the prior
/// knowledge.
///
/// Clones share their contents. If several controllers use the same memory, only one of them stores
/// its knowledge: the one that most recently received its first sample.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tussah::stage::control::{AutoTarget, Memory};
///
/// let (target, memory) = (Duration::from_millis(100), Memory::default());
/// let before = AutoTarget::new(target).remember(&memory);
/// # drop(before);
/// // Later, for a stage that replaces the first one:
/// let after = AutoTarget::new(target).remember(&memory);
/// # drop(after);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Memory(Arc<Mutex<Stored>>);

#[derive(Debug, Default)]
struct Stored {
    /// The number of the controller that may store.
    owner: u64,
    at_ns: u64,
    learned: Option<Learned>,
}

/// The knowledge of the parts of a controller.
#[derive(Clone, Copy, Debug)]
pub(super) struct Learned {
    pub(super) times: Times,
    pub(super) knee: knee::Learned,
    pub(super) admission: predict::Learned,
}

impl Memory {
    /// The time in which the weight of the stored knowledge halves.
    pub const HALF_LIFE: Duration = Duration::from_secs(300);

    /// Takes over the memory. Returns the number of its new owner, and the contents with their
    /// weight, from 0 to 1.
    pub(super) fn take_over(&self, now_ns: u64) -> (u64, Option<(Learned, f64)>) {
        let mut stored = self.0.lock();
        stored.owner += 1;
        let age_ns = now_ns.saturating_sub(stored.at_ns) as f64;
        let weight = (-age_ns / Self::HALF_LIFE.as_nanos() as f64).exp2();
        (
            stored.owner,
            stored.learned.map(|learned| (learned, weight)),
        )
    }

    /// Stores what a controller has learned, unless another one has taken over.
    pub(super) fn store(&self, owner: u64, now_ns: u64, learned: Learned) {
        let mut stored = self.0.lock();
        if stored.owner == owner {
            (stored.at_ns, stored.learned) = (now_ns, Some(learned));
        }
    }
}
