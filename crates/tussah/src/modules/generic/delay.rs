//! A module that delays items.

use std::marker::PhantomData;
use std::time::Duration;

use crate::flow::{AsyncOut, module};
use crate::time::sleep;

/// Sends each item on after a time.
///
/// | parameter | kind | meaning |
/// |---|---|---|
/// | `time` | duration | the delay of each item |
///
/// Input `run`: `T`. Output `out`: the same items. At most 1,000 items wait at a time; senders wait
/// for more room. The delay of an edge (`after`) ends items without room instead.
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
