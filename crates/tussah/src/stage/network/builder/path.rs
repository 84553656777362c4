//! The option of a stage whose batches last as long as the paths of their events.

use super::StageBuilder;

impl<E: Send + 'static> StageBuilder<E> {
    /// Makes each batch last until the paths of its events have ended. The path of an event
    /// consists of the event and of all events that descend from it, in any stage.
    ///
    /// The stage's [target](Self::target), its controllers, its statistics and
    /// [draining](crate::stage::Stage::drain) then apply to whole paths. The number of
    /// [servlets](Self::servlets) bounds the number of open paths. If a later stage in the path is
    /// a bottleneck, this stage rejects events on arrival, and
    /// [`rejected_by`](crate::stage::observe::StageStats::rejected_by) names the later stage.
    ///
    /// An event that a handler sends belongs to the path of the event that the handler took most
    /// recently from its batch. An event that the handler takes with its metadata
    /// ([`next_event`](crate::stage::Batch::next_event)) remains in its path wherever it is sent,
    /// even by a thread that the handler spawns. Plain values that a spawned thread sends belong to
    /// no path.
    ///
    /// A new event that is passed in a [call](crate::stage::Call) belongs to the caller's path
    /// until the call returns. A call to this stage does not begin a path.
    ///
    /// A path ends when all its events have ended, in whatever way. If any event of a path failed
    /// ([`Batch::fail`](crate::stage::Batch::fail)) or ended without being handled, this stage
    /// counts the event that began the path as [failed](crate::stage::observe::StageStats::failed).
    /// An event that returns to this stage leaves its path, and is a new arrival.
    ///
    /// Each servlet takes one event at a time, as with [`batch(1)`](Self::batch). In a keyed stage,
    /// the next event of a key waits until the path of the key's previous event has ended. In a
    /// serial stage, each event waits until the path of the previous event has ended.
    ///
    /// # Examples
    /// In this example, a stage accepts orders for a store, which can handle eight orders at a
    /// time. Nine in ten accepted orders are stored within 100 ms:
    /// ```
    /// use std::time::Duration;
    /// use tussah::stage::{Batch, BuildError, Handler, Network, Sender, shed};
    /// use tussah::time::sleep;
    ///
    /// struct Accept(Sender<String>);
    ///
    /// impl Handler for Accept {
    ///     type Event = String;
    ///     async fn handle(&self, batch: &mut Batch<String>) {
    ///         while let Some(order) = batch.next() {
    ///             self.0.send_or(order, shed);
    ///         }
    ///     }
    /// }
    ///
    /// struct Store;
    ///
    /// impl Handler for Store {
    ///     type Event = String;
    ///     async fn handle(&self, batch: &mut Batch<String>) {
    ///         while let Some(_order) = batch.next() {
    ///             sleep(Duration::from_millis(5)).await;
    ///         }
    ///     }
    /// }
    ///
    /// # let runtime = tussah::Runtime::builder().workers(1).build().expect("a runtime");
    /// # runtime.block_on(async {
    /// let network = Network::new("orders");
    /// let store = network.stage("store").servlets(8).batch(1).handler(|_| Ok(Store))?;
    /// let accept = network
    ///     .stage("accept")
    ///     .target(Duration::from_millis(100))
    ///     .whole_path()
    ///     .handler(|edges| Ok(Accept(edges.to(&store).queue(1000)?)))?;
    /// accept.sender().send("silk".to_owned()).await.expect("`accept` is open");
    /// accept.settled().await;
    /// assert_eq!(store.stats().finished, 1);
    /// # Ok::<(), BuildError>(())
    /// # }).expect("the network can be made");
    /// ```
    pub fn whole_path(mut self) -> Self {
        self.whole_path = true;
        self
    }
}
