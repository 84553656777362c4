//! Handlers made of closures.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;

use super::{Handler, SerialHandler};
use crate::stage::event::Batch;

/// A handler that [`each`] or [`each_mut`] created from a closure.
pub struct Each<E, F> {
    handle: F,
    event: PhantomData<fn(E)>,
}

/// Creates a handler from a closure that takes one event.
///
/// The handler calls the closure with the events of a batch one at a time, and awaits each future
/// before it takes the next event. The handler skips events that have expired or been
/// [cancelled](crate::stage::CancelHandle) before it reaches them.
///
/// Several servlets can call the closure concurrently. For a serial stage, use [`each_mut`].
///
/// # Examples
/// ```
/// use tussah::stage::{BuildError, Network, each};
///
/// # let runtime = tussah::Runtime::builder().workers(1).build().expect("a runtime");
/// # runtime.block_on(async {
/// let network = Network::new("lines");
/// let print = network.stage("print").handler(|_| {
///     Ok(each(|line: String| async move { println!("{line}") }))
/// })?;
/// print.sender().send("a line".to_owned()).await.expect("`print` is open");
/// network.drain().await;
/// assert_eq!(print.stats().finished, 1);
/// # Ok::<(), BuildError>(())
/// # }).expect("the network can be made");
/// ```
pub fn each<E, F, R>(handle: F) -> Each<E, F>
where
    F: Fn(E) -> R,
    R: Future<Output = ()> + Send,
{
    each_mut(handle)
}

/// Creates a handler for a serial stage from a closure that takes one event. Unlike a closure for
/// [`each`], this closure can change the values that it has captured.
///
/// # Examples
/// ```
/// use tussah::stage::{BuildError, Network, each, each_mut};
///
/// # let runtime = tussah::Runtime::builder().workers(1).build().expect("a runtime");
/// # runtime.block_on(async {
/// let network = Network::new("lines");
/// let print = network.stage("print").handler(|_| {
///     Ok(each(|line: String| async move { println!("{line}") }))
/// })?;
/// let number = network.stage("number").serial(move |edges| {
///     let (lines, mut count) = (edges.to(&print).queue(100)?, 0);
///     Ok(each_mut(move |line: &'static str| {
///         count += 1;
///         let (lines, text) = (lines.clone(), format!("{count}: {line}"));
///         async move { lines.send(text).await.expect("`print` is open") }
///     }))
/// })?;
/// number.sender().send("a line").await.expect("`number` is open");
/// network.drain().await;
/// # Ok::<(), BuildError>(())
/// # }).expect("the network can be made");
/// ```
pub fn each_mut<E, F, R>(handle: F) -> Each<E, F>
where
    F: FnMut(E) -> R,
    R: Future<Output = ()> + Send,
{
    Each {
        handle,
        event: PhantomData,
    }
}

impl<E, F, R> Handler for Each<E, F>
where
    E: Send + 'static,
    F: Fn(E) -> R + Send + Sync + 'static,
    R: Future<Output = ()> + Send,
{
    type Event = E;

    async fn handle(&self, batch: &mut Batch<E>) {
        while let Some(event) = batch.next() {
            (self.handle)(event).await;
        }
    }
}

impl<E, F, R> SerialHandler for Each<E, F>
where
    E: Send + 'static,
    F: FnMut(E) -> R + Send + 'static,
    R: Future<Output = ()> + Send,
{
    type Event = E;

    async fn handle(&mut self, batch: &mut Batch<E>) {
        while let Some(event) = batch.next() {
            (self.handle)(event).await;
        }
    }
}

impl<E, F> fmt::Debug for Each<E, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Each").finish_non_exhaustive()
    }
}
