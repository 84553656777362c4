//! The ticks of instances.

use std::time::Duration;

use crate::flow::args::Args;
use crate::flow::flows::{Flow, Parcel};
use crate::flow::param::Param;
use crate::stage::{Refusal, Sender};
use crate::sync::Limit;
use crate::time::{interval_at, now};

/// Returns the period of an instance that ticks.
pub(super) fn period(args: &Args) -> Result<Duration, String> {
    let every: Duration = args.get("every", Some(Param::read))?;
    if every.is_zero() {
        return Err("the argument `every` is zero: expected the time between two ticks".to_owned());
    }
    Ok(every)
}

/// Asks an instance for its `tick` again and again. A busy instance gets fewer ticks, because the
/// next tick is sent only after the previous tick is in the queue.
pub(super) async fn tick_every<I: Send + 'static>(
    every: Duration,
    tick: fn() -> I,
    sender: &Sender<Parcel<I>>,
    limit: Option<&Limit>,
) {
    let mut interval = interval_at(now() + every, every);
    loop {
        interval.tick().await;
        let parcel = Parcel {
            flow: Flow::default().limited(limit).await,
            item: tick(),
        };
        if sender
            .send(parcel)
            .await
            .is_err_and(|error| error.why == Refusal::Closed)
        {
            return;
        }
    }
}
