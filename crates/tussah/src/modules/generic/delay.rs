//! A module that delays items.

use std::marker::PhantomData;
use std::time::Duration;

use crate::flow::{AsyncOut, module};
use crate::time::sleep;

/// Delays each item by a fixed time.
///
/// | parameter | kind | meaning |
/// |---|---|---|
/// | `time` | duration | the delay of each item |
///
/// | port | items | meaning |
/// |---|---|---|
/// | input `run` | `T` | an item to delay |
/// | output `out` | `T` | the same items |
///
/// The module delays at most 1,000 items at a time; beyond that, senders wait. By contrast, an edge
/// with a delay (`after`) drops new items while it is delaying the maximum number of items.
#[module]
pub struct Delay<T> {
    time: Duration,
    of: PhantomData<fn(T)>,
}

#[module]
impl<T: Clone + Send + 'static> Delay<T> {
    fn init(time: Duration) -> Self {
        let of = PhantomData;
        Self { time, of }
    }

    async fn run(&self, item: T, out: &impl AsyncOut<T>) {
        sleep(self.time).await;
        out.send(item).await;
    }
}
