//! Children that borrow from their parent and run inside it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use futures_util::stream::{FuturesUnordered, StreamExt};
use tussah_core::quietly;

/// A set of child futures that can borrow from their parent. The parent polls its children one at a
/// time.
///
/// Children run only while the parent awaits [`next`](Nursery::next) or [`join`](Nursery::join).
/// The children run in the parent's color, one at a time. The nursery uses `FuturesUnordered` from
/// futures-util, which polls a child again only after the child has been woken. To run children in
/// parallel, use [`scope`](crate::scope()), or have each child start a thread and await the
/// thread's handle.
///
/// # Cancellation
/// Dropping the nursery drops its children. Dropping the future of `next` loses no result.
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
    /// Creates a nursery without children.
    #[must_use]
    pub fn new() -> Self {
        Self {
            children: FuturesUnordered::new(),
        }
    }

    /// Adds a child, which does not run until the parent awaits `next` or `join`.
    pub fn spawn(&mut self, future: impl Future<Output = Result<T, E>> + Send + 'env) {
        self.children.push(Box::pin(future));
    }

    /// Waits until a child ends and returns the child's result, or returns `None` if no children
    /// remain.
    ///
    /// # Panics
    /// Panics if a child panics. The child that panicked is removed; the others can still be
    /// awaited.
    pub async fn next(&mut self) -> Option<Result<T, E>> {
        self.children.next().await
    }

    /// Waits for all children, and returns their values in the order in which the children ended.
    ///
    /// # Errors
    /// Returns the first error, and drops the other children.
    ///
    /// # Panics
    /// Panics if a child panics; the other children are then dropped.
    pub async fn join(mut self) -> Result<Vec<T>, E> {
        let mut values = Vec::with_capacity(self.children.len());
        while let Some(result) = self.next().await {
            values.push(result?);
        }
        Ok(values)
    }

    /// Returns the number of children that have not ended.
    #[must_use]
    pub fn len(&self) -> usize {
        self.children.len()
    }

    /// Returns whether all children have ended.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.children.is_empty()
    }
}

impl<T, E> Drop for Nursery<'_, T, E> {
    /// Drops each child in its own `quietly`: a second panic during unwinding would abort the
    /// process.
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
