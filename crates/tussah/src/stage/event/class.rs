//! The classes of events.

/// Bound, in classes of a stage: one byte of each event names its class, and samples carry an array
/// of this length.
pub const CLASSES_MAX: usize = 8;

/// The class of an event within its stage; 0 is served first.
///
/// A stage has one class by default (`StageBuilder::classes`). An event of a class that its stage
/// does not have counts as an event of the last class.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Class(pub u8);

impl Class {
    /// Returns the index among this number of classes, which is at least one.
    #[inline(always)]
    pub(crate) fn among(self, classes: usize) -> usize {
        usize::from(self.0).min(classes - 1)
    }
}
