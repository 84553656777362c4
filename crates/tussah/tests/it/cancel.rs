//! Futures that are dropped at each of their awaits.

use std::pin::pin;
use std::task::Poll;

/// More polls than any of the operations here needs.
const POLLS_MAX: usize = 1000;

/// Polls a future each time that it is woken, but `polls_max` times at most, and drops it.
pub async fn cut<F: Future>(future: F, polls_max: usize) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut polls = 0;
    std::future::poll_fn(move |context| {
        if polls == polls_max {
            return Poll::Ready(None);
        }
        polls += 1;
        match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if polls == polls_max => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// 0, 1, 2, … polls, after which a scenario cuts its operation off, until that comes to its end,
/// and the scenario breaks.
pub fn cuts() -> impl Iterator<Item = usize> {
    let end = std::iter::once_with(|| {
        panic!("the operation does not come to its end within {POLLS_MAX} polls")
    });
    (0..POLLS_MAX).chain(end)
}
