//! The classes of events.

/// Bound, in classes of a stage: an event stores its class in one byte, and samples contain an
/// array of this length.
pub const CLASSES_MAX: usize = 8;

/// The class of an event within its stage; 0 is served first.
///
/// A stage has one class by default (`StageBuilder::classes`). If a stage does not have an event's
/// class, the event counts as one of the last class.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Class(pub u8);

impl Class {
    /// Returns the index among this number of classes, which is at least one.
    #[inline(always)]
    pub(crate) fn among(self, classes: usize) -> usize {
        usize::from(self.0).min(classes - 1)
    }
}
