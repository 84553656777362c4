//! Draining and closing a network: each stage is drained after the stages that send to it.

use std::collections::{HashMap, HashSet};

use super::Network;
use super::order::senders_first;
use super::table::{Edge, Known};

/// Stages in the order in which they are drained, as long as the network does not change.
struct Order {
    stages: Vec<Known>,
    /// The number of the network's changes before.
    changes: u64,
}

impl Network {
    /// Drains all stages, each after the stages that send to it or call it. A stage accepts events
    /// until all its senders have been drained, so no admitted event is lost. Stages created in the
    /// meantime are drained, too. Finally, all stages are closed, which [drops their
    /// handlers](crate::stage#when-a-handler-is-dropped); the network still shows the stages.
    ///
    /// In a cycle, the stage that was created first is drained first. This stage then refuses
    /// events from the other stages of the cycle, so these stages must handle the refusal.
    ///
    /// Paused stages are resumed first, because a paused stage blocks the stages that send to it.
    /// If a stage without a handler ([`Declared`](crate::stage::Declared)) has queued events, the
    /// call waits until the stage gets a handler. A drained stage that has no handler can no longer
    /// get one. Before you call this method, close the network's [sockets](crate::stage::net) and
    /// wait until they have ended, because the method skips their queues.
    ///
    /// Do not call this method from a handler, because the handler would wait for itself.
    ///
    /// # Cancellation
    /// If the future is dropped, the stage that is being drained and those already drained admit no
    /// more events. The other stages stay open; call this method again to drain them.
    ///
    /// # Examples
    /// ```
    /// use tussah::stage::{Batch, Network};
    ///
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// let network = Network::on(runtime.handle(), "lengths");
    /// let add = |batch: &mut Batch<usize>| drop(batch.drain().sum::<usize>());
    /// let sum = network.stage("sum").blocking(|_| Ok(add))?;
    /// let len = network.stage("len").blocking(|edges| {
    ///     let sum = edges.to(&sum).queue(10)?;
    ///     Ok(move |batch: &mut Batch<&str>| {
    ///         for text in batch.drain() {
    ///             sum.try_send(text.len()).expect("there is room");
    ///         }
    ///     })
    /// })?;
    /// runtime.block_on(len.sender().send("four"))?;
    /// runtime.block_on(network.drain());
    /// assert_eq!(sum.stats().finished, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn drain(&self) {
        self.resume();
        let (mut drained, mut ids) = (Vec::new(), HashSet::new());
        loop {
            let order = self.order(&ids);
            if order.stages.is_empty() {
                break;
            }
            for known in order.stages {
                ids.insert(known.id);
                drained.push(known.clone());
                known.stage.drain().await;
                if self.inner.table.lock().changes() != order.changes {
                    break;
                }
            }
        }
        // No more events arrive, so the handlers, which may refer to each other, are dropped.
        for known in drained {
            known.stage.close();
        }
    }

    /// Returns the stages without those of these numbers, in the order in which they are drained.
    fn order(&self, drained: &HashSet<u32>) -> Order {
        let table = self.inner.table.lock();
        let left = table.stages().filter(|known| !drained.contains(&known.id));
        let left: Vec<&Known> = left.collect();
        let names = left.iter().enumerate();
        let places: HashMap<&str, usize> = names.map(|(at, known)| (&*known.name, at)).collect();
        let place = |name: &str| places.get(name).copied();
        let ends = |edge: &Edge| Some((place(&edge.from)?, place(&edge.to)?));
        let edges: Vec<_> = table.edges().filter_map(ends).collect();
        let order = senders_first(left.len(), &edges).into_iter();
        Order {
            stages: order.map(|at| left[at].clone()).collect(),
            changes: table.changes(),
        }
    }

    /// Resumes all paused stages.
    pub(crate) fn resume(&self) {
        for known in self.known().0 {
            known.stage.resume();
        }
    }

    /// Waits for each stage in turn until nothing is queued there and no batch is running.
    pub(crate) async fn settled(&self) {
        for known in self.known().0 {
            known.stage.emptied().await;
        }
    }

    /// Drops all queued events, calls their drop callbacks, and removes all stages from the
    /// network. Returns the number of dropped events.
    ///
    /// Running batches still complete. If running handlers [hand
    /// over](crate::stage#what-a-handler-sends) more events, these are dropped, too, but not
    /// included in the returned number. The handlers are dropped even if stages refer to each other
    /// or to the network in a cycle. Only this method and the [end of the
    /// runtime](crate::stage#when-a-handler-is-dropped) free a network with such a cycle.
    /// [Sockets](crate::stage::net) are removed from the network but not closed.
    ///
    /// # Examples
    /// ```
    /// use std::sync::Arc;
    /// use tussah::stage::{Batch, Network};
    ///
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// let network = Network::on(runtime.handle(), "circle");
    /// let held = Arc::new(());
    /// let (own, holds) = (network.clone(), Arc::clone(&held));
    /// network.stage("one").blocking(move |_| Ok({
    ///     let (own, holds) = (own.clone(), Arc::clone(&holds));
    ///     move |_: &mut Batch<u8>| drop((own.name(), &holds))
    /// }))?;
    /// network.close();
    /// drop(network);
    /// assert_eq!(Arc::strong_count(&held), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn close(&self) -> u64 {
        let mut dropped = 0;
        for known in self.known().0 {
            dropped += known.stage.close();
            self.remove(known.id);
        }
        dropped
    }
}
