//! The classes of events.

/// Bound, in classes: the number of classes of one stage. Each event stores its class in one byte,
/// and the stage fills an array of this length for each sample.
pub const CLASSES_MAX: usize = 8;

/// The class of an event within its stage; 0 is served first, unless the classes have shares.
///
/// By default, a stage has one class; `StageBuilder::classes` and `StageBuilder::class_shares`
/// change this. If the stage does not have an event's class, it assigns the event to its last
/// class.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Class(pub u8);

impl Class {
    /// Returns the index among this number of classes, which is at least one.
    #[inline(always)]
    pub(crate) fn among(self, classes: usize) -> usize {
        usize::from(self.0).min(classes - 1)
    }
}

/// The classes of a stage, which have priorities or shares.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Classes {
    count: usize,
    /// The shares; all are 0 if the classes have priorities.
    shares: [u32; CLASSES_MAX],
}

impl Classes {
    /// Returns this number of classes, of which the first goes before all others.
    pub(crate) const fn by_priority(count: usize) -> Self {
        Self {
            count,
            shares: [0; CLASSES_MAX],
        }
    }

    /// Returns one class for each share; a share of 0 counts as 1.
    pub(crate) fn by_share(shares: &[u32]) -> Self {
        let mut all = Self::by_priority(shares.len());
        for (to, share) in all.shares.iter_mut().zip(shares) {
            *to = (*share).max(1);
        }
        all
    }

    #[inline(always)]
    pub(crate) const fn count(&self) -> usize {
        self.count
    }

    /// Returns the share of a class; 0 if the classes have priorities.
    #[inline]
    pub(crate) const fn share(&self, class: usize) -> u32 {
        self.shares[class]
    }

    /// Returns how many of the queued events will be served before a new one of this class.
    pub(crate) fn ahead(&self, class: usize, queued: &[u64; CLASSES_MAX]) -> u64 {
        if self.shares[0] == 0 {
            return queued[..=class].iter().sum();
        }
        // Until all of its class are served, each other class is served in proportion to its share.
        let each = queued[class] as f64 / f64::from(self.shares[class]);
        let of = |(queued, share): (&u64, &u32)| (*queued as f64).min(each * f64::from(*share));
        queued.iter().zip(&self.shares).map(of).sum::<f64>() as u64
    }
}
