//! The calls of a module that takes batches, with the items of one batch of its stage.

use crate::flow::flows::Parcel;
use crate::flow::module::Module;
use crate::stage::Batch;

/// The calls of a module with the items of one batch.
pub(super) struct Calls {
    is_single: bool,
    /// The port and the number of remaining items before the last call.
    last: Option<(Option<usize>, usize)>,
}

impl Calls {
    /// Begins the calls. With `is_single`, there is only one, because the items behind it would
    /// wait for it.
    pub(super) fn new(is_single: bool) -> Self {
        let last = None;
        Self { is_single, last }
    }

    /// Returns whether to call the module. Items that a method has left in its batch go back to the
    /// queue.
    pub(super) fn go_on<M: Module>(&mut self, batch: &Batch<Parcel<M::Item>>) -> bool {
        let Some(next) = batch.iter().next() else {
            return false;
        };
        let (port, left) = (M::port(&next.item), batch.len());
        match self.last.replace((port, left)) {
            None => true,
            Some((_, before)) if before == left => false,
            Some((last, _)) => !self.is_single && (last.is_none() || last != port),
        }
    }
}
