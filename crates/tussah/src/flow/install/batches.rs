//! The calls of a module that takes batches, with the items of one batch of its stage.

use crate::flow::flows::Parcel;
use crate::flow::keepers::Keepers;
use crate::flow::module::Module;
use crate::stage::{Batch, Reason};

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
    /// queue. In a graph that was halted, they end if the method has taken none.
    pub(super) fn go_on<M: Module>(
        &mut self,
        batch: &mut Batch<Parcel<M::Item>>,
        keepers: &Keepers,
        outs: &M::Outs,
    ) -> bool {
        let Some(next) = batch.iter().next() else {
            return false;
        };
        let (port, left) = (M::port(&next.item), batch.len());
        match self.last.replace((port, left)) {
            None => true,
            Some((_, before)) if before == left => {
                if keepers.is_halted() {
                    shut_down::<M>(batch, outs);
                }
                false
            }
            Some((last, _)) => !self.is_single && (last.is_none() || last != port),
        }
    }
}

/// Ends all items of a batch.
fn shut_down<M: Module>(batch: &mut Batch<Parcel<M::Item>>, outs: &M::Outs) {
    while let Some(Parcel { item, flow }) = batch.next() {
        let flow = flow.without_ticket();
        drop(M::dropped(item, &flow, Reason::ShutDown, outs));
        batch.fail(1);
    }
    batch.settle();
}
