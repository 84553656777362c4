//! Handling the items of an ordered module.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use super::handlers::settle;
use crate::flow::flows::{Flow, Parcel};
use crate::flow::ordered::flush_in_turn;
use crate::flow::outbox::Held;
use crate::flow::turns::{Ticket, Turns};
use crate::stage::{Batch, StageBuilder};

/// Gives each item of a stage a ticket.
pub(super) fn with_tickets<I: Send + 'static>(
    stage: StageBuilder<Parcel<I>>,
) -> StageBuilder<Parcel<I>> {
    let turns = Arc::new(Turns::default());
    let give = move |parcel: &mut Parcel<I>| {
        parcel.flow = std::mem::take(&mut parcel.flow).ordered(&turns);
    };
    stage.numbered(give, |parcel| parcel.flow.ticket().map(Ticket::number))
}

/// Handles a batch of an ordered module with a plain function. Everything that the module sends
/// waits in `held` for the turn of its item.
pub(super) async fn in_turn<'a, I: Send>(
    batch: &mut Batch<Parcel<I>>,
    mut call: impl FnMut(I, &Flow, &Held<'a>) -> bool + Send,
) {
    while let Some(Parcel { item, flow: turn }) = batch.next() {
        let (flow, mut held) = (turn.without_ticket(), Held::default());
        let handled = catch_unwind(AssertUnwindSafe(|| call(item, &flow, &held)));
        flush_in_turn(&turn, &mut held).await;
        settle(
            batch,
            handled.unwrap_or_else(|payload| resume_unwind(payload)),
        );
    }
}
