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
/// Input: `run` takes `T`. Output: `out`, the same items. At most 1,000 items are delayed at a
/// time; then senders wait. On an edge with a delay (`after`), items without room are dropped
/// instead.
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
