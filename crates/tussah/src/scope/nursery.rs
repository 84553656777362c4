//! Children that borrow from their parent and run inside of it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use futures_util::stream::{FuturesUnordered, StreamExt};
use tussah_core::quietly;

/// Futures that may borrow from their parent and are polled by it, in turns.
///
/// The children run while the parent awaits [`next`](Nursery::next) or [`join`](Nursery::join), in the parent's color
/// and never two at once; each is polled only when it was woken (`FuturesUnordered` of futures-util). For parallel
/// children use [`scope`](crate::scope()), or start threads and let the children here wait for them.
///
/// # Cancellation
/// Dropping the nursery drops the children. Dropping the future of `next` loses nothing.
///
/// # Examples
/// ```
/// use tussah::{Colored, Nursery};
/// # let runtime = tussah::Runtime::builder().workers(2).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// let shards: Vec<_> = (0..10u64).map(Colored::new).collect();
/// let mut nursery = Nursery::new();
/// for shard in &shards {
///     nursery.spawn(async { Ok(shard.with(|n| *n).await) });
/// }
/// let sum: Result<u64, std::convert::Infallible> = nursery.join().await.map(|all| all.iter().sum());
/// assert_eq!(sum, Ok(45));
/// # })).expect("no panic");
/// # std::io::Result::Ok(())
/// ```
pub struct Nursery<'env, T, E> {
    children: FuturesUnordered<BoxedChild<'env, T, E>>,
}

type BoxedChild<'env, T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send + 'env>>;

impl<'env, T, E> Nursery<'env, T, E> {
    /// A nursery without children.
    #[must_use]
    pub fn new() -> Self {
        Self {
            children: FuturesUnordered::new(),
        }
    }

    /// Adds a child, which is polled when the nursery is awaited.
    pub fn spawn(&mut self, future: impl Future<Output = Result<T, E>> + Send + 'env) {
        self.children.push(Box::pin(future));
    }

    /// Waits for a child to end: `None` if there are no more.
    ///
    /// # Panics
    /// If a child panics. That child is gone then, and the others can be awaited further.
    pub async fn next(&mut self) -> Option<Result<T, E>> {
        self.children.next().await
    }

    /// Waits for all children; the values are in the order in which the children ended.
    ///
    /// # Errors
    /// The first error. The other children are dropped.
    ///
    /// # Panics
    /// If a child panics. The others are dropped.
    pub async fn join(mut self) -> Result<Vec<T>, E> {
        let mut values = Vec::with_capacity(self.children.len());
        while let Some(result) = self.next().await {
            values.push(result?);
        }
        Ok(values)
    }

    /// Children that have not ended.
    #[must_use]
    pub fn len(&self) -> usize {
        self.children.len()
    }

    /// Whether all children have ended.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.children.is_empty()
    }
}

impl<T, E> Drop for Nursery<'_, T, E> {
    /// Each child by itself: a second panic would end the process while the first unwinds.
    fn drop(&mut self) {
        for child in std::mem::take(&mut self.children) {
            quietly(|| drop(child));
        }
    }
}

impl<T, E> Default for Nursery<'_, T, E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, E> fmt::Debug for Nursery<'_, T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nursery")
            .field("children", &self.len())
            .finish()
    }
}
