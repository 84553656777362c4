//! Handling the items of an ordered module.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use futures_util::FutureExt as _;

use super::handlers::settle;
use crate::flow::flows::{Flow, Parcel};
use crate::flow::outbox::Held;
use crate::stage::{Batch, hand_over};

/// Handles a batch of an ordered module with a plain function. Everything that the module sends
/// waits in `held` for the turn of its item.
pub(super) async fn in_turn<'a, I: Send>(
    batch: &mut Batch<Parcel<I>>,
    mut call: impl FnMut(I, &Flow, &Held<'a>) -> bool + Send,
) {
    while let Some(Parcel { item, flow: turn }) = batch.next() {
        let (flow, mut held) = (turn.without_ticket(), Held::default());
        let handled = catch_unwind(AssertUnwindSafe(|| call(item, &flow, &held)));
        if !held.is_empty() {
            turn.turn().await;
            held.flush().await;
            // What the worker has collected has to arrive before that of the next item.
            hand_over();
        }
        settle(
            batch,
            handled.unwrap_or_else(|payload| resume_unwind(payload)),
        );
    }
}

/// Awaits a call, and hands over what it has sent, also if it panics.
pub(super) async fn handed_over<T>(call: impl Future<Output = T>) -> T {
    let result = AssertUnwindSafe(call).catch_unwind().await;
    hand_over();
    result.unwrap_or_else(|payload| resume_unwind(payload))
}
